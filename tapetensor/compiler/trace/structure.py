"""Nests of containers and objects: what is plain, what is the user's, and what has arrays."""

from __future__ import annotations

import dataclasses
import enum
import types
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from tapetensor.compiler.trace.tracer import ArrayTracer
from tapetensor.nn.module import Module
from tapetensor.optim.optimizer import Optimizer
from tapetensor.pictures.places import NOT_USERS
from tapetensor.tape import OwnedTape
from tapetensor.tape.gradients import Gradients
from tapetensor.tensor.base import TensorBase

# Values of these types are compared by value.
_PLAIN = frozenset({bool, int, float, complex, str, bytes, type(None), slice})
_WITH_ARRAYS = (
    TensorBase, np.ndarray, ArrayTracer, np.random.Generator, Gradients, Module, Optimizer,
)  # fmt: skip
_FUNCTIONS = (
    type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType, types.MethodType,
)  # fmt: skip


def is_plain(value: Any) -> bool:
    """Tell whether `value` is compared by value, and has nothing beside it."""
    cls = value.__class__
    return cls in _PLAIN or (issubclass(cls, np.generic | np.dtype) and not is_users(cls))


def is_dataclass_instance(value: Any) -> bool:
    """Tell whether `value` is an instance of a dataclass, and no module."""
    return dataclasses.is_dataclass(value) and not isinstance(value, type | Module)


def is_users(value: Any) -> bool:
    """Tell whether a function, class or module is neither numpy's, Python's nor this library's."""
    return is_users_module(
        value.__name__ if isinstance(value, types.ModuleType) else value.__module__
    )


def is_users_module(name: str | None) -> bool:
    """Tell whether a module is neither one of numpy, nor of Python, nor of this library."""
    root = (name or "").split(".", maxsplit=1)[0]
    return root not in NOT_USERS


def is_users_object(value: Any) -> bool:
    """Tell whether `value` is an instance of a plain class of the user's."""
    cls = value.__class__
    return (
        not isinstance(value, (*_FUNCTIONS, Optimizer, enum.Enum))
        and is_users(cls)
        and (hasattr(value, "__dict__") or any("__slots__" in vars(one) for one in cls.__mro__))
    )


def fields_of(value: Any) -> dict[str, Any]:
    """Return the attributes of an object that are its own."""
    names = dict.fromkeys(getattr(value, "__dict__", ()))
    for cls in value.__class__.__mro__:
        slots = vars(cls).get("__slots__", ())
        names |= dict.fromkeys((slots,) if isinstance(slots, str) else slots)
    shown = [name for name in names if name not in ("__dict__", "__weakref__")]
    return {name: getattr(value, name) for name in shown if hasattr(value, name)}


def items_of(value: Any) -> Iterable[Any]:
    """Return what a container or a dataclass holds; nothing for any other object."""
    if isinstance(value, Mapping):
        return value.values()
    if isinstance(value, tuple | list | deque | set | frozenset):
        return value
    return fields_of(value).values() if is_dataclass_instance(value) else ()


def may_hold_arrays(value: Any) -> bool:
    """Tell whether `value` is something that could be looked through for arrays."""
    containers = (tuple, list, deque, set, frozenset, Mapping, Iterator)
    return isinstance(value, (*_WITH_ARRAYS, *containers)) or is_dataclass_instance(value)


def holds_arrays(value: Any) -> bool:
    """Tell whether there are arrays, or what has arrays, in a nest of containers."""
    is_one = isinstance(value, (*_WITH_ARRAYS, OwnedTape))
    return is_one or any(holds_arrays(item) for item in items_of(value))
