"""Kernels that are captured whole, as loops of numbers beside `kernels.numerics`.

No group says them: one step of a sequence needs the one before, and a sum goes where its target
says. Each does what the function of its name does there, whose docstring has the formula, and in
the same order. What a loop is not written for runs on numpy.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from tapetensor.arrays.array import Array
from tapetensor.kernels import convolution, images, recurrent
from tapetensor.kernels.numerics import along_axes, matrices, recurrence, segments, windows
from tapetensor.native import convolutions
from tapetensor.native.lanes import IMPORTED, TURN
from tapetensor.native.loading import are_known, run
from tapetensor.native.pooling import max_pool2d, min_pool2d
from tapetensor.native.recurrent import gru, lstm
from tapetensor.native.sequences import run_recurrence, run_scan, scan_cotangents
from tapetensor.native.windows import write_shares, write_sums

# As they are on numpy.
_columns_as_rows: Callable[[Array], Array] = inspect.unwrap(matrices.columns_as_rows)
_summed: Callable[[Array, Array, int], Array] = inspect.unwrap(segments.segment_sum)
_sum_in_order: Callable[[Array, tuple[int, ...]], Array] = inspect.unwrap(along_axes.sum_in_order)

_SEGMENT_SUM = """
def loop(sums, rows, targets):
    count, width = rows.shape
    for i in range(count):
        target = sums[targets[i]]
        for j in range(width):
            target[j] += rows[i, j]
"""
# A product with ones runs on all threads of the BLAS, and what one has read another writes slowly.
_ROW_SUMS = """
def loop(sums, rows):
    count, width = rows.shape
    for i in range(count):
        total = 0.0
        for start in range(0, width, 4096):
            block = rows[i, start : start + 4096]
            part = rows.dtype.type(0)
            for j in range(block.shape[0]):
                part = plus(part, block[j])
            total += part
        sums[i] = total
"""
# OpenBLAS multiplies a stack of small matrices slower where their axes are swapped.
_COLUMNS_AS_ROWS = f"""{IMPORTED}{TURN}
def loop(found, stack):
    count, rows, columns = stack.shape
    flat = found.reshape(-1)
    for one in range(count):
        turn(stack[one], flat[one * rows * columns :], rows)
"""


def native_kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return what runs a kernel natively; the kernel itself if it has no loop."""
    return _KERNELS.get(inspect.unwrap(function), function)


def segment_sum(rows: Array, targets: Array, count: int) -> Array:
    """Return the sums of rows, which are added to their targets one by one."""
    is_known = are_known(rows) and targets.dtype == np.int64 and targets.shape == rows.shape[:1]
    # What is wrong with targets numpy says.
    if not is_known or targets.min() < 0 or targets.max() >= count:
        return _summed(rows, targets, count)
    return segments.one_by_one(_add_rows, rows, targets, count)


def _add_rows(sums: Array, rows: Array, targets: Array) -> None:
    run(_SEGMENT_SUM, along_axes, np.ascontiguousarray(rows), np.ascontiguousarray(targets))


def sum_in_order(x: Array, axis: tuple[int, ...]) -> Array:
    """Return the sums over sorted axes of an array in C order, which stay with size 1."""
    kept = x.ndim - len(axis)
    if not axis or axis[0] != kept or not are_known(x):
        return _sum_in_order(x, axis)
    along_axes = np.empty((*x.shape[:kept], *[1] * len(axis)), x.dtype)
    run(_ROW_SUMS, along_axes.reshape(-1), x.reshape(along_axes.size, -1))
    return along_axes


def columns_as_rows(x: Array) -> Array:
    """Return a stack of matrices with their axes swapped, in C order."""
    if x.ndim == 2 or not are_known(x) or not x.flags.c_contiguous:
        return _columns_as_rows(x)
    found = np.empty(np.swapaxes(x, -1, -2).shape, x.dtype)
    run(_COLUMNS_AS_ROWS, found, x.reshape(-1, *x.shape[-2:]))
    return found


_KERNELS: dict[Callable[..., Any], Callable[..., Any]] = {
    inspect.unwrap(recurrence.run_recurrence): run_recurrence,
    inspect.unwrap(recurrence.run_scan): run_scan,
    inspect.unwrap(recurrence.scan_cotangents): scan_cotangents,
    inspect.unwrap(windows.write_sums): write_sums,
    inspect.unwrap(windows.write_shares): write_shares,
    _summed: segment_sum,
    _sum_in_order: sum_in_order,
    inspect.unwrap(convolution.conv1d): convolutions.conv1d,
    inspect.unwrap(convolution.conv2d): convolutions.conv2d,
    inspect.unwrap(convolution.conv_transpose1d): convolutions.conv_transpose1d,
    inspect.unwrap(convolution.conv_transpose2d): convolutions.conv_transpose2d,
    _columns_as_rows: columns_as_rows,
    inspect.unwrap(images.max_pool2d): max_pool2d,
    inspect.unwrap(images.min_pool2d): min_pool2d,
    inspect.unwrap(recurrent.gru): gru,
    inspect.unwrap(recurrent.lstm): lstm,
}
