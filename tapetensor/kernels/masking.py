"""Keeping some elements and putting a number in the place of the others."""

from __future__ import annotations

import numpy as np

from tapetensor.arrays.array import Array
from tapetensor.arrays.libraries import like
from tapetensor.kernels.numerics.choice import choose
from tapetensor.kernels.numerics.decorators import MANY_STEPS, native_from
from tapetensor.tape import Pullbacks


@native_from(MANY_STEPS)
def tril(x: Array, k: int) -> tuple[Array, Pullbacks]:
    """The elements on and below a diagonal of the matrices, 0 above it."""
    mask = _lower(x, k)
    return _kept(x, mask), (lambda g: _kept(g, mask),)


@native_from(MANY_STEPS)
def triu(x: Array, k: int) -> tuple[Array, Pullbacks]:
    """The elements on and above a diagonal of the matrices, 0 below it."""
    mask = ~_lower(x, k - 1)
    return _kept(x, mask), (lambda g: _kept(g, mask),)


def nans_to(x: Array, number: float) -> tuple[Array, Pullbacks]:
    """``x``, and a number where it is NaN."""
    is_nan = np.isnan(x)
    return choose(is_nan, number, x), (lambda g: choose(~is_nan, g, 0),)


def _lower(x: Array, k: int) -> Array:
    rows, columns = x.shape[-2:]
    mask: Array = np.tri(rows, columns, k, dtype=np.bool_)
    return mask


def _kept(x: Array, mask: Array) -> Array:
    # False is zero in every dtype, and leaves the dtype of a mask as it is.
    return choose(np.broadcast_to(like(mask, x), x.shape), x, False)
