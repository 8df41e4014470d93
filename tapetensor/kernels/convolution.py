"""Convolutions, each product of which is one matrix product over the columns of all windows.

There are three exceptions: those of groups of few channels (see `grouped_convolution`), windows of
a single element, which are columns as they lie in each image, and columns of many elements, of
which a few rows at a time are made (see `columns`).
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from tapetensor.arrays.array import Array
from tapetensor.arrays.stand_ins import is_captured
from tapetensor.kernels.numerics import columns as blocks
from tapetensor.kernels.numerics import grouped_convolution as grouped
from tapetensor.kernels.numerics.along_axes import is_in_order, sum_over
from tapetensor.kernels.numerics.decorators import MANY_STEPS, native_from, whole_kernel
from tapetensor.kernels.numerics.windows import (
    Sizes,
    Window,
    batch_first,
    batch_last,
    gather,
    scatter,
)
from tapetensor.tape import Pullback, Pullbacks
from tapetensor.tape.pullbacks import computed_once

# From so many elements of an image on, a product of its own costs less than turning it.
_LARGE_IMAGE = 64

# So few pairs of rows are multiplied in parts, of so many multiplications at most.
_FEW_ROWS = 300
_SMALL_PRODUCT = 1 << 18

# An output, and the pullbacks of what was convolved and of the weight.
Convolved = tuple[Array, Pullback, Pullback]


def _shape_of_convolved(x: Array, weight: Array, *options: Any) -> tuple[int, ...]:
    *_, window, _ = options
    spatial = len(window.kernel)
    count = window.counts(x.shape[-spatial:])
    return *x.shape[: -1 - spatial], weight.shape[0], *count


@whole_kernel(_shape_of_convolved, for_models=True)
@native_from(MANY_STEPS)
def conv1d(
    x: Array, weight: Array, bias: Array | None, window: Window, groups: int
) -> tuple[Array, Pullbacks]:
    """Convolve ``(*leading, channels, length)``."""
    return _convolution(x, weight, bias, window, groups)


@whole_kernel(_shape_of_convolved, for_models=True)
@native_from(MANY_STEPS)
def conv2d(
    x: Array, weight: Array, bias: Array | None, window: Window, groups: int
) -> tuple[Array, Pullbacks]:
    """Convolve ``(*leading, channels, height, width)``."""
    return _convolution(x, weight, bias, window, groups)


@native_from(MANY_STEPS)
def conv_transpose1d(
    x: Array, weight: Array, bias: Array | None, window: Window, groups: int, sizes: Sizes
) -> tuple[Array, Pullbacks]:
    """The transpose of `conv1d` by its input: every element of `x` writes a window."""
    return _transposed(x, weight, bias, window, groups, sizes)


@native_from(MANY_STEPS)
def conv_transpose2d(
    x: Array, weight: Array, bias: Array | None, window: Window, groups: int, sizes: Sizes
) -> tuple[Array, Pullbacks]:
    """The transpose of `conv2d` by its input: every element of `x` writes a window."""
    return _transposed(x, weight, bias, window, groups, sizes)


def _transposed(
    x: Array, weight: Array, bias: Array | None, window: Window, groups: int, sizes: Sizes
) -> tuple[Array, Pullbacks]:
    """Return what all windows write; its spatial axes have these sizes."""
    spatial = len(sizes)
    source = batch_last(x, spatial)
    count = source.shape[1:-1]
    are_many = blocks.are_many(source, weight, window, count, weight.shape[1] * groups)
    transpose = _transposed_by_blocks if are_many else _transposed_by_columns
    convolved = transpose(source, weight, window, groups, sizes)
    return _finished(convolved, bias, spatial, x.shape[: -1 - spatial])


def _convolution(
    x: Array, weight: Array, bias: Array | None, window: Window, groups: int
) -> tuple[Array, Pullbacks]:
    spatial = len(window.kernel)
    if groups == 1 and window.is_element and _are_large_images(x, weight, spatial):
        return _by_images(x, weight, bias, spatial)
    source = batch_last(x, spatial)
    convolve = _by_columns
    if grouped.are_small(source, weight, groups):
        convolve = _by_rows_of_images
    elif blocks.are_many(source, weight, window, window.counts(source.shape[1:-1]), len(source)):
        convolve = _by_blocks
    convolved = convolve(source, weight, window, groups)
    return _finished(convolved, bias, spatial, x.shape[: -1 - spatial])


def _finished(
    convolved: Convolved, bias: Array | None, spatial: int, leading: Sizes
) -> tuple[Array, Pullbacks]:
    """Return what was convolved with its batch last, with a bias, and its batch first."""
    y, to_source, to_weight = convolved
    if bias is not None:
        y += np.reshape(bias, (y.shape[0], *[1] * (spatial + 1)))
    turned = computed_once(lambda g: batch_last(g, spatial))
    return batch_first(y, leading), _with_bias(
        lambda g: batch_first(to_source(turned(g)), leading),
        lambda g: to_weight(turned(g)),
        bias,
        spatial,
    )


def _are_large_images(x: Array, weight: Array, spatial: int) -> bool:
    """Tell whether products of images where they lie are faster, and take no more memory."""
    if type(x) is not np.ndarray and not is_captured(x):
        return False
    size = math.prod(x.shape[-spatial:])
    return size >= max(_LARGE_IMAGE, *weight.shape[:2]) and is_in_order(x)


def _by_images(
    x: Array, weight: Array, bias: Array | None, spatial: int
) -> tuple[Array, Pullbacks]:
    """Convolve windows of one element by one matrix product per image, in whose order it stays."""
    leading, channels = x.shape[: -1 - spatial], x.shape[-1 - spatial]
    sizes = x.shape[-spatial:]
    batch, size, out_channels = math.prod(leading), math.prod(sizes), weight.shape[0]
    matrix = np.reshape(weight, (out_channels, channels))
    images = np.reshape(x, (batch, channels, size))
    y = np.matmul(matrix, images)
    if bias is not None:
        y += np.reshape(bias, (out_channels, 1))
    by_image = computed_once(lambda g: _in_order(np.reshape(g, (batch, out_channels, size))))

    def pullback_x(g: Array) -> Array:
        return np.reshape(np.matmul(np.swapaxes(matrix, 0, 1), by_image(g)), x.shape)

    def pullback_weight(g: Array) -> Array:
        return np.reshape(np.add.reduce(_by_rows(by_image(g), images), axis=0), weight.shape)

    shape = (*leading, out_channels, *sizes)
    return np.reshape(y, shape), _with_bias(pullback_x, pullback_weight, bias, spatial)


def _by_columns(source: Array, weight: Array, window: Window, groups: int) -> Convolved:
    """Convolve by one matrix product per group."""
    channels, *sizes, batch = source.shape
    count = window.counts(tuple(sizes))
    matrices = _by_group(weight, groups)
    # They are kept for the gradient of the weight: gathering them again would cost as much.
    columns = _by_group(gather(source, window, count), groups, rows=2)
    y = np.reshape(np.matmul(matrices, columns), (weight.shape[0], *count, batch))
    rows = computed_once(lambda g: _by_group(g, groups))

    def to_source(g: Array) -> Array:
        product = np.matmul(np.swapaxes(matrices, 1, 2), rows(g))
        read = np.reshape(product, (channels, window.area, *count, batch))
        return scatter(read, window, tuple(sizes))

    return y, to_source, lambda g: np.reshape(_by_rows(rows(g), columns), weight.shape)


def _transposed_by_columns(
    source: Array, weight: Array, window: Window, groups: int, sizes: Sizes
) -> Convolved:
    """Write windows by one matrix product per group."""
    count, batch = source.shape[1:-1], source.shape[-1]
    matrices, rows = _by_group(weight, groups), _by_group(source, groups)
    columns = np.matmul(np.swapaxes(matrices, 1, 2), rows)
    shape = (groups * weight.shape[1], window.area, *count, batch)
    y = scatter(np.reshape(columns, shape), window, sizes)
    gathered = computed_once(lambda g: _by_group(gather(g, window, count), groups, rows=2))

    def to_source(g: Array) -> Array:
        return np.reshape(np.matmul(matrices, gathered(g)), source.shape)

    return y, to_source, lambda g: np.reshape(_by_rows(rows, gathered(g)), weight.shape)


def _by_rows_of_images(source: Array, weight: Array, window: Window, groups: int) -> Convolved:
    """Convolve by many small products."""
    images, kernels, flat = _as_images(source, weight, window)
    sizes = images.shape[1:-1]
    y, lines = grouped.convolved(images, kernels, flat, flat.counts(sizes), groups)
    return _of_images(
        (y, source, weight),
        lambda g: grouped.spread(g, kernels, flat, sizes, groups),
        lambda g: grouped.summed_products(g, lines, flat, kernels.shape),
    )


def _by_blocks(source: Array, weight: Array, window: Window, groups: int) -> Convolved:
    """Convolve by the columns of a few rows at a time."""
    images, kernels, flat = _as_images(source, weight, window)
    sizes = images.shape[1:-1]
    return _of_images(
        (blocks.convolved(images, kernels, flat, groups), source, weight),
        lambda g: blocks.spread(g, kernels, flat, sizes, groups),
        lambda g: blocks.summed_products(g, images, flat, groups),
    )


def _transposed_by_blocks(
    source: Array, weight: Array, window: Window, groups: int, sizes: Sizes
) -> Convolved:
    """Write windows by the columns of a few rows at a time."""
    images, kernels, flat = _as_images(source, weight, window)
    return _of_images(
        (blocks.spread(images, kernels, flat, (1, *sizes)[-2:], groups), source, weight),
        lambda g: blocks.convolved(g, kernels, flat, groups),
        lambda g: blocks.summed_products(images, g, flat, groups),
    )


def _as_images(source: Array, weight: Array, window: Window) -> tuple[Array, Array, Window]:
    """Return operands and window as those of images: a sequence is one of one row."""
    if len(window.kernel) == 2:
        return source, weight, window
    return np.expand_dims(source, 1), np.expand_dims(weight, 2), window.of_row()


def _of_images(
    arrays: tuple[Array, Array, Array], to_images: Pullback, to_kernels: Pullback
) -> Convolved:
    """Return what images were convolved to, and its pullbacks, as those of source and weight."""
    y, source, weight = arrays
    shape, of_source, of_weight = y.shape, source.shape, weight.shape
    # Reshaping it by way of a flat array copies it into order where needed, once for both.
    in_order = computed_once(lambda g: np.reshape(np.reshape(g, (g.size,)), shape))
    return (
        np.reshape(y, (shape[0], *shape[1 - source.ndim :])),
        lambda g: np.reshape(to_images(in_order(g)), of_source),
        lambda g: np.reshape(to_kernels(in_order(g)), of_weight),
    )


def _by_group(x: Array, groups: int, rows: int = 1) -> Array:
    """Return an array as one matrix per group; its first `rows` axes count the rows of all."""
    rows_of_all = math.prod(x.shape[:rows])
    columns = math.prod(x.shape[rows:])
    return _in_order(np.reshape(x, (groups, rows_of_all // groups, columns)))


def _in_order(matrices: Array) -> Array:
    """Return matrices that the BLAS multiplies."""
    if type(matrices) is np.ndarray:
        # The cotangent of a sum is one number repeated, which numpy multiplies without the BLAS.
        return np.ascontiguousarray(matrices)
    return matrices.copy() if is_captured(matrices) and not is_in_order(matrices) else matrices


def _by_rows(lhs: Array, rhs: Array) -> Array:
    """Return the products of all rows of `lhs` and `rhs`, matrix by matrix.

    The longer side comes first: where both are short and their rows long, as here, that takes as
    little as half the time in OpenBLAS.
    """
    if rhs.shape[1] > lhs.shape[1]:
        return np.swapaxes(_by_rows(rhs, lhs), 1, 2)
    parts = _parts_of_rows(*lhs.shape[1:], rhs.shape[1])
    if parts == 1:
        product: Array = np.matmul(lhs, np.swapaxes(rhs, 1, 2))
        return product
    left, right = [np.reshape(one, (*one.shape[:2], parts, -1)) for one in (lhs, rhs)]
    products = np.matmul(np.swapaxes(left, 1, 2), np.moveaxis(right, 1, 3))
    total: Array = np.add.reduce(products, axis=1)
    return total


@lru_cache(maxsize=256)
def _parts_of_rows(count: int, size: int, others: int) -> int:
    """Return into how many parts of one size long rows are cut before they are multiplied.

    A product of so few rows runs on one thread, and OpenBLAS has kernels for small matrices, which
    take a third of the time.
    """
    fewest = -(-count * others * size // _SMALL_PRODUCT)
    if count * others > _FEW_ROWS or fewest < 2:
        return 1
    return next((parts for parts in range(fewest, 2 * fewest) if size % parts == 0), 1)


def _with_bias(
    pullback_x: Pullback, pullback_weight: Pullback, bias: Array | None, spatial: int
) -> Pullbacks:
    """Return the pullbacks of all operands, of the bias if there is one."""
    if bias is None:
        return pullback_x, pullback_weight
    axes = tuple(range(1, spatial + 2))
    return (
        pullback_x,
        pullback_weight,
        lambda g: np.reshape(sum_over(batch_last(g, spatial), axes), bias.shape),
    )
