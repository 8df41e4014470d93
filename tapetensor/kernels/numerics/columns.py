"""Convolutions by products of columns that are never there all at once.

The columns of all windows take as many times the memory of the images as a window has elements.
Here those of a few rows of windows are gathered, multiplied while they are in the cache, and
written over by the next. On the way back they are gathered again. All arrays have their batch last
(see `windows`), and sequences are images of one column.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from tapetensor.arrays.array import Array
from tapetensor.arrays.stand_ins import CapturedArray
from tapetensor.kernels.numerics import threads
from tapetensor.kernels.numerics.steps import runs_steps, single_step
from tapetensor.kernels.numerics.sums import PRODUCT_DTYPES
from tapetensor.kernels.numerics.windows import Sizes, Window, overlap

# So many elements of columns stay in a second-level cache.
_BLOCK = 1 << 18
# Of fewer elements all columns are made at once, and kept for the way back.
_MANY = 1 << 21


def are_many(x: Array, weight: Array, window: Window, count: Sizes, channels: int) -> bool:
    """Tell whether columns are too many to keep, on arrays that the functions here can take.

    Args:
        x: ``(channels, *spatial, batch)``.
        weight: what it is convolved by.
        window: what is read.
        count: how many windows there are along the spatial axes.
        channels: of how many channels they read.
    """
    return (
        channels * window.area * math.prod(count) * x.shape[-1] >= _MANY
        and not window.is_element
        and x.dtype == weight.dtype
        and x.dtype in PRODUCT_DTYPES
        and all(
            runs_steps(one) and not (isinstance(one, CapturedArray) and one.prefers_steps)
            for one in (x, weight)
        )
    )


@single_step
def convolved(x: Array, weight: Array, window: Window, groups: int) -> Array:
    """Convolve ``(channels, height, width, batch)`` by (out, channels / groups, *kernel)."""
    x = np.ascontiguousarray(x)
    channels, *sizes, batch = x.shape
    down, right = window.counts((sizes[0], sizes[1]))
    matrices = np.reshape(weight, (groups, weight.shape[0] // groups, -1))
    y = np.empty((weight.shape[0], down, right, batch), x.dtype)
    by_group = y.reshape(groups, -1, down, right * batch)
    rows = _rows_of_block(channels * window.area * right * batch, down)

    def work(first: int, last: int) -> None:
        last = min(last * rows, down)
        for start, columns in _columns(x, window, (right, rows), first * rows, last):
            count = columns.shape[2]
            products = np.matmul(matrices, columns.reshape(groups, matrices.shape[2], -1))
            by_group[:, :, start : start + count] = products.reshape(
                groups, -1, count, right * batch
            )

    threads.multiply_apart(work, -(-down // rows))
    return y


@single_step
def spread(g: Array, weight: Array, window: Window, sizes: Sizes, groups: int) -> Array:
    """Return the cotangent of the images, whose sizes are given."""
    out_channels, down, right, batch = g.shape
    channels = weight.shape[1] * groups
    by_group = np.ascontiguousarray(g).reshape(groups, -1, down, right * batch)
    matrices = np.swapaxes(np.reshape(weight, (groups, out_channels // groups, -1)), 1, 2)
    x = np.zeros((channels, *sizes, batch), g.dtype)
    rows = _rows_of_block(channels * window.area * right * batch, down)
    places = _places(window, sizes, right)

    def work(of_groups: slice, of_rows: slice, of_channels: slice) -> None:
        target = x[of_channels]
        for start in range(0, down, rows):
            count = min(rows, down - start)
            part = by_group[of_groups, :, start : start + count]
            products = np.matmul(
                matrices[of_groups, of_rows], part.reshape(*part.shape[:2], -1)
            ).reshape(len(target), window.area, count, right, batch)
            for element, (row, read, written) in enumerate(places):
                above, below = overlap(
                    sizes[0], count, row - start * window.stride[0], window.stride[0]
                )
                target[:, above, read] += products[:, element, below, written]

    _for_each_channel(work, channels, groups, window.area)
    return x


@single_step
def summed_products(g: Array, x: Array, window: Window, groups: int) -> Array:
    """Return the cotangent of the weight: ``(out, channels / groups, *kernel)``."""
    x = np.ascontiguousarray(x)
    channels, batch = x.shape[0], x.shape[-1]
    out_channels, down, right, _ = g.shape
    by_group = np.ascontiguousarray(g).reshape(groups, -1, down, right * batch)
    size = out_channels * channels // groups * window.area
    total = np.zeros((groups, out_channels // groups, size // out_channels), g.dtype)
    # The products of a block have the size of the weight, and are added up.
    rows = _rows_of_block(channels * window.area * right * batch, down, max(_BLOCK, size))

    def work(of_groups: slice, of_rows: slice, of_channels: slice) -> None:
        for start, columns in _columns(x[of_channels], window, (right, rows), 0, down):
            count = columns.shape[2]
            part = by_group[of_groups, :, start : start + count]
            lhs = part.reshape(*part.shape[:2], -1)
            rhs = columns.reshape(len(lhs), -1, lhs.shape[2])
            total[of_groups, :, of_rows] += np.matmul(lhs, np.swapaxes(rhs, 1, 2))

    _for_each_channel(work, channels, groups, window.area)
    return total.reshape(out_channels, channels // groups, *window.kernel)


def _rows_of_block(of_row: int, rows: int, size: int = _BLOCK) -> int:
    """Return how many rows of windows make a block, if one has so many elements."""
    return max(1, min(rows, size // of_row))


def _for_each_channel(
    work: Callable[[slice, slice, slice], None], channels: int, groups: int, area: int
) -> None:
    """Work on shares of the groups, or of the channels of a single one, which write apart.

    The function takes which groups, rows of the matrices of a group, and channels a share has.
    """

    def work_on(first: int, last: int) -> None:
        if groups == 1:
            work(slice(None), slice(first * area, last * area), slice(first, last))
        else:
            each = channels // groups
            work(slice(first, last), slice(None), slice(first * each, last * each))

    threads.multiply_apart(work_on, channels if groups == 1 else groups)


def _places(window: Window, sizes: Sizes, right: int) -> list[tuple[int, slice, slice]]:
    """Return, for each element of a window, the row above the images where the first one reads it,
    and which columns of the images are read by which windows of a row.
    """
    found = []
    for row in range(window.kernel[0]):
        for column in range(window.kernel[1]):
            before = window.padding[1] - column * window.dilation[1]
            along = overlap(sizes[1], right, before, window.stride[1])
            found.append((window.padding[0] - row * window.dilation[0], *along))
    return found


def _columns(
    x: Array, window: Window, shape: tuple[int, int], first: int, last: int
) -> Iterator[tuple[int, Array]]:
    """Yield what rows of windows read, each time in the same memory, and where the rows begin.

    Args:
        x: the images.
        window: what is read.
        shape: how many windows a row has, and how many rows a block.
        first: the first row of windows.
        last: the one behind the last row.
    """
    right, rows = shape
    channels, *sizes, batch = x.shape
    places = _places(window, (sizes[0], sizes[1]), right)
    memory = np.empty(channels * window.area * min(rows, last - first) * right * batch, x.dtype)
    for start in range(first, last, rows):
        count = min(rows, last - start)
        filled = (channels, window.area, count, right, batch)
        columns = memory[: math.prod(filled)].reshape(filled)
        for element, (row, read, written) in enumerate(places):
            before = row - start * window.stride[0]
            above, below = overlap(sizes[0], count, before, window.stride[0])
            part = columns[:, element]
            part[:, : below.start] = 0
            part[:, below.stop :] = 0
            part[:, below, : written.start] = 0
            part[:, below, written.stop :] = 0
            part[:, below, written] = x[:, above, read]
        yield start, columns
