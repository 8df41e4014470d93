"""Sums, means and extremes along axes, as products with ones where that is faster.

numpy's reduction starts anew for every row, which costs more than the sum of a short one, and a
matrix product does not: it takes a fifth to a tenth of the time. Beside them stand the sums that
undo numpy's broadcasting in a pullback, and the axes of a reduction as one axis.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from tapetensor.arrays.array import Array
from tapetensor.arrays.stand_ins import is_captured
from tapetensor.kernels.numerics.decorators import MANY_STEPS, native_from
from tapetensor.tape import Pullback

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


def is_turned(x: Array) -> bool:
    """Tell whether a matrix of numpy's, or a captured one, is the transpose of one in C order."""
    if type(x) is not np.ndarray and not is_captured(x):
        return False
    flags = _laid_out(x).flags
    return flags.f_contiguous and not flags.c_contiguous


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
                captured: Any = x
                x = captured.capture_by_rows(np.add, tuple(range(kept, x.ndim)))
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


def sum_to(cotangent: Array, shape: tuple[int, ...]) -> Array:
    """Sum a cotangent over the axes that broadcasting added to, or stretched in, `shape`."""
    if cotangent.shape == shape:
        return cotangent
    if len(shape) == 1 and cotangent.shape[-1] == shape[0]:
        return sum_of_rows(cotangent)
    added = cotangent.ndim - len(shape)
    stretched = tuple(
        added + axis
        for axis, size in enumerate(shape)
        if size == 1 and cotangent.shape[added + axis] != 1
    )
    return np.reshape(sum_by_blocks(cotangent, tuple(range(added)) + stretched), shape)


def repeated(x: Array, kept: tuple[int, ...], shape: tuple[int, ...]) -> Array:
    """Return a view of `x`, reshaped to `kept`, that repeats it to `shape`; nobody writes to it."""
    if type(x) is not np.ndarray or x.size != 1:
        return np.broadcast_to(np.reshape(x, kept), shape)
    # What numpy does for all arrays takes three microseconds.
    one: Array = np.ndarray(shape, x.dtype, x, 0, (0,) * len(shape))
    one.flags.writeable = False
    return one


def summing_to(operand: Array) -> Pullback:
    """Return the pullback of an operand that was broadcast and nothing else.

    It keeps the shape of the operand and not the operand itself.
    """
    shape = operand.shape
    return lambda g: sum_to(g, shape)


def unchanged(g: Array) -> Array:
    """Return the cotangent itself: the pullback of the identity."""
    return g


def mean_over(x: Array, axis: tuple[int, ...]) -> Array:
    """Return the mean over `axis`, whose axes stay with size 1; NaN over no elements."""
    mean: Array = sum_over(x, axis) / math.prod([x.shape[one] for one in axis])
    return mean


def moved_statistics(
    running: tuple[Array, Array], batch: tuple[Array, Array], count: int, momentum: float
) -> tuple[Array, Array]:
    """Return running mean and variance moved towards those of a batch by a share, `momentum`.

    The variance of the batch is the biased one of `count` values; the unbiased one is added.
    """
    keep = 1.0 - momentum
    unbiased = momentum * count / (count - 1)
    return running[0] * keep + batch[0] * momentum, running[1] * keep + batch[1] * unbiased


Axis = int | tuple[int, ...]


def largest(x: Array, axis: Axis) -> Array:
    """Return the largest elements along axes, which stay with size 1."""
    return _extreme(x, axis, np.maximum, np.max)


def smallest(x: Array, axis: Axis) -> Array:
    """Return the smallest elements along axes, which stay with size 1."""
    return _extreme(x, axis, np.minimum, np.min)


def _extreme(x: Any, axis: Axis, ufunc: np.ufunc, of_any_library: Callable[..., Any]) -> Array:
    is_numpys = type(x) is np.ndarray
    found: Array
    if (is_numpys or is_captured(x)) and _has_short_rows(x, axis):
        if not is_numpys:
            found = x.capture_by_rows(ufunc, (x.ndim - 1,))
            return found
        rows = x.reshape(-1, x.shape[-1])
        return _at(x, rows.argmax(1) if ufunc is np.maximum else rows.argmin(1))
    # np.max wraps it in Python that costs as much again.
    found = (ufunc.reduce if is_numpys else of_any_library)(x, axis=axis, keepdims=True)
    return found


def largest_or_minus_infinity(x: Array, axis: Axis) -> Array:
    """Return `largest`, and minus infinity where there is no element."""
    axes = axis if isinstance(axis, tuple) else (axis,)
    if math.prod([x.shape[one] for one in axes]):
        return largest(x, axis)
    # The sum of nothing is 0. CuPy's maximum takes no initial value.
    return np.add.reduce(x, axis=axis, keepdims=True) - np.inf


def starts_of_rows(count: int, width: int) -> Array:
    """Return where each of `count` rows starts in a flat array; nobody may write to it."""
    return _kept_starts(count, width) if count <= _KEPT else _starts(count, width)


def _has_short_rows(x: Array, axis: Axis) -> bool:
    last = x.ndim - 1
    return axis in (last, -1, (last,)) and is_in_order(x) and is_short(x.size, x.shape[-1])


def _at(x: Array, places: Array) -> Array:
    """Return the element at a known place of each row.

    Looking for places and reading the elements there takes a fifth of the time of a reduction,
    which does not use vector instructions within a row.
    """
    places += starts_of_rows(places.size, x.shape[-1])
    found: Array = x.reshape(-1)[places]
    return found.reshape(*x.shape[:-1], 1)


def _starts(count: int, width: int) -> Array:
    starts: Array = np.arange(0, count * width, width)
    return starts


_kept_starts = lru_cache(maxsize=16)(_starts)


def as_rows(x: Array, axis: tuple[int, ...]) -> tuple[Array, Pullback]:
    """Return some axes as one, behind the others, and what puts a cotangent back."""
    order = (*[one for one in range(x.ndim) if one not in axis], *axis)
    turned = np.transpose(x, order)
    kept = turned.shape[: x.ndim - len(axis)]
    count = math.prod([x.shape[one] for one in axis])
    inverse = [order.index(one) for one in range(x.ndim)]

    def pullback(g: Array) -> Array:
        return np.transpose(np.reshape(g, turned.shape), inverse)

    return np.reshape(turned, (*kept, count)), pullback
