"""Convolutions by products of columns that are never there all at once.

The columns of all windows take as many times the memory of the images as a window has elements.
Here those of a few windows are gathered, multiplied while they are in the cache, and written
over by the next. On the way back they are gathered again. All arrays have their batch last
(see `windows`), and sequences are images of one row.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import numpy as np

from tapetensor.arrays.array import Array
from tapetensor.kernels.numerics import threads
from tapetensor.kernels.numerics.along_axes import PRODUCT_DTYPES
from tapetensor.kernels.numerics.decorators import may_hide_parts, single_step
from tapetensor.kernels.numerics.windows import Sizes, Window, overlap

# So many elements of columns stay in a cache.
_BLOCK = 1 << 19
# OpenBLAS multiplies fewer columns more slowly.
_FEWEST = 512
# Of fewer elements all columns are made at once, and kept for the way back.
_MANY = 1 << 21


def are_many(x: Array, weight: Array, window: Window, count: Sizes, channels: int) -> bool:
    """Tell whether columns are too many to keep, on arrays that the functions here can take.

    The windows, of which there are `count` along the spatial axes, read so many channels.
    """
    return (
        channels * window.area * math.prod(count) * x.shape[-1] >= _MANY
        and not window.is_element
        and x.dtype == weight.dtype
        and x.dtype in PRODUCT_DTYPES
        and may_hide_parts(x, weight)
    )


# Which rows of windows a block has, and which windows of a row.
Block: TypeAlias = tuple[slice, slice]


@single_step
def convolved(x: Array, weight: Array, window: Window, groups: int) -> Array:
    """Convolve ``(channels, height, width, batch)`` by (out, channels / groups, *kernel)."""
    x = np.ascontiguousarray(x)
    down, right = window.counts((x.shape[1], x.shape[2]))
    batch = x.shape[-1]
    matrices = np.reshape(weight, (groups, weight.shape[0] // groups, -1))
    y = np.empty((weight.shape[0], down, right, batch), x.dtype)
    by_group = y.reshape(groups, -1, down, right, batch)
    blocks = _blocks(len(x) * window.area, (down, right, batch))

    def work(first: int, last: int) -> None:
        for (rows, windows), columns in _gathered(x, window, blocks[first:last]):
            products = np.matmul(matrices, columns.reshape(groups, matrices.shape[2], -1))
            part = by_group[:, :, rows, windows]
            part[...] = products.reshape(part.shape)

    threads.multiply_apart(work, len(blocks))
    return y


@single_step
def spread(g: Array, weight: Array, window: Window, sizes: Sizes, groups: int) -> Array:
    """Return the cotangent of the images, whose sizes are given."""
    out_channels, down, right, batch = g.shape
    channels = weight.shape[1] * groups
    by_group = g.reshape(groups, -1, down, right, batch)
    matrices = np.swapaxes(np.reshape(weight, (groups, out_channels // groups, -1)), 1, 2)
    x = np.zeros((channels, *sizes, batch), g.dtype)
    blocks = _blocks(channels * window.area, (down, right, batch))

    def work(of_groups: slice, of_rows: slice, of_channels: slice) -> None:
        target = x[of_channels]
        for rows, windows in blocks:
            part = by_group[of_groups, :, rows, windows]
            flow = part.reshape(*part.shape[:2], -1)
            products = np.matmul(matrices[of_groups, of_rows], flow)
            products = products.reshape(len(target), window.area, *part.shape[2:])
            places = _places(window, sizes, (rows, windows))
            for element, (above, below, before, behind) in enumerate(places):
                target[:, above, before] += products[:, element, below, behind]

    _for_each_channel(work, channels, groups, window.area)
    return x


@single_step
def summed_products(g: Array, x: Array, window: Window, groups: int) -> Array:
    """Return the cotangent of the weight: ``(out, channels / groups, *kernel)``."""
    x = np.ascontiguousarray(x)
    channels, batch = x.shape[0], x.shape[-1]
    out_channels, down, right, _ = g.shape
    by_group = g.reshape(groups, -1, down, right, batch)
    read = channels // groups * window.area
    # Turned, for OpenBLAS is faster where the longer side comes first.
    total = np.zeros((groups, read, out_channels // groups), g.dtype)
    # The products of a block have the size of the weight, and are added up.
    blocks = _blocks(channels * window.area, (down, right, batch), total.size)

    def work(of_groups: slice, of_rows: slice, of_channels: slice) -> None:
        for (rows, windows), columns in _gathered(x[of_channels], window, blocks):
            part = by_group[of_groups, :, rows, windows]
            flow = part.reshape(*part.shape[:2], -1)
            lhs = columns.reshape(len(flow), -1, flow.shape[2])
            total[of_groups, of_rows] += np.matmul(lhs, np.swapaxes(flow, 1, 2))

    _for_each_channel(work, channels, groups, window.area)
    turned = np.ascontiguousarray(np.swapaxes(total, 1, 2))
    return turned.reshape(out_channels, channels // groups, *window.kernel)


def _blocks(height: int, shape: Sizes, at_least: int = 0) -> list[Block]:
    """Return blocks of windows that have about as many elements of columns each.

    A column has `height` elements, a block `at_least` so many if there are as many. The shape says
    how many rows of windows there are, how many windows in a row, and how many images.
    """
    down, right, batch = shape
    count = max(_FEWEST, _BLOCK // height, at_least // height) // batch
    rows, windows = max(1, count // right), max(1, min(count, right))
    return [
        (slice(row, min(row + rows, down)), slice(first, min(first + windows, right)))
        for row in range(0, down, rows)
        for first in range(0, right, windows)
    ]


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


def _places(window: Window, sizes: Sizes, block: Block) -> list[tuple[slice, slice, slice, slice]]:
    """Return what the windows of a block read, for each element of a window.

    That is which rows of the images, for which rows of the block, and the same of the columns.
    """
    along = [
        [
            overlap(size, of.stop - of.start, padding - at * dilation - of.start * stride, stride)
            for at in range(kernel)
        ]
        for size, of, kernel, stride, padding, dilation in zip(sizes, block, *window, strict=True)
    ]
    return [(*down, *right) for down in along[0] for right in along[1]]


def _gathered(x: Array, window: Window, blocks: Sequence[Block]) -> Iterator[tuple[Block, Array]]:
    """Yield what the windows of each block read, each time in the same memory."""
    channels, *sizes, batch = x.shape
    counts = [[of.stop - of.start for of in block] for block in blocks]
    most = max([math.prod(one) for one in counts])
    memory = np.empty(channels * window.area * most * batch, x.dtype)
    for block, count in zip(blocks, counts, strict=True):
        filled = (channels, window.area, *count, batch)
        columns = memory[: math.prod(filled)].reshape(filled)
        places = _places(window, (sizes[0], sizes[1]), block)
        for element, (above, below, before, behind) in enumerate(places):
            part = columns[:, element]
            part[:, : below.start] = 0
            part[:, below.stop :] = 0
            part[:, below, : behind.start] = 0
            part[:, below, behind.stop :] = 0
            part[:, below, behind] = x[:, above, before]
        yield block, columns
