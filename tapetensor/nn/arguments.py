"""Checks of the numbers that layers are constructed with."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tapetensor.dtypes import FLOATING, as_dtype
from tapetensor.errors import ArgumentTypeError, ArgumentValueError, DTypeError
from tapetensor.shapes import as_size


def check_size(layer: str, name: str, value: object) -> int:
    """Return a size that is > 0.

    Raises:
        ArgumentTypeError: if it is not an int.
        ArgumentValueError: if it is not > 0.
    """
    size = as_size(layer, name, value)
    if size == 0:
        raise ArgumentValueError(f"{layer}: {name} must be > 0, got 0")
    return size


def check_number(
    layer: str, name: str, value: object, *, low: float, high: float = math.inf
) -> float:
    """Return a number between two bounds, both included.

    Raises:
        ArgumentTypeError: if it is not a number.
        ArgumentValueError: if it lies outside.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ArgumentTypeError(f"{layer}: {name} must be a number, got {value!r}")
    if not low <= value <= high or math.isinf(value):
        bounds = f">= {low} and finite" if math.isinf(high) else f"in [{low}, {high}]"
        raise ArgumentValueError(f"{layer}: {name} must be {bounds}, got {value!r}")
    return float(value)


def check_weight_dtype(layer: str, dtype: object) -> np.dtype[Any]:
    """Return the dtype of the weights.

    Raises:
        DTypeError: if it is not float32 or float64.
    """
    resolved = as_dtype(layer, dtype)
    if resolved not in FLOATING:
        raise DTypeError(f"{layer}: weights are float32 or float64, not {resolved}")
    return resolved
