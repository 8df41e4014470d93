"""Loops that are written by hand, compiled for the types of their arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache as kept
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from tapetensor.arrays.array import Array
from tapetensor.compiler.trace.node import DType
from tapetensor.kernels.numerics import threads
from tapetensor.native import cache
from tapetensor.native.scalars import numba

# A thread for fewer elements costs more than it gives.
SMALLEST_FOR_THREADS = 1 << 18
# What the loops by hand are written for.
FLOATS = (np.float32, np.float64)


def are_known(*arrays: Array) -> bool:
    """Tell whether arrays are what loops are written for: floats of one dtype, and not empty."""
    dtype = arrays[0].dtype
    return dtype in FLOATS and all(one.dtype == dtype and one.size > 0 for one in arrays)


def seen(dtype: DType, rank: int) -> Any:
    """Return numba's type of an array in C order."""
    return numba().types.Array(numba().from_dtype(dtype), rank, "C")


def run(source: str, *args: Any) -> None:
    """Run a loop on arguments: arrays in C order, integers, and pairs of them."""
    loop_for(source, *args)(*args)


def loop_for(source: str, *args: Any) -> Callable[..., None]:
    """Return the loop that runs on such arguments, see `run`."""
    return _loop_of(source, *map(_kind_of, args))


def workers_for(size: int) -> int:
    """Return how many threads work on so many elements."""
    return threads.count() if size >= SMALLEST_FOR_THREADS else 1


def run_over(source: str, size: int, count: int, *args: Any) -> None:
    """Run ``loop(first, last, ...)`` over planes, say, on threads if they are large.

    Args:
        source: the source of the loop.
        size: how many elements all that are read have.
        count: how many planes there are.
        args: its further arguments, see `run`.
    """
    run_shares(source, threads.shares(count, workers_for(size)), *args)


def run_shares(source: str, shares: Sequence[tuple[int, ...]], *args: Any) -> None:
    """Run a loop on shares of what there is to do, each on a thread of its own.

    Args:
        source: the source of the loop.
        shares: the first arguments of each call.
        args: the others, which all calls have in common.
    """
    loop = loop_for(source, *shares[0], *args)
    threads.run_together(*[(loop, *share, *args) for share in shares])


def _kind_of(value: Any) -> Any:
    return (value.dtype, value.ndim) if isinstance(value, np.ndarray) else type(value)


@kept
def _loop_of(source: str, *kinds: Any) -> Callable[..., None]:
    """Return the machine code for just these types: it takes other layouts as they are declared."""
    number = numba().types.int64
    known: dict[Any, Any] = {int: number, tuple: numba().types.UniTuple(number, 2)}
    types = tuple([known.get(one) or seen(*one) for one in kinds])
    dispatcher: Any = cache.load(source, types)
    loop: Callable[..., None] = dispatcher.get_overload(types)
    return loop


def without_gaps(array: Array, leading: int) -> tuple[Array, Array]:
    """Return all that lies between an array's first and last element, and where rows begin in it.

    Args:
        array: the array, whose strides are multiples of the size of an element, none below zero.
        leading: the number of its axes that count rows.
    """
    size = array.itemsize
    starts: Array = np.zeros((), np.int64)
    for count, stride in zip(array.shape[:leading], array.strides, strict=False):
        starts = np.add.outer(starts, np.arange(count) * (stride // size))
    pairs = zip(array.shape, array.strides, strict=True)
    reach = sum([(count - 1) * stride for count, stride in pairs])
    return as_strided(array, (reach // size + 1,), (size,)), starts.reshape(-1)
