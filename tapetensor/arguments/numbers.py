"""Numbers and sizes."""

from __future__ import annotations

import math
import operator
import sys
from typing import SupportsIndex, overload

import numpy as np
from typing_extensions import TypeVar

from tapetensor.errors import ArgumentTypeError, ArgumentValueError

_Size = TypeVar("_Size", bound=int)


def as_number(
    op: str,
    name: str,
    value: object,
    *,
    at_least: float | None = None,
    above: float = -math.inf,
    at_most: float | None = None,
    below: float = math.inf,
) -> float:
    """Return `value` as a Python float within bounds; without bounds it must be finite.

    Args:
        op: the name for the message.
        name: the argument's.
        value: an int or a float, Python's or numpy's.
        at_least: the smallest number that is allowed.
        above: what it must exceed, where there is no `at_least`.
        at_most: the largest number that is allowed; `math.inf` allows infinity.
        below: what it must stay below, where there is no `at_most`.

    Raises:
        ArgumentTypeError: if it is not a real number.
        ArgumentValueError: if it is NaN or outside the bounds.
    """
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise ArgumentTypeError(f"{op}: {name} must be a number, got {value!r}")
    try:
        # A Python float: a scalar of numpy's would impose its own dtype.
        number = float(value)
    except OverflowError:
        raise ArgumentValueError(f"{op}: {name} is too large for a float") from None
    # Written so that a NaN is refused.
    exceeds = number > above if at_least is None else number >= at_least
    if exceeds and (number < below if at_most is None else number <= at_most):
        return number
    low, sign, left = (above, ">", "(") if at_least is None else (at_least, ">=", "[")
    high, right = (below, ")") if at_most is None else (at_most, "]")
    if math.isfinite(high):
        allowed = f"in {left}{low:g}, {high:g}{right}"
    else:
        words = [f"{sign} {low:g}"] * math.isfinite(low) + ["finite"] * (at_most is None)
        allowed = " and ".join(words)
    raise ArgumentValueError(f"{op}: {name} must be {allowed}, got {value!r}")


def as_int(op: str, name: str, value: object) -> int:
    """Return `value` as a plain int.

    Raises:
        ArgumentTypeError: if it is not an integer.
    """
    # What is usual first: Python looks for a protocol in ten times the time.
    if type(value) is int:
        return value
    if isinstance(value, SupportsIndex) and not isinstance(value, bool):
        try:
            return operator.index(value)
        except TypeError:
            pass
    raise ArgumentTypeError(f"{op}: {name} must be an int, got {value!r}")


@overload
def as_size(op: str, name: str, value: _Size, low: int = 0, high: float = sys.maxsize) -> _Size: ...
@overload
def as_size(op: str, name: str, value: object, low: int = 0, high: float = sys.maxsize) -> int: ...
def as_size(op: str, name: str, value: object, low: int = 0, high: float = sys.maxsize) -> object:
    """Return `value` as a plain int from `low` to `high`, typed as it came.

    Raises:
        ArgumentTypeError: if it is not an integer.
        ArgumentValueError: if it is negative, smaller than `low` or larger than `high`, which
            is what the axis of an array can hold.
    """
    size = as_int(op, name, value)
    if size < low or size < 0:
        allowed = "must not be negative" if size < 0 else f"must be > {low - 1}"
        raise ArgumentValueError(f"{op}: {name} {allowed}, got {size}")
    if size > high:
        raise ArgumentValueError(f"{op}: {name} is more than an array can hold, got {size}")
    return size
