"""What objects of C hold: the state of some, and what only the garbage collector sees."""

from __future__ import annotations

import array
import contextlib
import decimal
import enum
import functools
import gc
import inspect
import io
import logging
import operator
import queue
import random
import re
import struct
import sys
import threading
import types
import weakref
from collections.abc import Callable, Iterator
from contextvars import Context, ContextVar
from typing import Any, NamedTuple

import numpy as np

from tapetensor.compiler.trace.callables import functions_in
from tapetensor.compiler.trace.changes import parts, whole
from tapetensor.compiler.trace.codes import is_unrepeatable
from tapetensor.compiler.trace.number import NumberTracer
from tapetensor.compiler.trace.structure import (
    VALUES,
    is_buffer,
    is_looked_through,
    is_plain,
    is_users,
)
from tapetensor.compiler.trace.tracer import ArrayTracer
from tapetensor.nn.module import Module
from tapetensor.optim.optimizer import Optimizer
from tapetensor.tape import NoneTape
from tapetensor.tape.gradients import Gradients
from tapetensor.tensor.base import TensorBase

_CACHE = type(functools.lru_cache(len))
_PRECISION = ("prec", "rounding", "Emin", "Emax", "capitals", "clamp")
# Why a replay cannot repeat what a call reads, and the cure.
DIFFERS = (
    "is read or called, which may give, or has to do, something at every call; do so outside, and "
    "pass what depends on it as an argument"
)
UNSEEDED = (
    "a random generator without a seed is made, or a RandomState, or random bytes are drawn, which "
    "a replay would not repeat; make the generator outside, and pass it as an argument"
)
_ABSENT = object()
# What objects of these classes are does not change. Whether a lock is held, only a call tells.
_UNCHANGING: tuple[Any, ...] = (
    type, types.ModuleType, types.BuiltinFunctionType, types.CodeType, types.GenericAlias,
    types.UnionType, types.EllipsisType, types.NotImplementedType, re.Pattern, re.Match,
    struct.Struct, np.ufunc, type(np.sum), functools.partial, operator.attrgetter,
    operator.itemgetter, operator.methodcaller, type(threading.Lock()), type(threading.RLock()),
    threading.Condition, enum.Enum, io.IOBase, inspect.Signature, inspect.Parameter,
    logging.Handler, logging.LoggerAdapter,
    # These are watched.
    random.Random, np.random.Generator, np.random.RandomState, np.random.BitGenerator, Gradients,
    Optimizer, NoneTape, TensorBase, np.ndarray, *VALUES,
)  # fmt: skip
# Classes of these modules stand for types; what sends to other processes refuses by itself.
_WORDS = ("typing", "tapetensor.distributed", "tapetensor.tape.ids")
# What is one of these is walked by its own rules.
_OURS = (TensorBase, Module, np.ndarray)
_SHARED = (type, types.ModuleType, types.FunctionType, types.CodeType)


def is_cache(value: Any) -> bool:
    """Tell whether a value is a function whose results are kept."""
    return isinstance(value, _CACHE)


def kept_by(cache: Any) -> list[Any]:
    """Return the objects that a cache gives again and that can change, in some lasting order."""
    return sorted([one for one in _entries(cache) if not _is_fixed(one)], key=id)


def fixed_in(cache: Any) -> list[tuple[str, str]]:
    """Return what a cache gives again and for what, as far as that cannot change, as text."""
    return sorted([(type(one).__name__, repr(one)) for one in _entries(cache) if _is_fixed(one)])


def _entries(cache: Any) -> list[Any]:
    if not cache.cache_info().currsize:
        return []
    own = (vars(cache), cache.__wrapped__)
    found = [one for one in gc.get_referents(cache) if not any(one is other for other in own)]
    if cache.cache_parameters()["maxsize"] is None:
        tables = [one for one in found if one.__class__ is dict]
        found = [one for table in tables for pair in table.items() for one in pair]
    else:
        # The results themselves, and a dict of the places where they are.
        found = [one for one in found if one.__class__ is not dict or not _has_places(one)]
    # Its own classes are among them, and a mark between arguments, an object of no class.
    return [
        one
        for one in found
        if one.__class__ is not object and (not isinstance(one, type) or is_users(one))
    ]


