"""Undoing numpy's broadcasting in a pullback."""

from __future__ import annotations

import numpy as np

from tapetensor.arrays.array import Array
from tapetensor.kernels.numerics.sums import sum_by_blocks, sum_of_rows
from tapetensor.tape import Pullback


def sum_to(cotangent: Array, shape: tuple[int, ...]) -> Array:
    """Sum a cotangent over the axes that broadcasting added to, or stretched in, `shape`."""
    if cotangent.shape == shape:
        return cotangent
    if len(shape) == 1 and cotangent.shape[-1] == shape[0]:
        return sum_of_rows(cotangent)
    added = cotangent.ndim - len(shape)
    stretched = tuple(
        added + axis
        for axis, size in enumerate(shape)
        if size == 1 and cotangent.shape[added + axis] != 1
    )
    return np.reshape(sum_by_blocks(cotangent, tuple(range(added)) + stretched), shape)


def repeated(x: Array, kept: tuple[int, ...], shape: tuple[int, ...]) -> Array:
    """Return a view of `x`, reshaped to `kept`, that repeats it to `shape`; nobody writes to it."""
    if type(x) is not np.ndarray or x.size != 1:
        return np.broadcast_to(np.reshape(x, kept), shape)
    # What numpy does for all arrays takes three microseconds.
    one: Array = np.ndarray(shape, x.dtype, x, 0, (0,) * len(shape))
    one.flags.writeable = False
    return one


def summing_to(operand: Array) -> Pullback:
    """Return the pullback of an operand that was broadcast and nothing else.

    It keeps the shape of the operand and not the operand itself.
    """
    shape = operand.shape
    return lambda g: sum_to(g, shape)


def unchanged(g: Array) -> Array:
    """Return the cotangent itself: the pullback of the identity."""
    return g
