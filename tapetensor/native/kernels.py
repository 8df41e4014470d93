"""Kernels that are captured whole, as loops of numbers beside `kernels.numerics`.

No group says them: one step of a sequence needs the one before, and a sum goes where its target
says. Each does what the function of its name does there, whose docstring has the formula, and in
the same order. What a loop is not written for runs on numpy.

Updates of optimizers are one loop over the flat arrays. There `out` holds the gradient and takes
the new values.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import lru_cache, partial
from textwrap import indent
from typing import Any

import numpy as np

from tapetensor.arrays.array import Array
from tapetensor.compiler.trace.node import DType
from tapetensor.kernels import convolution, images, recurrent
from tapetensor.kernels.numerics import (
    along_axes,
    matrices,
    optimizers,
    recurrence,
    segments,
    windows,
)
from tapetensor.native import cache, convolutions, pooling, sequences
from tapetensor.native.lanes import IMPORTED, TURN
from tapetensor.native.loading import FLOATS, are_known, run, seen
from tapetensor.native.scalars import numba
from tapetensor.optim.group import Group, Options, Update

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


def segment_sum(kernel: Callable[..., Array], rows: Array, targets: Array, count: int) -> Array:
    """Return the sums of rows, which are added to their targets one by one."""
    is_known = are_known(rows) and targets.dtype == np.int64 and targets.shape == rows.shape[:1]
    # What is wrong with targets numpy says.
    if not is_known or targets.min() < 0 or targets.max() >= count:
        return kernel(rows, targets, count)
    return segments.one_by_one(_add_rows, rows, targets, count)


def _add_rows(sums: Array, rows: Array, targets: Array) -> None:
    run(_SEGMENT_SUM, sums, np.ascontiguousarray(rows), np.ascontiguousarray(targets))


def sum_in_order(kernel: Callable[..., Array], x: Array, axis: tuple[int, ...]) -> Array:
    """Return the sums over sorted axes of an array in C order, which stay with size 1."""
    kept = x.ndim - len(axis)
    if not axis or axis[0] != kept or not are_known(x):
        return kernel(x, axis)
    sums = np.empty((*x.shape[:kept], *[1] * len(axis)), x.dtype)
    run(_ROW_SUMS, sums.reshape(-1), x.reshape(sums.size, -1))
    return sums


def columns_as_rows(kernel: Callable[..., Array], x: Array) -> Array:
    """Return a stack of matrices with their axes swapped, in C order."""
    if x.ndim == 2 or not are_known(x) or not x.flags.c_contiguous:
        return kernel(x)
    found = np.empty(np.swapaxes(x, -1, -2).shape, x.dtype)
    run(_COLUMNS_AS_ROWS, found, x.reshape(-1, *x.shape[-2:]))
    return found


# What stands beside which kernel. Its first argument is the kernel as it is on numpy.
_BESIDE: tuple[tuple[Callable[..., Any], Callable[..., Any]], ...] = (
    (recurrence.run_recurrence, sequences.run_recurrence),
    (recurrence.run_scan, sequences.run_scan),
    (recurrence.scan_cotangents, sequences.scan_cotangents),
    (recurrent.gru, sequences.gru),
    (recurrent.lstm, sequences.lstm),
    (segments.segment_sum, segment_sum),
    (along_axes.sum_in_order, sum_in_order),
    (matrices.columns_as_rows, columns_as_rows),
    (convolution.conv1d, convolutions.convolution),
    (convolution.conv2d, convolutions.convolution),
    (convolution.conv_transpose1d, convolutions.convolution),
    (convolution.conv_transpose2d, convolutions.convolution),
    (images.max_pool2d, pooling.max_pool2d),
    (images.min_pool2d, pooling.min_pool2d),
    (windows.write_sums, pooling.write_sums),
    (windows.write_shares, pooling.write_shares),
)
_KERNELS: dict[Callable[..., Any], Callable[..., Any]] = {
    inspect.unwrap(kernel): partial(loop, inspect.unwrap(kernel)) for kernel, loop in _BESIDE
}


_LOOP = """
def loop({names}):
    kind = parameter.dtype.type
    for i in range(out.size):
        value, gradient = parameter[i], out[i]
        if coupled_decay != 0:
            gradient += value * kind(coupled_decay)
{step}
        out[i] = value * kind(kept) - step
"""
# What is done with the gradient of one element, and the step that it takes.
_STEPS: dict[Callable[..., None], str] = {
    optimizers.sgd: """
step = gradient * kind(lr)
""",
    optimizers.momentum_sgd: """
moved = velocity[i] * kind(momentum) + gradient * kind(share)
velocity[i] = moved
step = (moved * kind(momentum) + gradient if nesterov else moved) * kind(lr)
""",
    optimizers.adam: """
mean = gradients[i] * kind(beta1) + gradient
square = squares[i] * kind(beta2) + gradient * gradient
gradients[i] = mean
squares[i] = square
step = mean / (np.sqrt(square) + kind(floor)) * kind(rate)
""",
    optimizers.rmsprop: """
square = squares[i] * kind(alpha) + gradient * gradient * kind(1 - alpha)
squares[i] = square
variance = square
if is_centered:
    centre = mean[i] * kind(alpha) + gradient * kind(1 - alpha)
    mean[i] = centre
    variance = square - centre * centre
    # A NaN stays one.
    variance = kind(0) if variance < 0 else variance
root = np.sqrt(variance + kind(eps)) if is_eps_inside else np.sqrt(variance) + kind(eps)
step = gradient / root
if momentum != 0:
    step = velocity[i] * kind(momentum) + step
    velocity[i] = step
step *= kind(lr)
""",
    optimizers.adagrad: """
square = squares[i] + gradient * gradient
squares[i] = square
step = gradient / (np.sqrt(square) + kind(eps)) * kind(lr)
""",
}


def native_update(update: Update) -> Callable[..., None]:
    """Return what runs a step natively; the step itself if its formula has no loop."""
    loop = loop_of(update.group, update.options)
    return update if loop is None else partial(update, loop=loop)


def loop_of(group: Group, options: Options) -> Callable[..., None] | None:
    """Return the loop that updates the parameters of a group; None if its formula has none."""
    classes = tuple([type(one) for one in options(group.steps + 1)])
    return _loop_of(group.kernel, group.dtype, len(group.states), classes)


@lru_cache(maxsize=64)
def _loop_of(
    kernel: Any, dtype: DType, states: int, classes: tuple[type, ...]
) -> Callable[..., None] | None:
    if kernel not in _STEPS or dtype not in FLOATS:
        return None
    # What the kernel is given, but no temporaries: `out` has the gradient.
    given = inspect.getfullargspec(kernel).args
    names = ", ".join([one for one in given if one not in ("gradient", "scratch")])
    arrays = [seen(dtype, 1)] * (2 + states)
    source = _LOOP.format(names=names, step=indent(_STEPS[kernel].strip("\n"), " " * 8))
    return cache.load(source, (*arrays, *[numba().typeof(one(1)) for one in classes]))
