"""Powers that numpy computes by another function, with other last digits and dtypes.

The operator ``**`` calls it in place of `np.power`, and that may use it inside. For which exponents
they do so depends on the version of numpy, so it is tried.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

_FAST: dict[float, Callable[..., Any]] = {
    2: np.square, 1: np.positive, -1: np.reciprocal, 0.5: np.sqrt
}  # fmt: skip
_EXPONENTS = (int, float, bool, np.int64, np.float16, np.float32, np.float64)
# The dtypes of each kind.
_DTYPES = {"b": "?", "i": "bq", "u": "BQ", "f": "efd", "c": "FD"}


def fast_power(dtype: np.dtype[Any], exponent: Any, *, in_place: bool) -> Any:
    """Return the function that the operator calls for an array and a number; None if `np.power`."""
    kind: Any = type(exponent)
    if kind not in _EXPONENTS or exponent not in _FAST or dtype.kind not in _DTYPES:
        return None
    power = operator.ipow if in_place else operator.pow
    return _fast(power, _DTYPES[dtype.kind], kind, exponent)


@cache
def is_chosen_by_exponent() -> bool:
    """Tell whether ``**`` takes some powers of arrays by another function, as numpy 2.2 does."""
    numbers = np.arange(0.0, 22.0, 1 / 3)
    roots = numbers**0.5, np.power(numbers, 0.5)
    squares = [(numbers.astype(np.float32) ** np.float64(one)).dtype for one in (2, 3)]
    return roots[0].tobytes() != roots[1].tobytes() or squares[0] != squares[1]


@cache
def _fast(power: Callable[..., Any], dtypes: str, kind: Any, value: Any) -> Any:
    """Return the function that gives what one that takes powers does; None if none is.

    Args:
        power: what takes powers.
        dtypes: those of the arrays.
        kind: makes the exponent.
        value: what of.
    """
    fast = _FAST[value]
    floats = np.arange(-0.0, 22.0, 1 / 3)
    for dtype in dtypes:
        numbers = floats * np.exp(1j * floats) if dtype in _DTYPES["c"] else floats
        made, known = numbers.astype(dtype), numbers.astype(dtype)
        try:
            with np.errstate(all="ignore"):
                made = power(made, kind(value))
                known = fast(known, out=known if power is operator.ipow else None)
        except (ArithmeticError, TypeError, ValueError):
            return None
        if (made.dtype, made.tobytes()) != (known.dtype, known.tobytes()):
            return None
    return fast
