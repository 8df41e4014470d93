"""Functions of one array, element by element."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from tapetensor.arrays.array import Array
from tapetensor.arrays.libraries import like
from tapetensor.kernels.numerics import special
from tapetensor.kernels.numerics.along_axes import sum_to
from tapetensor.kernels.numerics.choice import choose
from tapetensor.kernels.numerics.decorators import (
    FEW_STEPS,
    MANY_STEPS,
    elementwise_step,
    native_from,
    runs_steps,
)
from tapetensor.kernels.numerics.threads import LARGE, in_blocks
from tapetensor.tape import Pullbacks
from tapetensor.tape.pullbacks import Zero

_SQRT_2_OVER_PI = math.sqrt(2.0 / math.pi)
_GELU_CUBIC = 0.044715
# The density of the standard normal distribution.
_DENSITY_AT_0 = 1.0 / math.sqrt(2.0 * math.pi)

# From so many elements on the work on them outweighs the calls.
_LONG = 1 << 12
# Making an array of a plain 0 is a third of what the maximum of a short array costs.
_ZEROS = {np.dtype(kind): np.zeros((), kind) for kind in (np.float32, np.float64)}


def exp(x: Array) -> tuple[Array, Pullbacks]:
    """``e ** x``."""
    if x.size >= LARGE:
        y = in_blocks(np.exp, x)
        return y, (partial(in_blocks, np.multiply, y),)
    y = np.exp(x)
    return y, (partial(np.multiply, y),)


def log(x: Array) -> tuple[Array, Pullbacks]:
    """The natural logarithm."""
    return np.log(x), (lambda g: g / x,)


def sqrt(x: Array) -> tuple[Array, Pullbacks]:
    """The square root."""
    y = np.sqrt(x)
    return y, (lambda g: g / (y + y),)


def square(x: Array) -> tuple[Array, Pullbacks]:
    """``x * x``."""
    return in_blocks(np.square, x), (lambda g: in_blocks(_square_cotangent, g, x),)


@native_from(FEW_STEPS)
def abs(x: Array) -> tuple[Array, Pullbacks]:
    """``|x|``; the derivative at 0 is 0."""
    return np.absolute(x), (lambda g: np.multiply(g, np.sign(x)),)


def sin(x: Array) -> tuple[Array, Pullbacks]:
    """The sine."""
    return np.sin(x), (lambda g: np.multiply(g, np.cos(x)),)


def cos(x: Array) -> tuple[Array, Pullbacks]:
    """The cosine."""
    return np.cos(x), (lambda g: np.multiply(-g, np.sin(x)),)


@native_from(FEW_STEPS)
def tanh(x: Array) -> tuple[Array, Pullbacks]:
    """The hyperbolic tangent."""
    y = in_blocks(np.tanh, x)
    return y, (lambda g: in_blocks(_tanh_cotangent, g, y),)


@native_from(MANY_STEPS)
def sigmoid(x: Array) -> tuple[Array, Pullbacks]:
    """``1 / (1 + e ** -x)``."""
    y = _logistic(x)
    return y, (lambda g: in_blocks(_sigmoid_cotangent, g, y),)


@native_from(FEW_STEPS)
def relu(x: Array) -> tuple[Array, Pullbacks]:
    """``max(x, 0)``; the derivative at 0 is 0, and at NaN 1."""
    zero = _ZEROS.get(x.dtype, 0) if type(x) is np.ndarray else 0
    y = _positive_part(x) if _is_long(x) else np.maximum(x, zero)
    # A NaN is not 0, so that its cotangent does not vanish.
    return y, (lambda g: g * (y != zero),)


@native_from(MANY_STEPS)
def silu(x: Array) -> tuple[Array, Pullbacks]:
    """``x * sigmoid(x)``."""
    s = _logistic(x)
    y = x * s
    return y, (lambda g: in_blocks(_silu_cotangent, g, s, y),)


@native_from(MANY_STEPS)
def gelu(x: Array) -> tuple[Array, Pullbacks]:
    """``x * Phi(x)``, with the normal distribution function."""
    if x.dtype == np.float32 and runs_steps(x):
        phi = in_blocks(special.normal_cdf_of_single, x)
        return in_blocks(np.multiply, x, phi), (lambda g: in_blocks(_gelu_cotangent, g, x, phi),)
    cdf: Array = 0.5 * (1.0 + special.erf(x * math.sqrt(0.5)))

    def pullback(g: Array) -> Array:
        density: Array = np.exp(-0.5 * np.square(x)) * _DENSITY_AT_0
        slope: Array = cdf + x * density
        return np.multiply(g, slope)

    return x * cdf, (pullback,)


@native_from(MANY_STEPS)
def gelu_tanh(x: Array) -> tuple[Array, Pullbacks]:
    """``x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x ** 3)))``."""
    share = in_blocks(_gelu_tanh_share, x)
    y = in_blocks(_gelu_tanh_value, x, share)
    return y, (lambda g: in_blocks(_gelu_tanh_cotangent, g, x, share),)


@native_from(MANY_STEPS)
def softplus(x: Array) -> tuple[Array, Pullbacks]:
    """``log(1 + e ** x)``."""
    # np.logaddexp takes fifteen times as long.
    y = np.maximum(x, 0) + np.log1p(np.exp(-np.absolute(x)))
    return y, (lambda g: np.multiply(g, _logistic(x)),)


@native_from(MANY_STEPS)
def clip(x: Array, low: float | None, high: float | None) -> tuple[Array, Pullbacks]:
    """``x`` held between two bounds; the derivative at a bound is 1, and at NaN."""

    def pullback(g: Array) -> Array:
        inside = np.ones_like(x)
        if low is not None:
            inside = inside * ((x >= low) | (x != x))
        if high is not None:
            inside = inside * ((x <= high) | (x != x))
        return g * inside

    return np.clip(x, low, high), (pullback,)


def reciprocal(x: Array) -> tuple[Array, Pullbacks]:
    """``1 / x``."""
    y = 1 / x
    return y, (lambda g: np.multiply(np.multiply(-g, y), y),)


# A block of a large array is written in place: fresh memory for every part would take longer than
# the arithmetic.


def _square_cotangent(g: Array, x: Array, out: Array | None = None) -> Array:
    if out is None:
        plain: Array = np.multiply(g, x + x)
        return plain
    np.add(x, x, out=out)
    np.multiply(g, out, out=out)
    return out


def _tanh_cotangent(g: Array, y: Array, out: Array | None = None) -> Array:
    if out is None:
        plain: Array = g - g * y * y
        return plain
    np.multiply(g, y, out=out)
    np.multiply(out, y, out=out)
    np.subtract(g, out, out=out)
    return out


def _sigmoid_cotangent(g: Array, y: Array, out: Array | None = None) -> Array:
    if out is None:
        plain: Array = np.multiply(g, y - y * y)
        return plain
    np.multiply(y, y, out=out)
    np.subtract(y, out, out=out)
    np.multiply(g, out, out=out)
    return out


def _silu_cotangent(g: Array, s: Array, y: Array, out: Array | None = None) -> Array:
    result: Array = np.multiply(g, s + y * (1 - s), out=out)
    return result


@elementwise_step
def _gelu_cotangent(g: Array, x: Array, phi: Array, out: Array | None = None) -> Array:
    # A square that overflows to infinity leads to the density of 0 that is meant.
    with np.errstate(over="ignore"):
        density = np.asarray(np.multiply(x, x))
    density *= -0.5
    np.exp(density, out=density)
    density *= _DENSITY_AT_0
    density *= x
    density += phi
    # What lies otherwise has a say in how the product lies, as in a plan.
    if out is None and g.strides == density.strides:
        out = density
    result: Array = np.multiply(g, density, out=out)
    return result


def _gelu_tanh_share(x: Array, out: Array | None = None) -> Array:
    """Return ``1 + tanh(...)``, twice the share of `x` that is left."""
    inner = x * (_SQRT_2_OVER_PI + (_SQRT_2_OVER_PI * _GELU_CUBIC) * (x * x))
    share: Array = np.tanh(inner, out=out)
    share += 1.0
    return share


def _gelu_tanh_value(x: Array, share: Array, out: Array | None = None) -> Array:
    value: Array = np.multiply(0.5 * x, share, out=out)
    return value


def _gelu_tanh_cotangent(g: Array, x: Array, share: Array, out: Array | None = None) -> Array:
    # 1 - tanh(z) ** 2 is share * (2 - share).
    half_slope = 0.5 * _SQRT_2_OVER_PI + (1.5 * _SQRT_2_OVER_PI * _GELU_CUBIC) * (x * x)
    slope = share * (0.5 + x * half_slope * (2.0 - share))
    result: Array = np.multiply(g, slope, out=out)
    return result


def _logistic(x: Array) -> Array:
    if _is_long(x):
        return in_blocks(_logistic_that_overflows, x)
    # The exponents are never positive: nothing overflows, and small values keep all their digits.
    # At 0 each piece takes the slope between those of its two sides, and so y has the right slope.
    y: Array = np.exp(np.minimum(x, 0)) / (1 + np.exp(-np.absolute(x)))
    return y


def _is_long(x: Array) -> bool:
    """Tell whether an `elementwise_step` pays."""
    return x.size >= _LONG and runs_steps(x)


@elementwise_step
def _positive_part(x: Array, out: Array | None = None) -> Array:
    # numpy compares two arrays with vector instructions, but not an array and a number: this takes
    # a third of the time. Where elements are repeated, it lies otherwise than what numpy computes.
    zeros = 0 if 0 in x.strides else np.zeros_like(x)
    result: Array = np.maximum(x, zeros, out=out)
    return result


@elementwise_step
def _logistic_that_overflows(x: Array, out: Array | None = None) -> Array:
    # The reciprocal of an infinity is the 0 that is meant. This takes half of the time of the other
    # form, but on a short array np.errstate costs more than that saves.
    with np.errstate(over="ignore"):
        result: Array = np.negative(x, out=out)
        np.exp(result, out=result)
    np.add(result, 1, out=result)
    return np.divide(1, result, out=result)


@native_from(MANY_STEPS)
def leaky_relu(x: Array, slope: float) -> tuple[Array, Pullbacks]:
    """``x`` above 0, ``slope * x`` elsewhere; the derivative at 0 is the slope."""
    # Asked this way round, a NaN passes, and so does its cotangent.
    return choose(x <= 0, x * slope, x), (lambda g: choose(x <= 0, g * slope, g),)


@native_from(MANY_STEPS)
def prelu(x: Array, slope: Array) -> tuple[Array, Pullbacks]:
    """``x`` above 0, ``slope * x`` elsewhere, for an array of slopes that broadcasts."""
    return choose(x <= 0, x * slope, x), (
        lambda g: sum_to(choose(x <= 0, g * slope, g), x.shape),
        lambda g: sum_to(np.multiply(choose(x > 0, np.zeros_like(x), x), g), slope.shape),
    )


@native_from(MANY_STEPS)
def elu(x: Array, alpha: float) -> tuple[Array, Pullbacks]:
    """``x`` above 0, ``alpha * (e ** x - 1)`` elsewhere; the derivative at 0 is `alpha`."""
    # The exponential of what is positive could overflow, and is not used.
    below = alpha * np.expm1(np.minimum(x, 0))
    return choose(x <= 0, below, x), (lambda g: choose(x <= 0, np.multiply(g, below + alpha), g),)


_LN_2 = math.log(2.0)
_LN_10 = math.log(10.0)
_2_OVER_SQRT_PI = 2.0 / math.sqrt(math.pi)


def tan(x: Array) -> tuple[Array, Pullbacks]:
    """The tangent."""
    y = np.tan(x)
    return y, (lambda g: np.multiply(g, 1 + y * y),)


# Products of a sum and a difference keep the digits that 1 - x * x loses near 1.


def asin(x: Array) -> tuple[Array, Pullbacks]:
    """The angle of a sine."""
    return np.arcsin(x), (lambda g: g / np.sqrt((1 - x) * (1 + x)),)


def acos(x: Array) -> tuple[Array, Pullbacks]:
    """The angle of a cosine."""
    return np.arccos(x), (lambda g: np.divide(-g, np.sqrt((1 - x) * (1 + x))),)


def atan(x: Array) -> tuple[Array, Pullbacks]:
    """The angle of a tangent."""
    return np.arctan(x), (lambda g: g / (1 + x * x),)


def sinh(x: Array) -> tuple[Array, Pullbacks]:
    """The hyperbolic sine."""
    return np.sinh(x), (lambda g: np.multiply(g, np.cosh(x)),)


def cosh(x: Array) -> tuple[Array, Pullbacks]:
    """The hyperbolic cosine."""
    return np.cosh(x), (lambda g: np.multiply(g, np.sinh(x)),)


def asinh(x: Array) -> tuple[Array, Pullbacks]:
    """The inverse of the hyperbolic sine."""
    return np.arcsinh(x), (lambda g: g / np.sqrt(x * x + 1),)


def acosh(x: Array) -> tuple[Array, Pullbacks]:
    """The inverse of the hyperbolic cosine."""
    return np.arccosh(x), (lambda g: g / np.sqrt((x - 1) * (x + 1)),)


def atanh(x: Array) -> tuple[Array, Pullbacks]:
    """The inverse of the hyperbolic tangent."""
    return np.arctanh(x), (lambda g: g / ((1 - x) * (1 + x)),)


def expm1(x: Array) -> tuple[Array, Pullbacks]:
    """``exp(x) - 1``."""
    y = np.expm1(x)
    return y, (lambda g: np.multiply(g, y + 1),)


def log1p(x: Array) -> tuple[Array, Pullbacks]:
    """``log(1 + x)``."""
    return np.log1p(x), (lambda g: g / (1 + x),)


def log2(x: Array) -> tuple[Array, Pullbacks]:
    """The logarithm to the base 2."""
    return np.log2(x), (lambda g: g / (x * _LN_2),)


def log10(x: Array) -> tuple[Array, Pullbacks]:
    """The logarithm to the base 10."""
    return np.log10(x), (lambda g: g / (x * _LN_10),)


def rsqrt(x: Array) -> tuple[Array, Pullbacks]:
    """``1 / sqrt(x)``."""
    y = 1 / np.sqrt(x)
    return y, (lambda g: np.multiply(g, -0.5 * y / x),)


def erf(x: Array) -> tuple[Array, Pullbacks]:
    """The error function."""
    return special.erf(x), (lambda g: np.multiply(g, _2_OVER_SQRT_PI * np.exp(-np.square(x))),)


def floor(x: Array) -> tuple[Array, Pullbacks]:
    """The largest integer that is not above."""
    return np.floor(x), (Zero(),)


def ceil(x: Array) -> tuple[Array, Pullbacks]:
    """The smallest integer that is not below."""
    return np.ceil(x), (Zero(),)


def round(x: Array) -> tuple[Array, Pullbacks]:
    """The nearest integer, the even one of two."""
    return np.rint(x), (Zero(),)


def trunc(x: Array) -> tuple[Array, Pullbacks]:
    """The integer that is next towards 0."""
    return np.trunc(x), (Zero(),)


def sign(x: Array) -> tuple[Array, Pullbacks]:
    """-1, 0 or 1."""
    return np.sign(x), (Zero(),)


def dropout(x: Array, scaled_mask: Array) -> tuple[Array, Pullbacks]:
    """``x * scaled_mask``, with the same mask backwards."""
    mask = like(scaled_mask, x)
    return x * mask, (lambda g: g * mask,)
