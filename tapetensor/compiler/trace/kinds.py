"""Kinds of values: plain values, the user's objects, their contents and their code."""

from __future__ import annotations

import enum
import functools
import sys
import types
from collections import OrderedDict, defaultdict, deque
from collections.abc import Collection, Iterator
from typing import Any, ClassVar, get_origin

import numpy as np

from tapetensor.compiler.trace.closed_list import (
    BUILTINS,
    FIXED,
    WALKED,
    is_refused,
    trusted_module,
)
from tapetensor.nn.module import Module
from tapetensor.optim.optimizer import Optimizer
from tapetensor.pictures import Place
from tapetensor.pictures.places import is_users_module
from tapetensor.surroundings.places import NOTHING, Slot, attributes_of, cell_place, slots_of_class
from tapetensor.tape.gradients import Gradients
from tapetensor.tensor.base import TensorBase

# Values of these types are compared by value.
_PLAIN = frozenset({bool, int, float, complex, str, bytes, type(None), slice, range})
# What an instance of a class is besides its attributes.
SCALARS = (float, int, str, bytes, complex)
SEQUENCES = (list, tuple, deque, set, frozenset)
DICTS = (OrderedDict, defaultdict, dict)
_WITH_RULES = (TensorBase, np.ndarray, np.random.Generator, Gradients, Optimizer, enum.Enum)
# What makes classes for whoever calls it, `dataclasses.make_dataclass`, say, gives them its name.
_MAKES_CLASSES = ("abc", "types")
# Objects of these rooms refuse by themselves what cannot be traced, or are no values.
_CLOSED = ("compiler", "distributed", "native", "tape", "training")
# What functions are called by the languages that they are written in.
_FUNCTIONS = (
    "function", "builtin_function_or_method", "cython_function_or_method",
    "_ArrayFunctionDispatcher",
)  # fmt: skip
# Objects of these modules are words for types.
_WORDS = ("typing", "typing_extensions")
_IS_HEAP_TYPE, _IS_IMMUTABLE = 1 << 9, 1 << 8
_CACHE = type(functools.lru_cache(len))
# A generic class with its parameters looks up in the class what it has not itself.
ALIASES = (types.GenericAlias, type(ClassVar[int]))
# What has a function in it, and does nothing else.
_AROUND = (
    staticmethod, classmethod, property, types.MethodType, functools.partial,
    functools.partialmethod, functools.cached_property,
)  # fmt: skip
_WRAPPERS = (functools.partial, functools.cached_property, functools.partialmethod)


def is_plain(value: Any) -> bool:
    """Tell whether `value` is compared by value, and has nothing beside it."""
    # A tracer of a number says that it is a float, say.
    cls = type(value)
    if cls is slice:
        return all(map(is_plain, (value.start, value.stop, value.step)))
    return cls in _PLAIN or (issubclass(cls, np.generic | np.dtype) and not is_users(cls))


def is_plain_nest(value: Any) -> bool:
    """Tell whether `value` is plain, or a nest of containers of such."""
    if type(value) is dict:
        return all(map(is_plain, value)) and all(map(is_plain_nest, value.values()))
    is_container = type(value) in (tuple, list, set, frozenset)
    return is_plain(value) or (is_container and all(map(is_plain_nest, value)))


def is_or_are_tensors(one: Any, other: Any) -> bool:
    """Tell whether two attributes are one, or tensors, of which a plan stores the new one."""
    return one is other or (isinstance(one, TensorBase) and isinstance(other, TensorBase))


def is_dataclass_instance(value: Any) -> bool:
    """Tell whether `value` is an instance of a dataclass, and no module."""
    # To ask for the attribute may run code of a metaclass.
    is_one = any("__dataclass_fields__" in vars(one) for one in value.__class__.__mro__)
    return is_one and not isinstance(value, type | Module)


def is_users(value: Any) -> bool:
    """Tell whether a function, class or module is neither numpy's, Python's nor this library's."""
    name = value.__name__ if isinstance(value, types.ModuleType) else value.__module__
    if name in _MAKES_CLASSES and isinstance(value, type):
        return getattr(sys.modules[name], value.__name__, None) is not value
    # Some functions that are written in C have no text there.
    return isinstance(name, str) and is_users_module(name)


def is_fixed(value: Any, trusts: Collection[str] = ()) -> bool:
    """Tell whether a value that is not the user's belongs to a module of the closed list."""
    cls = type(value)
    name = getattr(value, "__name__", "")
    if f"{cls.__module__}.{cls.__qualname__}" in FIXED or cls.__module__ in _WORDS:
        # Of the methods of `object` nobody sees which names they look up.
        return not str(name).startswith("__")
    if isinstance(value, type) and (
        issubclass(value, BaseException) or f"{value.__module__}.{value.__qualname__}" in WALKED
    ):
        return True
    owner = getattr(value, "__self__", None)
    is_callable = isinstance(value, type) or cls.__name__ in _FUNCTIONS
    if not is_callable or not isinstance(owner, types.ModuleType | type | None):
        return False
    if isinstance(owner, type):
        # A method of a class, `dict.fromkeys`, say.
        return is_fixed(owner, trusts)
    home = str(getattr(value, "__module__", None) or "").lstrip("_")
    if home == "builtins":
        return name in BUILTINS
    home = "numpy" if home.startswith("numpy._") else home.replace("collections_", "collections.")
    row = trusted_module(home, trusts)
    return row is not None and not is_refused(row, name)


