"""The largest and the smallest elements along axes, on arrays of any library."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from tapetensor.arrays.array import Array
from tapetensor.arrays.stand_ins import is_captured
from tapetensor.kernels.numerics.sums import is_in_order, is_short

Axis = int | tuple[int, ...]
# The starts of so many rows are kept for the next search in as many.
_KEPT = 1 << 14


def largest(x: Array, axis: Axis) -> Array:
    """Return the largest elements along axes, which stay with size 1."""
    return _extreme(x, axis, np.maximum, np.max)


def smallest(x: Array, axis: Axis) -> Array:
    """Return the smallest elements along axes, which stay with size 1."""
    return _extreme(x, axis, np.minimum, np.min)


def _extreme(x: Any, axis: Axis, ufunc: np.ufunc, of_any_library: Callable[..., Any]) -> Array:
    is_numpys = type(x) is np.ndarray
    found: Array
    if (is_numpys or is_captured(x)) and _has_short_rows(x, axis):
        if not is_numpys:
            found = x.capture_by_rows(ufunc, (x.ndim - 1,))
            return found
        rows = x.reshape(-1, x.shape[-1])
        return _at(x, rows.argmax(1) if ufunc is np.maximum else rows.argmin(1))
    # np.max wraps it in Python that costs as much again.
    found = (ufunc.reduce if is_numpys else of_any_library)(x, axis=axis, keepdims=True)
    return found


def largest_or_minus_infinity(x: Array, axis: Axis) -> Array:
    """Return `largest`, and minus infinity where there is no element."""
    axes = axis if isinstance(axis, tuple) else (axis,)
    if math.prod([x.shape[one] for one in axes]):
        return largest(x, axis)
    # The sum of nothing is 0. CuPy's maximum takes no initial value.
    return np.add.reduce(x, axis=axis, keepdims=True) - np.inf


def starts_of_rows(count: int, width: int) -> Array:
    """Return where each of `count` rows starts in a flat array; nobody may write to it."""
    return _kept_starts(count, width) if count <= _KEPT else _starts(count, width)


def _has_short_rows(x: Array, axis: Axis) -> bool:
    last = x.ndim - 1
    return axis in (last, -1, (last,)) and is_in_order(x) and is_short(x.size, x.shape[-1])


def _at(x: Array, places: Array) -> Array:
    """Return the element at a known place of each row.

    Looking for places and reading the elements there takes a fifth of the time of a reduction,
    which does not use vector instructions within a row.
    """
    places += starts_of_rows(places.size, x.shape[-1])
    found: Array = x.reshape(-1)[places]
    return found.reshape(*x.shape[:-1], 1)


def _starts(count: int, width: int) -> Array:
    starts: Array = np.arange(0, count * width, width)
    return starts


_kept_starts = lru_cache(maxsize=16)(_starts)
