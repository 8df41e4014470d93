"""Nests of containers and objects: what is plain, what is the user's, and what an object holds."""

from __future__ import annotations

import datetime
import decimal
import enum
import fractions
import pathlib
import sys
import threading
import types
import uuid
from collections import OrderedDict, defaultdict, deque
from typing import Any

import numpy as np

from tapetensor.checkpointing.places import NOTHING, Slot, slots_of_class
from tapetensor.compiler.trace.tracer import ArrayTracer
from tapetensor.nn.module import Module
from tapetensor.optim.optimizer import Optimizer
from tapetensor.pictures.places import is_users_module
from tapetensor.tape.gradients import Gradients
from tapetensor.tensor.base import TensorBase

# Values of these types are compared by value.
_PLAIN = frozenset({bool, int, float, complex, str, bytes, type(None), slice})
# So are these, which nobody can change.
VALUES = (
    range, decimal.Decimal, fractions.Fraction, datetime.date, datetime.time, datetime.timedelta,
    datetime.tzinfo, pathlib.PurePath, uuid.UUID,
)  # fmt: skip
# What an instance of a class is besides its attributes.
SCALARS = (float, int, str, bytes, complex)
SEQUENCES = (list, tuple, deque, set, frozenset)
DICTS = (OrderedDict, defaultdict, dict)
_WITH_ARRAYS = (
    TensorBase, np.ndarray, ArrayTracer, np.random.Generator, Gradients, Module, Optimizer,
)  # fmt: skip
# Objects of these rooms refuse by themselves what cannot be traced, or are no values.
_CLOSED = tuple(
    f"tapetensor.{room}" for room in ("compiler", "distributed", "native", "tape", "training")
)
# Objects of these modules of Python's own are more than what they hold.
_MACHINERY = frozenset({
    "abc", "asyncio", "concurrent", "contextvars", "email", "functools", "http", "importlib",
    "inspect", "io", "logging", "multiprocessing", "re", "select", "signal", "socket", "subprocess",
    "sys", "tempfile", "threading", "typing", "unittest", "warnings",
})  # fmt: skip
_ONLY_ATTRIBUTES = (types.SimpleNamespace, threading.local)
# Classes of these modules read no attributes but their own, or are looked through.
_READS_NOTHING = {
    "abc", "builtins", "collections", "contextlib", "dataclasses", "enum", "functools", "numpy",
    "tapetensor", "types", "typing", "typing_extensions",
}  # fmt: skip
# What makes classes for whoever calls it, `dataclasses.make_dataclass`, say, gives them its name.
_MAKES_CLASSES = ("abc", "types")
_IS_HEAP_TYPE, _IS_IMMUTABLE = 1 << 9, 1 << 8


def is_plain(value: Any) -> bool:
    """Tell whether `value` is compared by value, and has nothing beside it."""
    # A tracer of a number says that it is a float, say.
    cls = type(value)
    if cls is slice:
        return all(map(is_plain, (value.start, value.stop, value.step)))
    return cls in _PLAIN or (issubclass(cls, np.generic | np.dtype) and not is_users(cls))


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
    return name is None or (isinstance(name, str) and is_users_module(name))


def is_read_by_python(cls: type) -> bool:
    """Tell whether Python's own code reads attributes of a class, as `json` does of an encoder."""
    pythons = [one for one in cls.__mro__ if not is_users(one)]
    roots = {str(one.__module__).split(".", maxsplit=1)[0] for one in pythons}
    return not roots <= _READS_NOTHING


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
        if one.__basicsize__ > object.__basicsize__ and one not in _ONLY_ATTRIBUTES:
            return one
    return object


def is_looked_through(value: Any) -> bool:
    """Tell whether all that an object is can be read from its attributes and its items."""
    cls = value.__class__
    if isinstance(value, Module):
        return True
    if isinstance(value, (*_WITH_ARRAYS, enum.Enum)) or cls is object:
        return False
    module = str(cls.__module__)
    is_closed = module.split(".", maxsplit=1)[0] in _MACHINERY or module.startswith(_CLOSED)
    is_known = is_users(cls) or not is_closed
    return is_known and storage(cls) in (object, *SCALARS, *SEQUENCES, *DICTS)


def is_buffer(value: Any) -> bool:
    """Tell whether a value is memory whose bytes can be read."""
    try:
        memoryview(value)
    except (TypeError, ValueError, BufferError):
        return False
    return True


def is_set(slot: Any, value: Any) -> bool:
    """Tell whether an object has something in a slot."""
    return Slot(value, slot).read() is not NOTHING
