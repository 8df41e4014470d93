"""Extremes of windows in eager mode as loops over planes, beside `kernels.images`."""

from __future__ import annotations

import inspect
from functools import cache, partial

import numpy as np

from tapetensor.arrays.array import Array
from tapetensor.compiler.emit.code import indented
from tapetensor.kernels import images
from tapetensor.kernels.numerics.windows import Sizes, Window
from tapetensor.native.loading import are_known, run_over
from tapetensor.native.plain import pullbacks_of
from tapetensor.native.planes import FRAMES, frame_of
from tapetensor.tape import Pullbacks
from tapetensor.tape.pullbacks import Kernel, Needed

# Windows of more elements are not written out.
_FEW_ELEMENTS = 16

# Functions for the source of a loop: between windows and a run. Those of a row stand as far apart
# as in a plane, because to take columns apart costs more than to pass over what is between them.
_PLANES = (
    FRAMES
    + """
def spread(values, run, across, step):
    down, right = values.shape
    for i in range(down):
        line, target = values[i], run[i * across :]
        if step == 1:
            for j in range(right):
                target[j] = line[j]
        else:
            for j in range(right):
                target[j * step] = line[j]


def pick(run, values, across, step):
    down, right = values.shape
    for i in range(down):
        line, source = values[i], run[i * across :]
        if step == 1:
            for j in range(right):
                line[j] = source[j]
        else:
            for j in range(right):
                line[j] = source[j * step]


spread, pick = compiled(spread), compiled(pick)


"""
)
# First those of the columns of windows, then the extremes of these along the rows.
_EXTREMES = (
    _PLANES
    + """
def loop(first, last, x, best, shape, run, step, kernel, stride, padding, dilation):
    frame = np.full(stride[0] * shape[0] * shape[1] + padding[1], {fill}, x.dtype)
    high = run + (kernel[1] - 1) * dilation[1]
    of_columns, found = np.empty(high, x.dtype), np.empty(run, x.dtype)
    for plane in range(first, last):
        enter(x[plane], frame, shape, stride, padding)
        for k in range(high):
            of_columns[k] = frame[k]
        for y in range(1, kernel[0]):
            read = frame[place(y * dilation[0], 0, shape, stride) :]
            for k in range(high):
                lhs, rhs = of_columns[k], read[k]
                of_columns[k] = choose(lhs {wins} rhs, lhs, choose(lhs == lhs, rhs, lhs))
        for k in range(run):
            found[k] = of_columns[k]
        for z in range(1, kernel[1]):
            read = of_columns[z * dilation[1] :]
            for k in range(run):
                lhs, rhs = found[k], read[k]
                found[k] = choose(lhs {wins} rhs, lhs, choose(lhs == lhs, rhs, lhs))
        pick(found, best[plane], shape[1], step)
"""
)
# The winners of a window share its cotangent equally; padding wins nothing.
_SHARES = (
    _PLANES
    + """
def loop(first, last, x, best, g, cotangent, shape, run, step, kernel, stride, padding, dilation):
    zero, one = x.dtype.type(0), x.dtype.type(1)
    size = stride[0] * shape[0] * shape[1] + padding[1]
    frame, inside = np.full(size, {fill}, x.dtype), np.zeros(size, x.dtype)
    enter(np.ones(x.shape[1:], x.dtype), inside, shape, stride, padding)
    shares = np.empty(size, x.dtype)
    # Between windows nothing wins, and there is nothing to share.
    highest, share = np.full(run, -{fill}, x.dtype), np.zeros(run, x.dtype)
    winners = np.empty(run, x.dtype)
    for plane in range(first, last):
        enter(x[plane], frame, shape, stride, padding)
        spread(best[plane], highest, shape[1], step)
        spread(g[plane], share, shape[1], step)
        winners[:] = 0
        for y in range(kernel[0]):
            for z in range(kernel[1]):
                at = place(y * dilation[0], z * dilation[1], shape, stride)
                read, counts = frame[at : at + run], inside[at : at + run]
                for k in range(run):
                    winners[k] += choose(read[k] {beaten} highest[k], zero, counts[k])
        for k in range(run):
            share[k] = share[k] / choose(winners[k] > zero, winners[k], one)
        shares[:] = 0
        for y in range(kernel[0]):
            for z in range(kernel[1]):
                at = place(y * dilation[0], z * dilation[1], shape, stride)
                read, target = frame[at : at + run], shares[at : at + run]
                for k in range(run):
                    target[k] += choose(read[k] {beaten} highest[k], zero, share[k])
        leave(shares, cotangent[plane], shape, stride, padding)
"""
)
# Of windows that lie apart, and of which none reads padding, each is written by itself.
_SHARES_APART = """
def loop(first, last, x, best, g, cotangent):
    zero, one = x.dtype.type(0), x.dtype.type(1)
    for plane in range(first, last):
        read, target = x[plane], cotangent[plane]
        if {leaves_gaps}:
            target[:] = 0
        for i in range(best.shape[1]):
            highest, share = best[plane, i], g[plane, i]
            for j in range(best.shape[2]):
{lines}
"""


