"""The norm of several arrays together, and the factor that clips it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from tapetensor.arguments import as_number
from tapetensor.arrays.stand_ins import Captured, captured_among, run_check
from tapetensor.errors import NumericalInstabilityError
from tapetensor.tape.row_sparse import values_of

if TYPE_CHECKING:
    from tapetensor.arrays.array import Array


def global_norm(arrays: Iterable[Array]) -> float:
    """Return the Euclidean norm of all elements of all arrays, summed in float64."""
    return _number(_norm, *map(values_of, arrays))


def _norm(*arrays: Array) -> float:
    return math.sqrt(sum(float(np.sum(np.square(a, dtype=np.float64))) for a in arrays))


def clipping(op: str, arrays: Iterable[Array], max_norm: float) -> tuple[float, float | None]:
    """Return the norm of the arrays and the factor that brings it down to `max_norm`, if it must.

    Raises:
        ArgumentTypeError: if `max_norm` is not a number.
        ArgumentValueError: if it is not positive.
        NumericalInstabilityError: if the norm is not finite.
    """
    bound = as_number(op, "max_norm", max_norm, above=0, at_most=math.inf)
    norm = global_norm(arrays)
    run_check(_check_norm, norm, op)
    if isinstance(norm, Captured):
        # A program does not know it yet.
        return norm, _number(_factor, norm, bound)
    return norm, _factor(norm, bound) if norm > bound else None


def _check_norm(norm: float, op: str) -> None:
    if not math.isfinite(norm):
        raise NumericalInstabilityError(
            f"{op}: the norm of the gradients is {norm}; "
            "look for the op that made a NaN or an infinity before clipping"
        )


def _factor(norm: float, bound: float) -> float:
    return bound / norm if norm > bound else 1.0


def _number(function: Callable[..., float], *args: Any) -> float:
    """Call a function that returns a number; let captured arguments capture the call."""
    captured = captured_among(args)
    if captured is None:
        return function(*args)
    number: float = captured.capture_number(function, args)
    return number
