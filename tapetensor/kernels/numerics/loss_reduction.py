"""How the errors that a loss finds become the mean, the sum, or stay."""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np

from tapetensor.arrays.array import Array
from tapetensor.tape import Pullback, Pullbacks
from tapetensor.tape.pullbacks import CONSTANT

Reduction: TypeAlias = Literal["mean", "sum", "none"]


def reduced(
    terms: Array,
    reduction: Reduction,
    *slopes: Pullback | None,
    weight: Array | None = None,
) -> tuple[Array, Pullbacks]:
    """Return the mean of terms, their sum, or themselves, and a pullback per operand.

    Args:
        terms: the errors.
        reduction: which of the three.
        slopes: for each operand its cotangent, from that of the terms, or of all of them alike.
        weight: what the mean is divided by; None for the number of terms. Where it is 0 nothing
            counts: the mean is NaN, and the slopes are not divided.
    """
    if reduction == "none":
        return terms, slopes
    # Half of what np.sum takes on the few terms of a small batch.
    total = np.add.reduce(terms, axis=None)
    if reduction == "sum":
        return total, slopes
    if weight is None:
        return total / terms.size, tuple([_shared(slope, terms.size) for slope in slopes])
    is_nothing = weight == 0
    divisor = np.where(is_nothing, 1, weight)
    mean = np.where(is_nothing, np.nan, total / divisor)
    return mean, tuple([_shared(slope, divisor) for slope in slopes])


def over_rows(g: Array, terms: Array) -> Array:
    """Return a cotangent of the terms, one per row, or of all alike, with an axis along the row."""
    return np.expand_dims(g, -1) if g.shape == terms.shape else g


def _shared(slope: Pullback | None, count: Array | int) -> Pullback | None:
    return slope if slope is None or slope is CONSTANT else lambda g: slope(g / count)
