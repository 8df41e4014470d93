"""Loops that are written by hand, compiled for the types of their arguments.

And what they leave to numpy: errors that numpy is to raise, and higher derivatives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache as kept
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from tapetensor.arrays.array import Array, is_numpys
from tapetensor.compiler.trace.node import DType
from tapetensor.compiler.trace.program import errors_raise
from tapetensor.kernels.numerics import threads
from tapetensor.native import cache
from tapetensor.native.scalars import numba
from tapetensor.tape import Pullbacks
from tapetensor.tape.pullbacks import JointPullbacks, Kernel, Needed

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


def cotangents_on_numpy(
    kernel: Kernel, args: tuple[Any, ...], needed: Needed, g: Array
) -> list[Any]:
    """Return the cotangents that are needed, by the kernel's own pullbacks."""
    # What there was to say of it has been said, to observers too.
    with np.errstate(all="ignore"):
        _, pullbacks = kernel(*[(lambda *_: None) if callable(one) else one for one in args])
    return [
        one(g) if one is not None and is_needed else None
        for one, is_needed in zip(pullbacks, needed, strict=True)
    ]


def pullbacks_of(
    kernel: Kernel,
    args: tuple[Any, ...],
    output: Array,
    places: tuple[bool, ...],
    compute: Callable[[Needed, Array], list[Any]],
) -> Pullbacks:
    """Return the pullbacks of a kernel that computes cotangents natively, of numpy's arrays.

    Args:
        kernel: the kernel as it is on numpy.
        args: its arguments.
        output: what it returns.
        places: which of the pullbacks there are.
        compute: given which cotangents are needed, and that of the output in C order, returns them.
    """
    expected = output.shape, output.dtype

    def cotangents(needed: Needed, g: Array) -> list[Any]:
        if not is_numpys(g) or (g.shape, g.dtype) != expected or errors_raise():
            # A derivative of higher order goes through the formula itself.
            return cotangents_on_numpy(kernel, args, needed, g)
        return compute(needed, np.asarray(g, order="C"))

    if len(places) == 1:
        return (lambda g: cotangents(places, g)[0],)
    return JointPullbacks(places, cotangents)
