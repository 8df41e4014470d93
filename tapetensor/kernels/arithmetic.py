"""Operators on two arrays that broadcast, and on an array and a number.

Where the number comes first the name starts with an r, as in Python's `__rsub__`.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from tapetensor.arrays.array import Array
from tapetensor.arrays.stand_ins import plain
from tapetensor.kernels.numerics.along_axes import sum_to, summing_to, unchanged
from tapetensor.kernels.numerics.decorators import runs_steps
from tapetensor.kernels.numerics.threads import LARGE, in_blocks
from tapetensor.tape import Pullbacks
from tapetensor.tape.pullbacks import Zero

# Nothing was broadcast, so nothing is summed.
_BOTH_UNCHANGED = (unchanged, unchanged)
_UNCHANGED_AND_NEGATED = (unchanged, np.negative)
# Looking a function up in numpy costs a tenth of a small product.
_times, _as_array = np.multiply, np.asarray


def add(lhs: Array, rhs: Array) -> tuple[Array, Pullbacks]:
    """``lhs + rhs``."""
    if lhs.shape == rhs.shape:
        if lhs.size >= LARGE:
            return in_blocks(np.add, lhs, rhs), _BOTH_UNCHANGED
        return lhs + rhs, _BOTH_UNCHANGED
    return lhs + rhs, (summing_to(lhs), summing_to(rhs))


def subtract(lhs: Array, rhs: Array) -> tuple[Array, Pullbacks]:
    """``lhs - rhs``."""
    if lhs.shape == rhs.shape:
        return lhs - rhs, _UNCHANGED_AND_NEGATED
    sum_to_rhs = summing_to(rhs)
    return lhs - rhs, (summing_to(lhs), lambda g: sum_to_rhs(-g))


def multiply(lhs: Array, rhs: Array) -> tuple[Array, Pullbacks]:
    """``lhs * rhs``."""
    if lhs.shape == rhs.shape:
        if lhs.size >= LARGE:
            return in_blocks(np.multiply, lhs, rhs), (
                partial(in_blocks, np.multiply, rhs),
                partial(in_blocks, np.multiply, lhs),
            )
        # A bound operator would write over a large array that nobody else holds.
        return lhs * rhs, (partial(np.multiply, rhs), partial(np.multiply, lhs))
    return lhs * rhs, (lambda g: sum_to(g * rhs, lhs.shape), lambda g: sum_to(g * lhs, rhs.shape))


def divide(lhs: Array, rhs: Array) -> tuple[Array, Pullbacks]:
    """``lhs / rhs``."""
    quotient = lhs / rhs
    return quotient, (
        lambda g: sum_to(g / rhs, lhs.shape),
        lambda g: sum_to(np.divide(np.multiply(-g, quotient), rhs), rhs.shape),
    )


def power(lhs: Array, rhs: Array) -> tuple[Array, Pullbacks]:
    """``lhs ** rhs``; where both are 0, or `lhs` is and `rhs` positive, its slope by `rhs` is 0."""
    result = lhs**rhs

    def pullback_lhs(g: Array) -> Array:
        # x**-1 at 0 would make 0 * inf of the constant x**0.
        exponent: Array = np.where(rhs == 0, 1, rhs - 1)
        slope: Array = np.where(rhs == 0, 0, rhs * lhs**exponent)
        return sum_to(np.multiply(g, slope.astype(lhs.dtype)), lhs.shape)

    def pullback_rhs(g: Array) -> Array:
        # 0 times the infinite logarithm would be NaN.
        log_lhs = np.log(np.where((lhs == 0) & (rhs >= 0), 1, lhs)).astype(lhs.dtype)
        return sum_to(np.multiply(g * result, log_lhs), rhs.shape)

    return result, (pullback_lhs, pullback_rhs)


def floor_divide(lhs: Array, rhs: Array) -> tuple[Array, Pullbacks]:
    """The largest whole number that is not above ``lhs / rhs``; its derivative is 0."""
    return lhs // rhs, (Zero(lhs.shape), Zero(rhs.shape))


def remainder(lhs: Array, rhs: Array) -> tuple[Array, Pullbacks]:
    """The remainder of ``floor_divide``, with the sign of `rhs`."""
    return lhs % rhs, (
        lambda g: sum_to(g, lhs.shape),
        lambda g: sum_to(np.multiply(-g, lhs // rhs), rhs.shape),
    )


def logaddexp(lhs: Array, rhs: Array) -> tuple[Array, Pullbacks]:
    """``log(exp(lhs) + exp(rhs))``."""
    return np.logaddexp(lhs, rhs), (
        lambda g: sum_to(np.multiply(g, _logistic(lhs - rhs)), lhs.shape),
        lambda g: sum_to(np.multiply(g, _logistic(rhs - lhs)), rhs.shape),
    )


def _logistic(x: Array) -> Array:
    # In terms of differences: a sum of large exponentials is rounded to more than they differ by.
    y: Array = np.exp(np.minimum(x, 0)) / (1 + np.exp(-np.absolute(x)))
    return y


def atan2(lhs: Array, rhs: Array) -> tuple[Array, Pullbacks]:
    """The angle of the point ``(rhs, lhs)``; the derivative at the origin is 0."""
    return np.arctan2(lhs, rhs), (
        lambda g: sum_to(np.multiply(g, _over_squares(rhs, lhs)), lhs.shape),
        lambda g: sum_to(np.multiply(-g, _over_squares(lhs, rhs)), rhs.shape),
    )


def maximum(lhs: Array, rhs: Array) -> tuple[Array, Pullbacks]:
    """The larger of two; a tie gives half of the cotangent to each, a NaN all to both."""
    return np.maximum(lhs, rhs), (
        lambda g: sum_to(np.multiply(g, _share(lhs < rhs, lhs == rhs, g)), lhs.shape),
        lambda g: sum_to(np.multiply(g, _share(lhs > rhs, lhs == rhs, g)), rhs.shape),
    )


def minimum(lhs: Array, rhs: Array) -> tuple[Array, Pullbacks]:
    """The smaller of two; a tie gives half of the cotangent to each, a NaN all to both."""
    return np.minimum(lhs, rhs), (
        lambda g: sum_to(np.multiply(g, _share(lhs > rhs, lhs == rhs, g)), lhs.shape),
        lambda g: sum_to(np.multiply(g, _share(lhs < rhs, lhs == rhs, g)), rhs.shape),
    )


def _share(loses: Array, ties: Array, like: Array) -> Array:
    # Beside a NaN nothing loses, so that the cotangent of the NaN that comes out passes.
    share: Array = 1 - (loses.astype(like.dtype) + ties.astype(like.dtype) * 0.5)
    return share


def add_number(x: Array, number: float) -> tuple[Array, Pullbacks]:
    """``x + number``."""
    return x + number, (unchanged,)


def subtract_number(x: Array, number: float) -> tuple[Array, Pullbacks]:
    """``x - number``."""
    return x - number, (unchanged,)


def rsubtract_number(x: Array, number: float) -> tuple[Array, Pullbacks]:
    """``number - x``."""
    return number - x, (np.negative,)


def multiply_number(x: Array, number: float) -> tuple[Array, Pullbacks]:
    """``x * number``."""
    number = _like(x, number)
    return x * number, (partial(_times, number),)


def divide_number(x: Array, number: float) -> tuple[Array, Pullbacks]:
    """``x / number``."""
    number = _like(x, number)
    return x / number, (lambda g: g / number,)


def rdivide_number(x: Array, number: float) -> tuple[Array, Pullbacks]:
    """``number / x``."""
    quotient = number / x
    return quotient, (lambda g: np.divide(np.multiply(-g, quotient), x),)


def floor_divide_number(x: Array, number: float) -> tuple[Array, Pullbacks]:
    """``x // number``; the derivative is 0."""
    return x // number, (Zero(),)