def runs_what_is_listed(value: Any, trusts: Collection[str] = ()) -> bool:
    """Tell whether the code that a value runs, if called or read, is the user's or listed."""
    found = [one for one in wrapped_in(value) if not isinstance(one, _AROUND)]
    return all(
        is_users(one) or is_fixed(one, trusts)
        if isinstance(one, type | types.FunctionType)
        else is_walked(one)
        or is_cache(one)
        or is_fixed(one, trusts)
        or type(one).__module__.startswith("tapetensor.")
        for one in found
        if callable(one) or one is value
    )


def has_foreign_base(cls: type) -> bool:
    """Tell whether a class of the user's derives from one that is on no list.

    Code of that reads what the class has, and nobody sees what.
    """
    return any(
        not (
            is_users(one)
            or one.__module__ in ("builtins", "typing", "typing_extensions", "abc", "enum")
            or one.__module__.startswith(("tapetensor.", "numpy"))
            or f"{one.__module__}.{one.__qualname__}" in WALKED
            or is_fixed(one)
        )
        for one in cls.__mro__
    )


def is_cache(value: Any) -> bool:
    """Tell whether a value is a function whose results are kept."""
    return isinstance(value, _CACHE)


def is_written_in_python(cls: type) -> bool:
    """Tell whether a class is none that is written in C."""
    return bool(cls.__flags__ & _IS_HEAP_TYPE) and not cls.__flags__ & _IS_IMMUTABLE


def storage(cls: type) -> type:
    """Return the class, written in C, that says what an instance holds besides its attributes."""
    for one in cls.__mro__:
        if is_written_in_python(one):
            base = one.__base__ or object
            # There may be a dict of attributes and a list of weak references, too.
            if one.__basicsize__ - base.__basicsize__ <= 8 * (len(slots_of_class(one)) + 2):
                continue
        if one.__basicsize__ > object.__basicsize__ and one is not types.SimpleNamespace:
            return one
    return object


def is_walked(value: Any) -> bool:
    """Tell whether all that an object is can be read from its attributes and its items."""
    cls = value.__class__
    if isinstance(value, Module):
        return True
    if isinstance(value, _WITH_RULES) or cls is object or isinstance(value, type | BaseException):
        return False
    if storage(cls) not in (object, *SCALARS, *SEQUENCES, *DICTS):
        return False
    root, _, room = str(cls.__module__).partition(".")
    if root == "tapetensor":
        return room.partition(".")[0] not in _CLOSED
    is_listed = f"{cls.__module__}.{cls.__qualname__}" in WALKED
    is_own = is_users(cls) and not has_foreign_base(cls)
    return is_own or cls in (*SCALARS, *SEQUENCES, *DICTS) or is_listed


def is_set(slot: Any, value: Any) -> bool:
    """Tell whether an object has something in a slot."""
    return Slot(value, slot).read() is not NOTHING


def functions_in(value: Any) -> Iterator[types.FunctionType]:
    """Yield the functions that may run where a value is called or read: those it wraps, too."""
    return (one for one in wrapped_in(value) if isinstance(one, types.FunctionType))


def wrapped_in(value: Any) -> Iterator[Any]:
    """Yield a callable or descriptor, and all that it wraps."""
    waiting, done = [value], set[int]()
    while waiting:
        one = waiting.pop()
        if one is None or id(one) in done:
            continue
        done.add(id(one))
        yield one
        waiting.append(
            (attributes_of(one) or {}).get("__wrapped__") if not isinstance(one, type) else None
        )
        if isinstance(one, types.FunctionType):
            if not is_users_module(one.__globals__.get("__name__")):
                # Python's own decorators close over what they decorate.
                held = [cell_place(cell).read() for cell in one.__closure__ or ()]
                waiting += [inner for inner in held if callable(inner)]
        elif isinstance(one, ALIASES):
            waiting.append(get_origin(one))
        elif isinstance(one, property):
            waiting += [one.fget, one.fset, one.fdel]
        elif isinstance(one, staticmethod | classmethod | types.MethodType):
            waiting.append(one.__func__)
        elif isinstance(one, _WRAPPERS):
            waiting.append(one.func)


def place_of(function: Any) -> Place | None:
    """Return the place where a callable is defined, if the user has defined it."""
    methods = [getattr(type(function), name, None) for name in ("forward", "__call__")]
    for one in (found for value in (function, *methods) for found in functions_in(value)):
        if is_users_module(one.__globals__.get("__name__")):
            return Place(one.__code__.co_filename, one.__code__.co_firstlineno)
    return None
