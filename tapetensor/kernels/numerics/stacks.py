"""Stacks of matrices: arrays of which the last two axes are rows and columns."""

from __future__ import annotations

import numpy as np

from tapetensor.arrays.array import Array
from tapetensor.kernels.numerics.decorators import FEW_STEPS, native_from


@native_from(FEW_STEPS)
def columns_as_rows(x: Array) -> Array:
    """Return a stack of matrices with their axes swapped, for a product with another."""
    return np.swapaxes(x, -1, -2)