def rfloor_divide_number(x: Array, number: float) -> tuple[Array, Pullbacks]:
    """``number // x``; the derivative is 0."""
    return number // x, (Zero(),)


def remainder_number(x: Array, number: float) -> tuple[Array, Pullbacks]:
    """``x % number``."""
    return x % number, (unchanged,)


def rremainder_number(x: Array, number: float) -> tuple[Array, Pullbacks]:
    """``number % x``."""
    return number % x, (lambda g: np.multiply(-g, number // x),)


def logaddexp_number(x: Array, number: float) -> tuple[Array, Pullbacks]:
    """``log(exp(x) + exp(number))``."""
    return np.logaddexp(x, number), (lambda g: np.multiply(g, _logistic(x - number)),)


def atan2_number(x: Array, number: float) -> tuple[Array, Pullbacks]:
    """The angle of the point ``(number, x)``; the derivative at the origin is 0."""
    return np.arctan2(x, number), (lambda g: np.multiply(g, _over_squares(number, x)),)


def _over_squares(x: Array | float, y: Array) -> Array:
    """Return ``x / (x**2 + y**2)``, 0 at the origin; the squares of both may be no numbers."""
    size = np.maximum(np.absolute(plain(x)), np.absolute(plain(y)))
    is_origin = size == 0
    # It is no part of a derivative, and any number will do.
    size = np.where(is_origin | ~np.isfinite(size), 1, size).astype(y.dtype)
    lhs, rhs = x / size, y / size
    square = np.where(is_origin, 1, lhs * lhs + rhs * rhs)
    return np.where(is_origin, 0, lhs / square / size)


def power_number(x: Array, exponent: float) -> tuple[Array, Pullbacks]:
    """``x ** exponent``; the derivative of ``x ** 0`` is 0 everywhere."""
    if exponent == 0:
        return x**exponent, (Zero(),)
    return _raised(x, exponent), (lambda g: np.multiply(g, exponent * _raised(x, exponent - 1)),)


def _raised(x: Array, exponent: float) -> Array:
    """Return ``x ** exponent``.

    Whole exponents are not left to numpy, which takes fifty times as long for a negative base as
    for a positive one.
    """
    if exponent == 3:
        return x * x * x
    if exponent in (1, 2, -1) or not float(exponent).is_integer() or not runs_steps(x):
        return x**exponent
    size: Array = np.absolute(x) ** exponent
    return size if exponent % 2 == 0 else np.copysign(size, x)


def rpower_number(x: Array, base: float) -> tuple[Array, Pullbacks]:
    """``base ** x``, for a positive base."""
    result = base**x
    # np.log of a Python float would be a float64 scalar and promote a float32 cotangent.
    log_base = float(np.log(base))
    return result, (lambda g: np.multiply(g, result * log_base),)


def maximum_number(x: Array, number: float) -> tuple[Array, Pullbacks]:
    """The larger of an element and a number; a tie gives one half of the cotangent."""
    return np.maximum(x, number), (lambda g: np.multiply(g, _share(x < number, x == number, g)),)


def minimum_number(x: Array, number: float) -> tuple[Array, Pullbacks]:
    """The smaller of an element and a number; a tie gives one half of the cotangent."""
    return np.minimum(x, number), (lambda g: np.multiply(g, _share(x > number, x == number, g)),)


def _like(x: Array, number: float) -> Any:
    """Return the number as an array of the dtype of `x`, if that is numpy's own and floating.

    numpy makes the same array of a plain number at each use, which takes as long as a small
    product; so it pays where a number is used twice. A number may be a stand-in, too.
    """
    if type(x) is np.ndarray and x.dtype.kind == "f" and type(number) in (float, int):
        return _as_array(number, x.dtype)
    return number


def negative(x: Array) -> tuple[Array, Pullbacks]:
    """``-x``."""
    return in_blocks(np.negative, x), (partial(in_blocks, np.negative),)
