"""Sums over axes, as products with ones where that is faster: short rows, and columns.

numpy's reduction starts anew for every row, which costs more than the sum of a short one, and a
matrix product does not: it takes a fifth to a tenth of the time.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from tapetensor.arrays.array import Array
from tapetensor.arrays.stand_ins import is_captured
from tapetensor.kernels.numerics.decorators import MANY_STEPS, native_from

# A product adds one element after the other in each lane of a vector. Up to so many in a row, that
# is as exact as a reduction, which adds in pairs.
SHORT = 1 << 10
# With fewer rows a reduction starts soon enough.
FEW = 8
# From so many rows on their sum is one of blocks.
_MANY_ROWS = 1 << 13
# The dtypes that the BLAS multiplies.
PRODUCT_DTYPES = frozenset({np.dtype(np.float32), np.dtype(np.float64)})
# From so many elements in a row on a product of rows pays beside what else is to be done.
WORTH_PRODUCT = 32
# OpenBLAS's product of rows of so many float32s also reads what nobody wrote, with AVX-512.
# No sum is another by that, but where it is a signalling NaN numpy warns of an invalid value.
_READS_TOO_FAR = 5
# So many ones are kept for the next sum over as many.
_KEPT = 1 << 14


def sum_over(x: Array, axis: tuple[int, ...]) -> Array:
    """Return the sums over sorted axes >= 0, which stay with size 1."""
    is_known = type(x) is np.ndarray or is_captured(x)
    if not axis or x.dtype not in PRODUCT_DTYPES or not is_known:
        return np.add.reduce(x, axis=axis, keepdims=True, dtype=x.dtype)
    if is_in_order(x):
        return sum_in_order(x, axis)
    order = _order_in_memory(x)
    turned = x.transpose(order)
    if not is_in_order(turned):
        return sum_by_blocks(x, axis)
    sums = sum_in_order(turned, _axes_after(order, axis))
    return sums.transpose([order.index(one) for one in range(x.ndim)])


def products_over(x: Array, y: Array, axis: tuple[int, ...]) -> Array:
    """Return ``sum_over(x * y, axis)`` for arrays of one shape."""
    is_numpy = type(x) is np.ndarray and type(y) is np.ndarray
    if (is_numpy or (is_captured(x) and is_captured(y))) and x.dtype in PRODUCT_DTYPES:
        order = _order_in_memory(x)
        lhs, rhs = np.transpose(x, order), np.transpose(y, order)
        axes = _axes_after(order, axis)
        kept, width = _end_of(lhs.shape, axes)
        if width >= WORTH_PRODUCT and is_in_order(lhs) and is_in_order(rhs):
            rows = (*lhs.shape[:kept], width)
            lhs, rhs = np.reshape(lhs, rows), np.reshape(rhs, rows)
            products = np.vecdot(lhs, rhs)
            sums: Array = np.reshape(products, (*rows[:-1], *[1] * (x.ndim - kept)))
            rest = tuple([one for one in axes if one < kept])
            if rest:
                sums = np.add.reduce(sums, axis=rest, keepdims=True)
            return np.transpose(sums, [order.index(one) for one in range(x.ndim)])
    return sum_over(x * y, axis)


def row_sums(x: Array) -> Array:
    """Return the sums over the last axis, which stays with size 1."""
    return sum_over(x, (x.ndim - 1,))


def row_products(x: Array, y: Array) -> Array:
    """Return the sums of ``x * y`` over the last axis, which stays with size 1."""
    is_known = type(x) is np.ndarray or is_captured(x)
    # Of elements that lie apart a sum of products is faster.
    if is_known and WORTH_PRODUCT <= x.shape[-1] <= SHORT and _lies_by_row(x):
        products: Array = np.vecdot(x, y)
        return products.reshape(*x.shape[:-1], 1)
    return row_sums(x * y)


def sum_of_rows(x: Array) -> Array:
    """Return the sums over all axes but the last, which are left out."""
    if type(x) is not np.ndarray and not is_captured(x):
        plain: Array = np.add.reduce(x, axis=tuple(range(x.ndim - 1)))
        return plain
    rows = math.prod(x.shape[:-1])
    matrix = x if x.ndim == 2 else np.reshape(x, (rows, x.shape[-1]))
    if rows > _MANY_ROWS:
        # One sum of so many would lose digits; those of blocks are as many fewer.
        whole = rows - rows % SHORT
        blocks = np.reshape(matrix[:whole], (-1, SHORT, x.shape[-1]))
        sums: Array = np.add.reduce(np.matmul(ones(SHORT, x.dtype), blocks), axis=0)
        return sums if whole == rows else sums + sum_of_rows(matrix[whole:])
    # The method gives one number of one row back as it is, where the ufunc makes 0 of -0.
    if type(x) is np.ndarray and x.size != 1:
        product: Array = ones(rows, x.dtype).dot(matrix)
        return product
    # The method above copies what the BLAS cannot read.
    captured: Array = np.matmul(ones(rows, x.dtype), without_repeats(matrix))
    return captured


def without_repeats(x: Array) -> Array:
    """Return a copy of a captured array in which elements are repeated; any other as it is."""
    return x.copy() if is_captured(x) and 0 in _laid_out(x).strides else x


def _laid_out(x: Any) -> Array:
    """Return an array that lies in memory as `x` does, or would if it were not captured."""
    laid_out: Array = x if type(x) is np.ndarray else x.laid_out()
    return laid_out


def is_in_order(x: Array) -> bool:
    """Tell whether an array of numpy's, or a captured one, lies in C order."""
    return _laid_out(x).flags.c_contiguous


