"""Nests of containers and objects: what is plain, what is the user's, and what an object holds."""

from __future__ import annotations

import datetime
import decimal
import enum
import fractions
import pathlib
import threading
import types
import uuid
from collections import OrderedDict, defaultdict, deque
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from tapetensor.compiler.trace.tracer import ArrayTracer
from tapetensor.nn.module import Module
from tapetensor.optim.optimizer import Optimizer
from tapetensor.pictures.places import is_users_module
from tapetensor.tape import OwnedTape
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
            if one.__basicsize__ - base.__basicsize__ <= 8 * (len(_slots(one)) + 2):
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


def _slots(cls: type) -> dict[str, types.MemberDescriptorType]:
    # Classes that are written in C have members, too, which nobody may set.
    own = vars(cls).items() if "__slots__" in vars(cls) else ()
    return {name: one for name, one in own if isinstance(one, types.MemberDescriptorType)}


def is_buffer(value: Any) -> bool:
    """Tell whether a value is memory whose bytes can be read."""
    try:
        memoryview(value)
    except (TypeError, ValueError, BufferError):
        return False
    return True


def slots_of(value: Any) -> dict[str, types.MemberDescriptorType]:
    """Return what reads and sets the slots of an object, by name."""
    mro = reversed(value.__class__.__mro__)
    return {name: slot for one in mro for name, slot in _slots(one).items()}


def is_set(slot: types.MemberDescriptorType, value: Any) -> bool:
    """Tell whether an object has something in a slot."""
    try:
        slot.__get__(value)
    except AttributeError:
        return False
    return True


def in_slots(value: Any) -> dict[str, Any]:
    """Return what is in the slots of an object."""
    slots = slots_of(value).items()
    return {name: slot.__get__(value) for name, slot in slots if is_set(slot, value)}


def fill_slots(value: Any, held: dict[str, Any]) -> None:
    """Put back what was in the slots of an object."""
    for name, slot in slots_of(value).items():
        if name in held:
            slot.__set__(value, held[name])
        elif is_set(slot, value):
            slot.__delete__(value)


def dict_of(value: Any) -> dict[str, Any] | None:
    """Return the dict of the attributes of an object; None if it has none."""
    try:
        is_local = isinstance(value, threading.local)
        fields = value.__dict__ if is_local else object.__getattribute__(value, "__dict__")
    except AttributeError:
        return None
    return fields if isinstance(fields, dict) else None


def in_dict(value: Any) -> dict[str, Any]:
    """Return a copy of the dict of the attributes of an object."""
    return {**(dict_of(value) or {})}


def fields_of(value: Any) -> dict[str, Any]:
    """Return the attributes of an object that are its own; no code of the user's runs."""
    return {**in_dict(value), **in_slots(value)}


def content(base: type, value: Any) -> Any:
    """Return a dict or a list of what an instance of a subclass of a container holds."""
    opened: Any = base
    if issubclass(base, OrderedDict):
        return dict(opened.items(value))
    if issubclass(base, dict):
        # It asks no key for its hash.
        return dict.copy(value)
    return list(opened.__iter__(value))


def refill(base: Any, value: Any, items: Any) -> None:
    """Put back what a container has held, unless it still does."""
    now = content(base, value)
    has_same = [*map(id, now)] == [*map(id, items)]
    if not has_same:
        base.clear(value)
    if not isinstance(items, dict):
        if not has_same:
            (base.update if base is set else base.extend)(value, items)
        return
    # To look for a key runs its methods.
    others = now.values() if has_same else (None,) * len(items)
    for (key, item), other in zip(items.items(), others, strict=True):
        if not has_same or other is not item:
            base.__setitem__(value, key, item)


def refill_fields(value: Any, fields: dict[str, Any], held: dict[str, Any]) -> None:
    """Put back the dict of the attributes of an object, and what it has held."""
    refill(dict, fields, held)
    if dict_of(value) is not fields:
        object.__setattr__(value, "__dict__", fields)


def holds_arrays(value: Any) -> bool:
    """Tell whether there are arrays, or what has arrays, in a nest of containers."""
    held: Iterable[Any] = ()
    if isinstance(value, Mapping):
        held = value.values()
    elif isinstance(value, SEQUENCES):
        held = value
    elif is_dataclass_instance(value):
        held = fields_of(value).values()
    return isinstance(value, (*_WITH_ARRAYS, OwnedTape)) or any(map(holds_arrays, held))
