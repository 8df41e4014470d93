"""The arithmetic mean, on which variances and normalizations are built."""

from __future__ import annotations

import math

from tapetensor.arrays.array import Array
from tapetensor.kernels.sums import sum_over


def mean_over(x: Array, axis: tuple[int, ...]) -> Array:
    """Return the mean over `axis`, whose axes stay with size 1; NaN over no elements."""
    mean: Array = sum_over(x, axis) / math.prod([x.shape[one] for one in axis])
    return mean