def _extreme(
    kernel: Kernel, extremes: str, shares: str, beaten: str, x: Array, window: Window
) -> tuple[Array, Pullbacks]:
    """Return the largest or the smallest element of each window.

    Args:
        kernel: the kernel as it is on numpy.
        extremes: the source of the loop that finds them.
        shares: the source of the loop that shares their cotangents.
        beaten: how an element compares that is none of them.
        x: the images.
        window: what is looked at.
    """
    if not are_known(x) or not x.flags.c_contiguous:
        return kernel(x, window)
    planes = x.reshape(-1, *x.shape[-2:])
    best = np.empty((len(planes), *window.counts(planes.shape[1:])), x.dtype)
    step = window.stride[1]
    by_column = window._replace(stride=(window.stride[0], 1))
    places = *frame_of(planes.shape[1:], by_column), step, *by_column
    run_over(extremes, x.size, len(planes), planes, best, *places)

    def shared(needed: Needed, g: Array) -> list[Array]:
        cotangent = np.empty_like(planes)
        arrays = planes, best, g.reshape(best.shape), cotangent
        if window.is_disjoint and not any(window.padding) and window.area <= _FEW_ELEMENTS:
            apart = _shares_apart(window, planes.shape[1:], beaten)
            run_over(apart, x.size, len(planes), *arrays)
        else:
            run_over(shares, x.size, len(planes), *arrays, *places)
        return [cotangent.reshape(x.shape)]

    y = best.reshape(*x.shape[:-2], *best.shape[1:])
    return y, pullbacks_of(kernel, (x, window), y, (True,), shared)


@cache
def _shares_apart(window: Window, sizes: Sizes, beaten: str) -> str:
    """Return the source of what shares the cotangents of windows that lie apart."""
    covered = [
        count * size for count, size in zip(window.counts(sizes), window.kernel, strict=True)
    ]
    places = [
        f"i * {window.stride[0]} + {y * window.dilation[0]}, "
        f"j * {window.stride[1]} + {z * window.dilation[1]}"
        for y in range(window.kernel[0])
        for z in range(window.kernel[1])
    ]
    won = [f"won{at}" for at in range(len(places))]
    lines = [
        *[
            f"{one} = choose(read[{place}] {beaten} highest[j], zero, one)"
            for one, place in zip(won, places, strict=True)
        ],
        f"each = share[j] / ({' + '.join(won)})",
        *[f"target[{place}] = {one} * each" for one, place in zip(won, places, strict=True)],
    ]
    leaves_gaps = covered != list(sizes)
    return _SHARES_APART.format(leaves_gaps=leaves_gaps, lines="\n".join(indented(lines, 4)))


max_pool2d, min_pool2d = [
    partial(
        _extreme,
        inspect.unwrap(kernel),
        _EXTREMES.format(fill=fill, wins=wins),
        _SHARES.format(fill=fill, beaten=beaten),
        beaten,
    )
    for kernel, fill, wins, beaten in (
        (images.max_pool2d, "-math.inf", ">=", "<"),
        (images.min_pool2d, "math.inf", "<=", ">"),
    )
]