def _is_fixed(value: Any) -> bool:
    return is_plain(value) or (value.__class__ is tuple and all(map(_is_fixed, value)))


def _has_places(held: dict[Any, Any]) -> bool:
    return any(type(one).__name__ == "_lru_list_elem" for one in held.values())


def _queued(value: Any) -> list[Any]:
    """Return what waits in a queue."""
    found = [one for one in gc.get_referents(value) if one is not type(value)]
    if sys.version_info < (3, 13):
        # They are in a list, with those before them that were taken out.
        lists = [one for one in found if isinstance(one, list)]
        found = [item for one in lists for item in one[len(one) - value.qsize() :]]
    return found


def _set_queued(value: Any, items: list[Any]) -> None:
    if [*map(id, _queued(value))] != [*map(id, items)]:
        while value.qsize():
            value.get_nowait()
        for item in items:
            value.put(item)


def clear_of_tracers(cache: Any, known: list[Any]) -> bool:
    """Empty a cache if it holds tracers, but for those in what is known; tell whether it did."""
    waiting, seen = [cache], {id(cache), *map(id, known)}
    while waiting:
        one = waiting.pop()
        array = one._array if isinstance(one, TensorBase) else one
        if isinstance(array, ArrayTracer | NumberTracer):
            cache.cache_clear()
            return True
        for inner in gc.get_referents(one):
            if id(inner) not in seen and not isinstance(inner, _SHARED):
                seen.add(id(inner))
                waiting.append(inner)
    return False


def never_the_same(value: Any) -> str:
    """Tell what a value is that gives another one whenever it is asked; empty if it is none."""
    cls = type(value)
    if is_plain(value) or cls in (list, tuple, types.FunctionType) or issubclass(cls, _OURS):
        # To ask abstract classes takes longer.
        return ""
    if is_unrepeatable(value) or isinstance(value, random.SystemRandom) or value is sys.modules:
        return DIFFERS
    if not hasattr(value, "__class__"):
        return f"is a {cls.__name__}, which nobody can look through; pass what it holds"
    if cls in weakref.ProxyTypes:
        return "is a weakref.proxy, which nobody can look through; use the object, or a weakref.ref"
    if any(one.__module__ == "unittest.mock" for one in cls.__mro__):
        return "is a mock, which counts its calls; call it outside, and pass what it gives"
    is_file = isinstance(value, io.IOBase) and not isinstance(value, io.StringIO | io.BytesIO)
    if is_file and value not in (sys.stdout, sys.stderr) and not value.closed and value.readable():
        return "is a file, which a replay would not read; read it outside, and pass what it has"
    is_iterator = isinstance(value, Iterator) and not isinstance(value, io.IOBase)
    if is_iterator and not is_looked_through(value) and not issubclass(cls, TensorBase):
        return (
            "is an iterator, which a replay would not advance; call next() outside, and pass what "
            "it gives"
        )
    if _is_opaque(value):
        return (
            f"is a {cls.__name__}, whose state nobody sees from outside; read it outside, and pass "
            "what it gives"
        )
    return ""


def _is_opaque(value: Any) -> bool:
    """Tell whether a value is neither looked through nor of a kind whose state can be seen."""
    cls = type(value)
    return isinstance(value, weakref.finalize) or not (
        is_plain(value)
        or is_looked_through(value)
        or cls is object
        # The version and the flags of Python are such tuples.
        or (issubclass(cls, tuple) and all(map(is_plain, value)))
        or isinstance(value, _UNCHANGING)
        or cls.__module__.startswith(_WORDS)
        # What a class has to be read by way of its objects is guarded by identity.
        or hasattr(cls, "__get__")
        or any(row.is_one(value) for row in VISIBLE)
        or next(functions_in(value), None) is not None
    )


def _bytes(value: Any) -> bytes:
    return bytes(memoryview(value))


