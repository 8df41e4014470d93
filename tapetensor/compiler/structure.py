"""What nests of containers and objects hold."""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Mapping
from typing import Any

import numpy as np

from tapetensor.compiler.lazy import LazyArray
from tapetensor.gradients import Gradients
from tapetensor.nn.module import Module
from tapetensor.optim.optimizer import Optimizer
from tapetensor.tensor.base import TensorBase


def is_named_tuple(value: Any) -> bool:
    """Tell whether `value` is an instance of a named tuple."""
    return isinstance(value, tuple) and hasattr(value, "_fields")


def is_users_object(value: Any) -> bool:
    """Tell whether `value` is an instance of a plain class of the user's."""
    cls = value.__class__
    return (
        not isinstance(value, type | types.ModuleType | types.FunctionType | Optimizer)
        and not callable(value)
        and cls.__module__.split(".", maxsplit=1)[0] not in _NOT_WALKED
        and hasattr(value, "__dict__")
    )


_NOT_WALKED = frozenset({"builtins", "numpy", "tapetensor", "typing", "collections", "threading"})


def holds_arrays(value: Any) -> bool:
    """Tell whether there are arrays, or what has arrays, in a nest of containers."""
    if isinstance(value, TensorBase | np.ndarray | LazyArray | np.random.Generator | Gradients):
        return True
    if isinstance(value, Module | Optimizer):
        return True
    if isinstance(value, tuple | list):
        return any(holds_arrays(item) for item in value)
    if isinstance(value, Mapping):
        return any(holds_arrays(item) for item in value.values())
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return any(holds_arrays(item) for item in vars(value).values())
    return False


def names_in(code: types.CodeType) -> list[str]:
    """Return the names that a function's code, and the code of functions within it, looks up."""
    names = list(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names += names_in(constant)
    return list(dict.fromkeys(names))
