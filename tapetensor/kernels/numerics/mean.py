"""The mean, on which normalizations are built, and one that moves from batch to batch."""

from __future__ import annotations

import math

from tapetensor.arrays.array import Array
from tapetensor.kernels.numerics.sums import sum_over


def mean_over(x: Array, axis: tuple[int, ...]) -> Array:
    """Return the mean over `axis`, whose axes stay with size 1; NaN over no elements."""
    mean: Array = sum_over(x, axis) / math.prod([x.shape[one] for one in axis])
    return mean


def moved_statistics(
    running: tuple[Array, Array], batch: tuple[Array, Array], count: int, momentum: float
) -> tuple[Array, Array]:
    """Return running mean and variance moved towards those of a batch.

    Args:
        running: mean and variance so far.
        batch: mean and biased variance of the batch; the variance that is added is unbiased.
        count: how many values they are taken of.
        momentum: the share of the batch.
    """
    keep = 1.0 - momentum
    unbiased = momentum * count / (count - 1)
    return running[0] * keep + batch[0] * momentum, running[1] * keep + batch[1] * unbiased
