"""The largest and the smallest elements along axes, on arrays of any library."""

from __future__ import annotations

import math

import numpy as np

from tapetensor.gradients import Array

Axis = int | tuple[int, ...]


def largest(x: Array, axis: Axis) -> Array:
    """Return the largest elements along axes, which stay with size 1."""
    if x.__class__ is np.ndarray:
        # np.max wraps it in Python that costs as much again.
        return np.maximum.reduce(x, axis=axis, keepdims=True)
    found: Array = np.max(x, axis=axis, keepdims=True)
    return found


def smallest(x: Array, axis: Axis) -> Array:
    """Return the smallest elements along axes, which stay with size 1."""
    if x.__class__ is np.ndarray:
        return np.minimum.reduce(x, axis=axis, keepdims=True)
    found: Array = np.min(x, axis=axis, keepdims=True)
    return found


def largest_or_minus_infinity(x: Array, axis: Axis) -> Array:
    """Return `largest`, and minus infinity where there is no element."""
    axes = axis if isinstance(axis, tuple) else (axis,)
    if math.prod([x.shape[one] for one in axes]):
        return largest(x, axis)
    # The sum of nothing is 0. CuPy's maximum takes no initial value.
    return np.add.reduce(x, axis=axis, keepdims=True) - np.inf