def _lies_by_row(x: Array) -> bool:
    return _laid_out(x).strides[-1] == x.dtype.itemsize


@native_from(MANY_STEPS)
def sum_in_order(x: Array, axis: tuple[int, ...]) -> Array:
    """Return the sums over sorted axes of an array that lies in C order.

    Where it is captured, it is the same products with ones.
    """
    if axis[-1] == x.ndim - 1:
        kept, width = _end_of(x.shape, axis)
        # A product pays if rows are long enough, or if the axis before them is not summed as well.
        is_worth = width >= WORTH_PRODUCT or kept - 1 not in axis
        is_sound = width != _READS_TOO_FAR or x.dtype != np.float32
        if is_worth and is_sound and width:
            if type(x) is np.ndarray:
                sums: Array = x.reshape(-1, width).dot(ones(width, x.dtype))
                x = sums.reshape(*x.shape[:kept], *[1] * (x.ndim - kept))
            else:
                x = _captured_row_sums(x, kept)
            axis = tuple([one for one in axis if one < kept])
    elif axis[-1] == len(axis) - 1:
        rows = math.prod(x.shape[: len(axis)])
        if rows and (x.size >= FEW * rows or rows > _MANY_ROWS):
            sums = sum_of_rows(x.reshape(rows, -1))
            return sums.reshape(*[1] * len(axis), *x.shape[len(axis) :])
    return sum_by_blocks(x, axis) if axis else x


def sum_by_blocks(x: Array, axis: tuple[int, ...]) -> Array:
    """Return the sums over axes, which stay with size 1, of a long one as those of its blocks.

    numpy adds in pairs along the axis that lies in a row in memory, and one after the other along
    any other one, where a million singles lose two digits.
    """
    long = max(axis, key=lambda one: x.shape[one], default=0)
    is_long = bool(axis) and x.shape[long] > _MANY_ROWS and x.dtype == np.float32
    is_known = type(x) is np.ndarray or is_captured(x)
    if not (is_long and is_known) or (long == x.ndim - 1 and is_in_order(x)):
        return np.add.reduce(x, axis=axis, keepdims=True)
    before = (slice(None),) * long
    whole = x.shape[long] - x.shape[long] % SHORT
    blocks = np.reshape(
        x[(*before, slice(whole))], (*x.shape[:long], -1, SHORT, *x.shape[long + 1 :])
    )
    within = tuple([one + (one >= long) for one in axis])
    sums: Array = np.add.reduce(sum_by_blocks(blocks, within), axis=long)
    if whole == x.shape[long]:
        return sums
    return sums + np.add.reduce(x[(*before, slice(whole, None))], axis=axis, keepdims=True)


def _captured_row_sums(x: Any, kept: int) -> Array:
    sums: Array = x.capture_by_rows(np.add, tuple(range(kept, x.ndim)))
    return sums


def _end_of(shape: tuple[int, ...], axis: tuple[int, ...]) -> tuple[int, int]:
    """Return where the last axes begin that are summed and short together, and their size."""
    kept, width = len(shape), 1
    while kept - 1 in axis and width * shape[kept - 1] <= SHORT:
        kept -= 1
        width *= shape[kept]
    return kept, width


def _order_in_memory(x: Array) -> list[int]:
    """Return the axes, outermost first; those of size 1, which lie anywhere, before all others."""
    strides = _laid_out(x).strides
    return sorted(range(x.ndim), key=lambda one: (x.shape[one] != 1, -strides[one]))


def _axes_after(order: list[int], axis: tuple[int, ...]) -> tuple[int, ...]:
    """Return where axes stand after a transposition."""
    return tuple([place for place, one in enumerate(order) if one in axis])


def is_short(size: int, width: int) -> bool:
    """Tell whether rows of `width` elements, `size` in all, are many and short."""
    return 0 < width <= SHORT and size >= FEW * width


def ones(count: int, dtype: np.dtype[Any]) -> Array:
    """Return ones, which nobody may write to."""
    return _kept_ones(count, dtype) if count <= _KEPT else np.ones(count, dtype)


@lru_cache(maxsize=16)
def _kept_ones(count: int, dtype: np.dtype[Any]) -> Array:
    return np.ones(count, dtype)
