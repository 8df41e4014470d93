"""Windows of images as loops of numbers, beside `kernels.images` and `numerics.windows`.

In eager mode extremes are found plane by plane. Of what windows write the batch is last: what is
done for one place of an image is a short loop over the images.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial

import numpy as np

from tapetensor.arrays.array import Array
from tapetensor.compiler.emit.code import indented
from tapetensor.kernels.numerics.windows import Sizes, Window
from tapetensor.native.loading import are_known, pullbacks_of, run, run_over
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
    extremes: str, shares: str, beaten: str, kernel: Kernel, x: Array, window: Window
) -> tuple[Array, Pullbacks]:
    """Return the largest or the smallest element of each window.

    Args:
        extremes: the source of the loop that finds them.
        shares: the source of the loop that shares their cotangents.
        beaten: how an element compares that is none of them.
        kernel: the kernel as it is on numpy.
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
        _EXTREMES.format(fill=fill, wins=wins),
        _SHARES.format(fill=fill, beaten=beaten),
        beaten,
    )
    for fill, wins, beaten in (("-math.inf", ">=", "<"), ("math.inf", "<=", ">"))
]


# A line of an image takes all that was read of it before the next is begun.
_SUMS_OF_WINDOWS = """
def loop(out, columns, height, width, stride, padding, dilation):
    channels, rows, _ = out.shape
    _, _, down, across, batch = columns.shape
    # Neighbours that lie end to end are one run.
    count, run = (1, across * batch) if stride[1] == 1 else (across, batch)
    for channel in range(channels):
        for row in range(rows):
            line = out[channel, row]
            line[:] = 0
            for y in range(height):
                above = row - y * dilation[0]
                i = above // stride[0]
                if above < 0 or i >= down or i * stride[0] != above:
                    continue
                for x in range(width):
                    held = columns[channel, y * width + x, i].reshape(-1)
                    for j in range(count):
                        start = (j * stride[1] + x * dilation[1]) * batch
                        target, added = line[start : start + run], held[j * run : (j + 1) * run]
                        for k in range(run):
                            target[k] += added[k]
"""
# Where windows overlap, the last one comes first, as what it adds comes first on numpy. Elsewhere
# they come in the order in which the processor fetches ahead.
_SHARES_OF_WINDOWS = """
def loop(result, g, full, best, height, width, stride, padding, dilation):
    is_apart = dilation[0] * (height - 1) < stride[0] and dilation[1] * (width - 1) < stride[1]
    channels, rows, columns, batch = full.shape
    _, down, across, _ = best.shape
    is_covered = padding == (0, 0) and (rows, columns) == (down * height, across * width)
    if not (is_apart and is_covered):
        result[:] = 0
    winners, share = np.empty(batch, full.dtype), np.empty(batch, full.dtype)
    read_from, into = full.reshape(-1), result.reshape(-1)
    highest_of, given = best.reshape(-1), g.reshape(-1)
    for channel in range(channels):
        for down_to in range(down):
            i = down_to if is_apart else down - 1 - down_to
            for across_to in range(across):
                j = across_to if is_apart else across - 1 - across_to
                at = ((channel * down + i) * across + j) * batch
                highest, cotangent = highest_of[at : at + batch], given[at : at + batch]
                winners[:] = 0
                for is_counted in (True, False):
                    for y in range(height):
                        row = i * stride[0] + y * dilation[0]
                        if row < padding[0] or row >= rows - padding[0]:
                            continue
                        for x in range(width):
                            column = j * stride[1] + x * dilation[1]
                            if column < padding[1] or column >= columns - padding[1]:
                                continue
                            at = ((channel * rows + row) * columns + column) * batch
                            read, target = read_from[at : at + batch], into[at : at + batch]
                            if is_counted:
                                for k in range(batch):
                                    winners[k] += not (read[k] {beaten} highest[k])
                            elif is_apart:
                                for k in range(batch):
                                    target[k] = share[k] * (not (read[k] {beaten} highest[k]))
                            else:
                                for k in range(batch):
                                    target[k] += share[k] * (not (read[k] {beaten} highest[k]))
                    if is_counted:
                        for k in range(batch):
                            share[k] = cotangent[k] / winners[k]
"""
_BEATEN: dict[np.ufunc, str] = {np.less: "<", np.greater: ">"}


def write_sums(kernel: Callable[..., None], result: Array, columns: Array, window: Window) -> None:
    """Write what windows hold, added up where they read it."""
    if result.ndim != 4 or not (are_known(result, columns) and result.flags.c_contiguous):
        kernel(result, columns, window)
        return
    lines = result.reshape(*result.shape[:2], -1)
    run(_SUMS_OF_WINDOWS, lines, np.ascontiguousarray(columns), *window.kernel, *window[1:])


def write_shares(
    kernel: Callable[..., None],
    result: Array,
    g: Array,
    full: Array,
    best: Array,
    is_beaten: np.ufunc,
    window: Window,
) -> None:
    """Write the cotangent of a padded array: the winners of a window share its own equally."""
    is_known = are_known(result, g, full, best) and result.flags.c_contiguous
    if best.ndim != 4 or not is_known:
        kernel(result, g, full, best, is_beaten, window)
        return
    in_order = [np.ascontiguousarray(one) for one in (g, full, best)]
    source = _SHARES_OF_WINDOWS.format(beaten=_BEATEN[is_beaten])
    run(source, result, *in_order, *window.kernel, *window[1:])
