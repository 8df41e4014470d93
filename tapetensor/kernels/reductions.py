"""Reductions over axes.

`axis` is a sorted tuple of non-negative axes, checked by the caller.
"""

from __future__ import annotations

import math

import numpy as np

from tapetensor.arrays.array import Array
from tapetensor.arrays.stand_ins import plain
from tapetensor.kernels.indexing import take_along_axis
from tapetensor.kernels.numerics.along_axes import (
    as_rows,
    largest,
    largest_or_minus_infinity,
    mean_over,
    repeated,
    smallest,
    sum_over,
)
from tapetensor.kernels.numerics.decorators import MANY_STEPS, native_from, whole_kernel
from tapetensor.tape import Pullback, Pullbacks

Axis = tuple[int, ...]


def sum(x: Array, axis: Axis, keepdims: bool) -> tuple[Array, Pullbacks]:
    """The sum."""
    y = sum_over(x, axis)
    return _squeezed(y, axis, keepdims), (_spread(x, axis),)


def prod(x: Array, axis: Axis, keepdims: bool) -> tuple[Array, Pullbacks]:
    """The product, of halves multiplied by each other until one number is left.

    What a factor is multiplied by is there on the way back. Nothing is divided out, so zeros need
    no care, in derivatives of any order.
    """
    rows, back = as_rows(x, axis)
    factors: list[tuple[Array, Array]] = []
    while rows.shape[-1] > 1:
        half = rows.shape[-1] // 2
        lhs, rhs, rest = rows[..., :half], rows[..., half : 2 * half], rows[..., 2 * half :]
        factors.append((lhs, rhs))
        rows = np.concatenate([lhs * rhs, rest], axis=-1) if rest.shape[-1] else lhs * rhs
    if rows.shape[-1] == 0:
        rows = np.ones_like(rows, shape=(*rows.shape[:-1], 1))

    def pullback(g: Array) -> Array:
        g = np.reshape(g, rows.shape)
        for lhs, rhs in reversed(factors):
            half = lhs.shape[-1]
            shared, rest = g[..., :half], g[..., half:]
            g = np.concatenate([shared * rhs, shared * lhs, rest], axis=-1)
        return back(g[..., : _count(x, axis)])

    return np.reshape(rows, _reduced(x.shape, axis, keepdims)), (pullback,)


def median(x: Array, axis: Axis, keepdims: bool) -> tuple[Array, Pullbacks]:
    """`quantile` in the middle; it has a name of its own so that errors say what the user wrote."""
    return quantile(x, axis, keepdims, 0.5)


def quantile(x: Array, axis: Axis, keepdims: bool, q: float) -> tuple[Array, Pullbacks]:
    """The element at the place ``q * (n - 1)`` of the sorted ones, or between two of them."""
    rows, back = as_rows(x, axis)
    if rows.shape[-1] == 0:
        raise ValueError("no elements")
    below, share = divmod(q * (rows.shape[-1] - 1), 1)
    ranked = np.argsort(rows, axis=-1, kind="stable")
    # NaN is sorted as the largest: where there is one, it is all that is read.
    last = ranked[..., -1:]
    is_nan = np.isnan(np.take_along_axis(rows, last, rows.ndim - 1))
    # What has no share is not read, for of an infinity 0 shares are NaN.
    end = int(below) + (2 if share else 1)
    places = np.where(is_nan, last, ranked[..., int(below) : end])
    pair, (of_places, _) = take_along_axis(rows, places, rows.ndim - 1)
    y = pair[..., :1] * (1 - share) + pair[..., 1:] * share if share else pair
    rows_shape = y.shape

    def pullback(g: Array) -> Array:
        g = np.reshape(g, rows_shape)
        assert of_places is not None
        shares = np.concatenate([g * (1 - share), g * share], axis=-1) if share else g
        return back(of_places(shares))

    return np.reshape(y, _reduced(x.shape, axis, keepdims)), (pullback,)


