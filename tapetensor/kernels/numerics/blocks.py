"""Formulas over large numpy arrays, block by block and in threads.

A formula of several ufuncs makes as many arrays as it has parts. Over millions of elements each is
a trip to memory and back; over a block they stay in the cache, and every core works on its own.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tapetensor.arrays.array import Array
from tapetensor.kernels.numerics import threads

# A block has so many elements: a few arrays of that size fit in a second-level cache.
BLOCK = 1 << 16
# Smaller arrays stay in the third-level cache, where the Python between the blocks costs more than
# blocks give; and a model of such arrays lives by its matrix products, whose threads leave no core
# to others.
LARGE = 1 << 20


def in_blocks(formula: Callable[..., Array], *arrays: Array) -> Array:
    """Return ``formula(*arrays)``, in blocks where that pays.

    Args:
        formula: works element by element, gives the dtype of its first argument, and writes to
            `out` if it is given: a ufunc, say.
        arrays: they have one shape. Arrays that are not numpy's, small or not contiguous go through
            the formula as they are; a repeated scalar, the cotangent of a sum, may be in blocks.
    """
    first = arrays[0]
    if first.size < LARGE or not _are_alike(arrays):
        return formula(*arrays)
    out = np.empty(first.shape, first.dtype)
    flat_out, *flat = [np.reshape(one, -1) for one in (out, *arrays)]

    def fill(start: int, stop: int) -> None:
        for begin in range(start, stop, BLOCK):
            block = slice(begin, min(begin + BLOCK, stop))
            formula(*[one[block] for one in flat], out=flat_out[block])

    size = first.size
    share = -(-size // threads.count())
    threads.run_together(
        *[(fill, start, min(start + share, size)) for start in range(0, size, share)]
    )
    return out


def _are_alike(arrays: tuple[Array, ...]) -> bool:
    """Tell whether the arrays are numpy's own, of one shape and dtype, and flat without a copy."""
    first = arrays[0]
    return all(
        type(one) is np.ndarray
        and (one.flags.c_contiguous or not any(one.strides))
        and one.shape == first.shape
        and one.dtype == first.dtype
        for one in arrays
    )
