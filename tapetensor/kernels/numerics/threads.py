"""Work on several cores at once, in functions that spend their time in numpy.

A formula of several ufuncs makes as many arrays as it has parts. Over millions of elements each is
a trip to memory and back; over a block they stay in the cache, and every core works on its own.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any

import numpy as np

from tapetensor.arrays.array import Array
from tapetensor.machine import openblas
from tapetensor.machine.settings import IN_WEBASSEMBLY

_pools: list[ThreadPoolExecutor] = []
# A child process inherits the pool without its threads, which would be waited for forever.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pools.clear)


def count() -> int:
    """Return how many cores ufuncs may use, four at most: memory is the limit by then."""
    return min(_cores(), 4)


def _cores() -> int:
    """Return how many cores the process may use."""
    if IN_WEBASSEMBLY:
        return 1
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def shares(count: int, workers: int) -> list[tuple[int, int]]:
    """Return where the share of each worker in so many things begins and ends; none is empty."""
    workers = min(workers, count)
    return [
        (count * worker // workers, count * (worker + 1) // workers) for worker in range(workers)
    ]


def run_together(*calls: tuple[Any, ...]) -> None:
    """Run functions at the same time, the first in this thread; each is given with its arguments.

    All have ended when it returns, also where one raises. Where no thread can be started they run
    one after the other.
    """
    if IN_WEBASSEMBLY:
        for function, *arguments in calls:
            function(*arguments)
        return
    if len(calls) > 1 and not _pools:
        _pools.append(ThreadPoolExecutor(max(1, _cores() - 1), "tapetensor"))
    # Each function runs in the context of the caller, whose np.errstate holds here too.
    submit: Any = _pools[0].submit if _pools else None
    others = [submit(copy_context().run, *call) for call in calls[1:]]
    first: Callable[..., None] = calls[0][0]
    try:
        first(*calls[0][1:])
    finally:
        # All have to end before one is allowed to raise.
        for other in others:
            other.exception()
    for other in others:
        other.result()


def multiply_apart(function: Callable[[int, int], None], count: int) -> None:
    """Run a function for the first and the last of each share of so many things, all at once.

    For functions that multiply small matrices again and again: the BLAS leaves its threads to them,
    as many as it has.
    """
    workers = min(openblas.threads(), _cores())
    if workers == 1 or count < workers:
        function(0, count)
        return
    with openblas.held_to_one_thread():
        run_together(*[(function, *share) for share in shares(count, workers)])


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
    share = -(-size // count())
    run_together(*[(fill, start, min(start + share, size)) for start in range(0, size, share)])
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