def mean(x: Array, axis: Axis, keepdims: bool) -> tuple[Array, Pullbacks]:
    """The arithmetic mean."""
    y = mean_over(x, axis)
    count = _count(x, axis)
    spread = _spread(x, axis)
    return _squeezed(y, axis, keepdims), (lambda g: spread(g / count),)


@native_from(MANY_STEPS)
def max(x: Array, axis: Axis, keepdims: bool) -> tuple[Array, Pullbacks]:
    """The largest element; ties share the cotangent equally."""
    y = largest(x, axis)
    return _squeezed(y, axis, keepdims), (_shared_among_ties(x, y, axis),)


@native_from(MANY_STEPS)
def min(x: Array, axis: Axis, keepdims: bool) -> tuple[Array, Pullbacks]:
    """The smallest element; ties share the cotangent equally."""
    y = smallest(x, axis)
    return _squeezed(y, axis, keepdims), (_shared_among_ties(x, y, axis),)


def norm(x: Array, axis: Axis, keepdims: bool) -> tuple[Array, Pullbacks]:
    """The root of the sum of squares; the derivatives where all elements are 0 are 0."""
    scaled, squares, scale = _scaled_squares(x, axis)
    is_zero = squares == 0
    # The slope of a root at 0 is infinite, and a second derivative would read it.
    length = np.sqrt(np.where(is_zero, 1, squares))
    y = np.where(is_zero, 0, length * scale)

    def pullback(g: Array) -> Array:
        share: Array = np.where(is_zero, 0, np.reshape(g, y.shape)) / length
        return share * scaled

    return _squeezed(y, axis, keepdims), (pullback,)


@native_from(MANY_STEPS)
def var(x: Array, axis: Axis, keepdims: bool, correction: float) -> tuple[Array, Pullbacks]:
    """The mean squared deviation, divided by ``count - correction``."""
    deviation = x - mean_over(x, axis)
    divisor = _count(x, axis) - correction
    y = sum_over(np.square(deviation), axis) / divisor
    spread = _spread(x, axis)
    return _squeezed(y, axis, keepdims), (lambda g: spread(g * (2.0 / divisor)) * deviation,)


@native_from(MANY_STEPS)
def std(
    x: Array, axis: Axis, keepdims: bool, correction: float, eps: float
) -> tuple[Array, Pullbacks]:
    """The square root of ``var + eps``; the derivative where all elements are equal is 0."""
    deviation = x - mean_over(x, axis)
    divisor = _count(x, axis) - correction
    # The squares of the largest and the smallest singles are doubles.
    total = sum_over(np.square(deviation.astype(np.float64)), axis)
    square = total / divisor + eps
    is_flat = square == 0
    # The slope of a root at 0 is infinite, and a second derivative would read it.
    length = np.sqrt(np.where(is_flat, 1, square))
    y = np.where(is_flat, 0, length).astype(x.dtype)
    is_flat, length = [_squeezed(one, axis, keepdims) for one in (is_flat, length)]
    spread = _spread(x, axis)

    def pullback(g: Array) -> Array:
        slope = np.where(is_flat, 0, g) / (length * divisor)
        cotangent: Array = spread(slope.astype(x.dtype)) * deviation
        return cotangent

    return _squeezed(y, axis, keepdims), (pullback,)


@native_from(MANY_STEPS)
def logsumexp(x: Array, axis: Axis, keepdims: bool) -> tuple[Array, Pullbacks]:
    """``log(sum(exp(x)))``, shifted by the largest element."""
    # An infinite shift would make inf - inf of the elements that equal it. An empty axis has no
    # largest element; the sum over it is 0, and its logarithm minus infinity.
    found = largest_or_minus_infinity(x, axis)
    shift = np.where(np.isfinite(found), found, 0).astype(x.dtype)
    shifted_exp = np.exp(x - shift)
    total = sum_over(shifted_exp, axis)
    y = np.log(total) + shift
    spread = _spread(x, axis)
    return _squeezed(y, axis, keepdims), (lambda g: spread(g) * (shifted_exp / total),)


