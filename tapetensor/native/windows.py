"""What windows write, as loops of numbers beside `numerics.windows`.

The batch is last: what is done for one place of an image is a short loop over the images.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable

import numpy as np

from tapetensor.arrays.array import Array
from tapetensor.kernels.numerics import windows
from tapetensor.kernels.numerics.windows import Window
from tapetensor.native.loading import are_known, run

# As they are on numpy.
_sums: Callable[..., None] = inspect.unwrap(windows.write_sums)
_shares: Callable[..., None] = inspect.unwrap(windows.write_shares)

# A line of an image takes all that was read of it before the next is begun.
_SUMS = """
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
_SHARES = """
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


def write_sums(result: Array, columns: Array, window: Window) -> None:
    """Write what windows hold, added up where they read it."""
    if result.ndim != 4 or not (are_known(result, columns) and result.flags.c_contiguous):
        _sums(result, columns, window)
        return
    lines = result.reshape(*result.shape[:2], -1)
    run(_SUMS, lines, np.ascontiguousarray(columns), *window.kernel, *window[1:])


def write_shares(
    result: Array, g: Array, full: Array, best: Array, is_beaten: np.ufunc, window: Window
) -> None:
    """Write the cotangent of a padded array: the winners of a window share its own equally."""
    is_known = are_known(result, g, full, best) and result.flags.c_contiguous
    if best.ndim != 4 or not is_known:
        _shares(result, g, full, best, is_beaten, window)
        return
    in_order = [np.ascontiguousarray(one) for one in (g, full, best)]
    source = _SHARES.format(beaten=_BEATEN[is_beaten])
    run(source, result, *in_order, *window.kernel, *window[1:])
