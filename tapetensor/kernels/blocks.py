"""Formulas over large numpy arrays, block by block and in threads.

A formula of several ufuncs makes as many arrays as it has parts. Over millions of elements each is
a trip to memory and back; over a block they stay in the cache, and every core works on its own.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context

import numpy as np

from tapetensor.gradients import Array

# Elements of a block: a few arrays of so many fit in a second-level cache.
BLOCK = 1 << 16
# Smaller arrays stay in the third-level cache, where the Python between the blocks costs more than
# blocks give; and a model of such arrays lives by its matrix products, whose threads leave no core
# to others.
LARGE = 1 << 20

_pools: list[ThreadPoolExecutor] = []
# A child process inherits the pool without its threads, which would be waited for forever.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pools.clear)


def in_blocks(formula: Callable[..., Array], *arrays: Array) -> Array:
    """Return ``formula(*arrays)``, in blocks where that pays.

    Args:
        formula: works element by element, gives the dtype of its first argument, and writes to
            `out` if it is given: a ufunc, say.
        arrays: of one shape. Other arrays than numpy's, small ones and such as are not contiguous
            go through the formula as they are; a repeated scalar, the cotangent of a sum, may pass.
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

    size, threads = first.size, _threads()
    if threads > 1 and not _pools:
        _pools.append(ThreadPoolExecutor(threads - 1, "tapetensor"))
    share = -(-size // threads)
    # In the context of the caller, whose np.errstate holds here too.
    others = [
        _pools[0].submit(copy_context().run, fill, start, min(start + share, size))
        for start in range(share, size, share)
    ]
    try:
        fill(0, share)
    finally:
        for other in others:
            other.result()
    return out


def _are_alike(arrays: tuple[Array, ...]) -> bool:
    """Tell whether the arrays are numpy's own, of one shape and dtype, and flat without a copy."""
    first = arrays[0]
    return all(
        one.__class__ is np.ndarray
        and (one.flags.c_contiguous or not any(one.strides))
        and one.shape == first.shape
        and one.dtype == first.dtype
        for one in arrays
    )


def _threads() -> int:
    """Return how many cores the process may use, four at most: memory is the limit by then."""
    if hasattr(os, "sched_getaffinity"):
        return min(len(os.sched_getaffinity(0)), 4)
    return min(os.cpu_count() or 1, 4)
