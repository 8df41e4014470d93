"""Powers that numpy computes by another function, with other last digits and dtypes.

The operator ``**`` calls it in place of `np.power`, and that may use it inside. For which exponents
they do so depends on the version of numpy, so it is tried.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

_FAST: dict[float, Callable[..., Any]] = {
    2: np.square, 1: np.positive, -1: np.reciprocal, 0.5: np.sqrt
}  # fmt: skip
_EXPONENTS = (int, float, bool, np.int64, np.float16, np.float32, np.float64)
_SIZES = {"b": [1], "i": [1, 8], "u": [1, 8], "f": [2, 4, 8], "c": [8, 16]}


def fast_power(dtype: np.dtype[Any], exponent: Any, *, in_place: bool) -> Any:
    """Return the function that the operator calls for an array and a number; None if `np.power`."""
    if type(exponent) not in _EXPONENTS:
        return None
    return _FOUND.get((in_place, dtype.kind, type(exponent), exponent))


def fast_within(dtype: np.dtype[Any], exponent: Any) -> Any:
    """Return the function that gives what `np.power` does for a floating dtype; None if none is."""
    return _WITHIN.get((dtype.char, exponent))


def _same(power: Callable[..., Any], array: Any, exponent: Any, fast: Callable[..., Any]) -> bool:
    """Tell whether a function that takes powers, maybe in place, gives what another one does."""
    made, known = array.copy(), array.copy()
    try:
        with np.errstate(all="ignore"):
            made = power(made, exponent)
            known = fast(known, out=known if power is operator.ipow else None)
    except (ArithmeticError, TypeError, ValueError):
        return False
    return bool((made.dtype, made.tobytes()) == (known.dtype, known.tobytes()))


def _samples(kind: str) -> list[Any]:
    """Return arrays of all dtypes of a kind, whose powers tell numpy's functions apart."""
    floats = np.arange(-0.0, 22.0, 1 / 3)
    numbers = floats * np.exp(1j * floats) if kind == "c" else floats
    return [numbers.astype(f"{kind}{size}") for size in _SIZES[kind]]


_ARRAYS = {kind: _samples(kind) for kind in _SIZES}
_FOUND = {
    (power is operator.ipow, kind, cls, value): fast
    for power in (operator.pow, operator.ipow)
    for kind, arrays in _ARRAYS.items()
    for cls in _EXPONENTS
    for value, fast in _FAST.items()
    if cls(value) == value and all(_same(power, one, cls(value), fast) for one in arrays)
}
_WITHIN = {
    (array.dtype.char, value): fast
    for array in _ARRAYS["f"]
    for value, fast in _FAST.items()
    if value != 1 and _same(np.power, array, array.dtype.type(value), fast)
}
