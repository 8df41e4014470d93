"""Kernels that are captured whole, as loops of numbers beside `kernels.numerics`.

No group says them: one step of a sequence needs the one before, and a sum goes where its target
says. Each does what the function of its name does there, whose docstring has the formula, and in
the same order. What a loop is not written for runs on numpy.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache as kept
from typing import Any

import numpy as np

from tapetensor.arrays.array import Array
from tapetensor.compiler.trace.node import DType
from tapetensor.kernels.numerics import recurrence, segments
from tapetensor.native import cache
from tapetensor.native.scalars import numba

# As they are on numpy.
_recurrence = inspect.unwrap(recurrence.run_recurrence)
_summed: Callable[[Array, Array, int], Array] = inspect.unwrap(segments.segment_sum)
_FLOATS = (np.float32, np.float64)

_RECURRENCE = """
def loop(out, values, decay):
    steps, rows, width = out.shape
    last = np.empty(width, out.dtype)
    for row in range(rows):
        for j in range(width):
            last[j] = values[0, row, j]
            out[0, row, j] = last[j]
        for t in range(steps - 1):
            factors, added, target = decay[t, row], values[t + 1, row], out[t + 1, row]
            for j in range(width):
                moved = factors[j] * last[j] + added[j]
                last[j] = moved
                target[j] = moved
"""

_SEGMENT_SUM = """
def loop(sums, rows, targets):
    count, width = rows.shape
    for i in range(count):
        target = sums[targets[i]]
        for j in range(width):
            target[j] += rows[i, j]
"""


def native_kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return what runs a kernel natively; the kernel itself if it has no loop."""
    return _KERNELS.get(inspect.unwrap(function), function)


def run_recurrence(out: Array, values: Array, decay: Array) -> None:
    """Write a recurrence; a step's row stays in the cache, so that nothing is copied before."""
    arrays = (out, values, decay)
    is_apart = not any(np.may_share_memory(out, one) for one in (values, decay))
    is_known = out.dtype in _FLOATS and all(one.dtype == out.dtype for one in arrays)
    if not (is_apart and is_known and out.size and decay.shape[0] == out.shape[0] - 1):
        _recurrence(out, values, decay)
        return
    loop = _loop(_RECURRENCE, (_seen(out.dtype, 3, "A"),) * 3)
    sequences = [_of_three_axes(one) for one in arrays]
    if out.strides[0] < 0:
        # Rows are then read backwards as well: the processor fetches ahead in one direction.
        sequences = [one[..., ::-1] for one in sequences]
    # The axes between the first and the last two, if there are any.
    for place in np.ndindex(sequences[0].shape[1:-2]):
        loop(*[one[:, *place] for one in sequences])


def _of_three_axes(sequence: Array) -> Array:
    """Return a sequence of rows of at least two axes."""
    for _ in range(3 - sequence.ndim):
        sequence = sequence[:, None]
    return sequence


def segment_sum(rows: Array, targets: Array, count: int) -> Array:
    """Return the sums of rows, which are added to their targets one by one."""
    is_known = (
        rows.dtype in _FLOATS and targets.dtype == np.int64 and targets.shape == rows.shape[:1]
    )
    # What is wrong with targets numpy says.
    if not (is_known and rows.size) or targets.min() < 0 or targets.max() >= count:
        return _summed(rows, targets, count)
    sums = np.zeros((count, rows.shape[1]), rows.dtype)
    matrix = _seen(rows.dtype, 2, "C")
    loop = _loop(_SEGMENT_SUM, (matrix, matrix, _seen(targets.dtype, 1, "C")))
    loop(sums, np.ascontiguousarray(rows), np.ascontiguousarray(targets))
    return sums


def _seen(dtype: DType, rank: int, order: str) -> Any:
    """Return numba's type of an array in C order, or of one that lies in any way."""
    return numba().types.Array(numba().from_dtype(dtype), rank, order)


@kept
def _loop(source: str, types: tuple[Any, ...]) -> Callable[..., None]:
    """Return the machine code for just these types: it takes other layouts as they are declared."""
    dispatcher: Any = cache.load(source, types)
    loop: Callable[..., None] = dispatcher.get_overload(types)
    return loop


_KERNELS: dict[Callable[..., Any], Callable[..., Any]] = {
    _recurrence: run_recurrence,
    _summed: segment_sum,
}
