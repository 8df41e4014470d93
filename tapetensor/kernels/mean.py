"""The arithmetic mean, on which variances and normalizations are built."""

from __future__ import annotations

import math

import numpy as np

from tapetensor.gradients import Array


def mean_over(x: Array, axis: tuple[int, ...]) -> Array:
    """Return the mean over `axis`, whose axes stay with size 1; NaN over no elements."""
    total = np.add.reduce(x, axis=axis, keepdims=True)
    mean: Array = total / math.prod([x.shape[one] for one in axis])
    return mean