@whole_kernel(lambda x, _: x.shape, for_models=True)
@native_from(MANY_STEPS)
def softmax(x: Array, axis: int) -> tuple[Array, Pullbacks]:
    """``exp(x) / sum(exp(x))``.

    It has a pullback of its own: the composite would keep and walk through three such arrays.
    """
    # Beside an infinity the whole row is NaN: no share of it is known.
    y = np.exp(x - largest_or_minus_infinity(x, axis))
    # A product takes less time than a quotient. The sum over an empty axis is 0.
    if x.size:
        y = y * (1 / sum_over(y, (axis,)))

    def pullback(g: Array) -> Array:
        weighted = g * y
        cotangent: Array = weighted - y * sum_over(weighted, (axis,))
        return cotangent

    return y, (pullback,)


@whole_kernel(lambda x, _: x.shape, for_models=True)
@native_from(MANY_STEPS)
def log_softmax(x: Array, axis: int) -> tuple[Array, Pullbacks]:
    """``x - logsumexp(x)``.

    It has a pullback of its own: log(softmax) loses all digits of small probabilities.
    """
    shifted = x - largest_or_minus_infinity(x, axis)
    if x.size == 0:
        # The sum over an empty axis is 0: numpy would warn of a logarithm that nothing reads.
        return shifted, (np.zeros_like,)
    exponentials = np.exp(shifted)
    total = sum_over(exponentials, (axis,))
    y = shifted - np.log(total)
    return y, (lambda g: g - exponentials * (sum_over(g, (axis,)) / total),)


def _scaled_squares(x: Array, axis: Axis) -> tuple[Array, Array, Array | float]:
    """Return an array over powers of two, the sums of the squares of that, and the powers.

    The squares of the largest and of the smallest numbers are none. What is captured, or on a
    device, is scaled always: nobody knows it yet, or to look at it would take its time.
    """
    values = plain(x)
    if type(values) is np.ndarray:
        with np.errstate(over="ignore"):
            squares = sum_over(np.square(x), axis)
        found, limits = plain(squares), np.finfo(x.dtype)
        if np.all(np.isfinite(found) & (found > limits.tiny / limits.eps**2)):
            return x, squares, 1.0
    size = largest_or_minus_infinity(np.absolute(values), axis)
    size = np.where((size > 0) & np.isfinite(size), size, 1)
    scale = np.exp2(np.floor(np.log2(size)))
    scaled = x / scale
    return scaled, sum_over(np.square(scaled), axis), scale


def _count(x: Array, axis: Axis) -> int:
    return math.prod([x.shape[one] for one in axis])


def _reduced(shape: Axis, axis: Axis, keepdims: bool) -> tuple[int, ...]:
    """Return the shape that is left, or has size 1 along `axis`."""
    sizes = [1 if one in axis else size for one, size in enumerate(shape)]
    return tuple([size for one, size in enumerate(sizes) if keepdims or one not in axis])


def _spread(x: Array, axis: Axis) -> Pullback:
    """Return the pullback of a sum over `axis`: a cotangent repeated over the axes."""
    shape = x.shape
    kept = tuple([1 if one in axis else size for one, size in enumerate(shape)])
    return lambda g: repeated(g, kept, shape)


def _squeezed(y: Array, axis: Axis, keepdims: bool) -> Array:
    return y if keepdims else np.squeeze(y, axis=axis)


def _shared_among_ties(x: Array, extreme: Array, axis: Axis) -> Pullback:
    spread = _spread(x, axis)

    def pullback(g: Array) -> Array:
        # NaN is the extreme of a slice that holds one, and equals nothing but itself here.
        is_extreme = ((x == extreme) | ((x != x) & (extreme != extreme))).astype(x.dtype)
        share: Array = is_extreme / sum_over(is_extreme, axis)
        return spread(g) * share

    return pullback
