"""Convolutions of groups of few channels, depthwise ones above all, row by row of the images.

The columns of all windows are as many copies of an image as a window has elements, and a matrix of
one row, or of few, does nearly nothing with each of them. Here there are as many copies as a window
is wide. They lie so that what the windows of a row read lies in one piece, and that of the next row
begins further on in the same memory: many small products, and each finds its part in the cache.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.lib.stride_tricks import as_strided

from tapetensor.arrays.array import Array
from tapetensor.kernels.numerics.along_axes import PRODUCT_DTYPES
from tapetensor.kernels.numerics.decorators import runs_steps, single_step
from tapetensor.kernels.numerics.windows import Sizes, Window, overlap

# From so many multiplications on OpenBLAS wakes its threads for a product, and for so many products
# they cost more than they give.
_LARGEST = 1 << 18
# So few rows are multiplied one by one, which takes OpenBLAS a third of the time. A product of two
# or three rows together takes it up to four times as long.
_FEW = 4


def are_small(x: Array, weight: Array, groups: int) -> bool:
    """Tell whether the functions here are faster for ``(channels, *spatial, batch)``."""
    rows = x.shape[-2] * x.shape[-1]
    return (
        groups > 1
        and 0 < rows * weight.size // groups <= _LARGEST
        and x.dtype in PRODUCT_DTYPES
        and x.__class__ is weight.__class__
        and runs_steps(x)
    )


@single_step
def convolved(
    x: Array, weight: Array, window: Window, count: Sizes, groups: int
) -> tuple[Array, Array]:
    """Convolve ``(channels, height, width, batch)`` to ``(out, *count, batch)``.

    Beside it come the copies that `summed_products` needs. The weight is of shape
    ``(out, channels / groups, *kernel)``.
    """
    lines = _lines(x, window, count, groups)
    out_channels = weight.shape[0] // groups
    by_group = np.reshape(weight, (groups, 1, out_channels, *weight.shape[1:]))
    matrices = np.reshape(np.moveaxis(by_group, 3, -1), (groups, 1, out_channels, -1))
    # Flipped, a weight has negative strides, which numpy multiplies without the BLAS.
    products = np.matmul(np.ascontiguousarray(matrices), _by_rows(lines, window, count[0]))
    return np.reshape(np.swapaxes(products, 1, 2), (-1, *count, x.shape[-1])), lines


@single_step
def spread(g: Array, weight: Array, window: Window, sizes: Sizes, groups: int) -> Array:
    """Return the cotangent of the images, whose sizes are given.

    That is the convolution of `g`, with zeros between where the windows stood apart, by the weight
    turned around.
    """
    channels, out_channels = weight.shape[1], weight.shape[0] // groups
    by_group = np.reshape(weight, (groups, out_channels, *weight.shape[1:]))
    turned = np.swapaxes(by_group[..., ::-1, ::-1], 1, 2)
    turned = np.reshape(turned, (groups * channels, out_channels, *window.kernel))
    if max(window.stride) > 1:
        apart = [
            (count - 1) * step + 1 for count, step in zip(g.shape[1:], window.stride, strict=False)
        ]
        between = np.zeros((g.shape[0], *apart, g.shape[-1]), g.dtype)
        between[:, :: window.stride[0], :: window.stride[1]] = g
        g = between
    padding = [
        dilation * (kernel - 1) - extra
        for kernel, extra, dilation in zip(
            window.kernel, window.padding, window.dilation, strict=True
        )
    ]
    window = window._replace(stride=(1, 1), padding=tuple(padding))
    return convolved(g, turned, window, sizes, groups)[0]


@single_step
def summed_products(g: Array, lines: Array, window: Window, shape: Sizes) -> Array:
    """Return the cotangent of the weight, whose shape is given."""
    groups, out_channels = lines.shape[0], shape[0] // lines.shape[0]
    count = g.shape[1:-1]
    read = _by_rows(lines, window, count[0])
    rows = np.reshape(g, (groups, out_channels, count[0], -1))
    rows = np.ascontiguousarray(np.swapaxes(rows, 1, 2))
    if out_channels < _FEW:
        products = np.matmul(read[:, :, None], rows[..., None])
    else:
        products = np.matmul(rows, np.swapaxes(read, 2, 3))
    total = np.add.reduce(products, axis=1)
    by_element = np.reshape(total, (groups, out_channels, *window.kernel, shape[1]))
    return np.reshape(np.moveaxis(by_element, -1, 2), shape)


def _lines(x: Array, window: Window, count: Sizes, groups: int) -> Array:
    """Return the padded rows of images: for each column of the window, the elements that it reads.

    They are ``(groups, rows, window width, channels / groups, count, batch)``.
    """
    channels, height, width, batch = x.shape
    of_windows = (count[0] - 1) * window.stride[0] + window.dilation[0] * (window.kernel[0] - 1) + 1
    shape = (groups, of_windows, window.kernel[1], channels // groups, count[1], batch)
    lines = np.empty(shape, x.dtype)
    # The images are put in order once, for they are copied as often as a window is wide.
    x = np.ascontiguousarray(x)
    by_group = np.reshape(x, (groups, channels // groups, height, width, batch))
    rows, into = overlap(height, of_windows, window.padding[0], 1)
    lines[:, : into.start] = 0
    lines[:, into.stop :] = 0
    for column in range(window.kernel[1]):
        before = window.padding[1] - column * window.dilation[1]
        read, written = overlap(width, count[1], before, window.stride[1])
        lines[:, into, column, :, : written.start] = 0
        lines[:, into, column, :, written] = np.swapaxes(by_group[:, :, rows, read], 1, 2)
        lines[:, into, column, :, written.stop :] = 0
    return lines


def _by_rows(lines: Array, window: Window, count: int) -> Array:
    """Return a matrix per group and row of windows: what each of these windows reads, as columns.

    They share memory, in which two rows of windows have lines in common.
    """
    groups, _, width, channels, columns, batch = lines.shape
    of_group, of_line = lines.strides[:2]
    n, itemsize = columns * batch, lines.itemsize
    matrices = as_strided(
        lines,
        (groups, count, window.kernel[0], width * channels, n),
        (
            of_group,
            window.stride[0] * of_line,
            window.dilation[0] * of_line,
            n * itemsize,
            itemsize,
        ),
        writeable=False,
    )
    # This copies if the window's rows are dilated.
    return np.reshape(matrices, (groups, count, math.prod(matrices.shape[2:4]), n))