def _set_bytes(value: Any, state: bytes) -> None:
    if isinstance(value, array.array) and len(_bytes(value)) != len(state):
        value[:] = array.array(value.typecode, state)
    elif _bytes(value) != state:
        into = value if isinstance(value, bytearray) else memoryview(value).cast("B")
        into[:] = state


def _text(value: Any) -> tuple[Any, int]:
    return (None, 0) if value.closed else (value.getvalue(), value.tell())


def _set_text(value: Any, state: tuple[Any, int]) -> None:
    # What is closed stays so.
    if not value.closed and _text(value) != state:
        value.seek(0)
        value.truncate()
        value.write(state[0])
        value.seek(state[1])


def precision(context: Any = None) -> tuple[Any, ...]:
    """Return what a context says of computing with decimals, that of this thread if none is given.

    What was rounded or not in it so far is no part of that.
    """
    one = decimal.getcontext() if context is None else context
    return (*[getattr(one, name) for name in _PRECISION], *one.traps.values())


def _set_precision(context: Any, state: tuple[Any, ...]) -> None:
    for name, value in zip(_PRECISION, state, strict=False):
        setattr(context, name, value)
    context.traps.update(zip(context.traps, state[len(_PRECISION) :], strict=True))


def _level(logger: logging.Logger) -> tuple[int, int, bool, int]:
    return logger.level, logger.getEffectiveLevel(), logger.disabled, logger.manager.disable


def _set_level(logger: logging.Logger, state: tuple[int, int, bool, int]) -> None:
    logger.setLevel(state[0])
    logger.disabled = state[2]


def _given_by(variable: ContextVar[Any]) -> Any:
    """Return what a variable gives: what is not set may have a default."""
    with contextlib.suppress(LookupError):
        return variable.get()
    return _ABSENT


def _set_variable(variable: ContextVar[Any], held: Any) -> None:
    if held is not _ABSENT and _given_by(variable) is not held:
        variable.set(held)


def is_or_equals(one: Any, other: Any) -> bool:
    """Tell whether two parts of what is seen are one, or are equal and cannot change."""
    return one is other or (_is_fixed(one) and bool(one == other))


def _is(*classes: Any) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, classes)


def _is_of_an_object(value: Any) -> bool:
    """Tell whether a value is a method of C that is bound to an object."""
    is_bound = isinstance(value, types.BuiltinMethodType | types.MethodWrapperType)
    return is_bound and not isinstance(value.__self__, types.ModuleType)


class Visible(NamedTuple):
    """What can be seen of objects of a kind.

    Attributes:
        is_one: tells whether an object is of the kind.
        read: returns what is seen.
        write: makes an object hold that again; None where nothing can.
        told: returns the parts of what is seen, as `Held` has it.
        name: how the user gets it from an object.
    """

    is_one: Callable[[Any], bool]
    read: Callable[[Any], Any]
    write: Callable[[Any, Any], object] | None = None
    told: Callable[[Any], dict[str, Any]] = whole
    name: str = ""


VISIBLE = (
    # Memory, and files in it.
    Visible(is_buffer, _bytes, _set_bytes),
    Visible(_is(io.StringIO, io.BytesIO), _text, _set_text),
    Visible(_is(decimal.Context), precision, _set_precision),
    Visible(_is(logging.Logger), _level, _set_level),
    Visible(_is(queue.SimpleQueue), _queued, _set_queued, parts),
    Visible(_is(ContextVar), _given_by, _set_variable, name=".get()"),
    Visible(_is(Context, types.MappingProxyType), dict),
    Visible(_is(*map(type, ({}.keys(), {}.values(), {}.items()))), lambda view: dict(view.mapping)),
    Visible(_is(weakref.ref), lambda reference: reference(), name="()"),
    Visible(_is_of_an_object, operator.attrgetter("__self__"), name=".__self__"),
    Visible(_is(BaseException), operator.attrgetter("args"), name=".args"),
    # What it gives without running the function is what it gave before.
    Visible(is_cache, kept_by, name="(...)"),
)
