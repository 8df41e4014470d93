"""Functions of one array, element by element."""

from __future__ import annotations

import math

import numpy as np

from tapetensor.gradients import Array
from tapetensor.kernels.special import erf
from tapetensor.tape import Pullbacks

_SQRT_2_OVER_PI = math.sqrt(2.0 / math.pi)
_GELU_CUBIC = 0.044715


def exp(x: Array) -> tuple[Array, Pullbacks]:
    """``e ** x``."""
    y = np.exp(x)
    return y, (y.__mul__,)


def log(x: Array) -> tuple[Array, Pullbacks]:
    """The natural logarithm."""
    return np.log(x), (lambda g: g / x,)


def sqrt(x: Array) -> tuple[Array, Pullbacks]:
    """The square root."""
    y = np.sqrt(x)
    return y, (lambda g: g / (y + y),)


def square(x: Array) -> tuple[Array, Pullbacks]:
    """``x * x``."""
    return np.square(x), (lambda g: g * (x + x),)


def abs(x: Array) -> tuple[Array, Pullbacks]:
    """``|x|``; the derivative at 0 is 0."""
    return np.absolute(x), (lambda g: g * np.sign(x),)


def sin(x: Array) -> tuple[Array, Pullbacks]:
    """The sine."""
    return np.sin(x), (lambda g: g * np.cos(x),)


def cos(x: Array) -> tuple[Array, Pullbacks]:
    """The cosine."""
    return np.cos(x), (lambda g: -g * np.sin(x),)


def tanh(x: Array) -> tuple[Array, Pullbacks]:
    """The hyperbolic tangent."""
    y = np.tanh(x)
    return y, (lambda g: g - g * y * y,)


def sigmoid(x: Array) -> tuple[Array, Pullbacks]:
    """``1 / (1 + e ** -x)``."""
    y = _logistic(x)
    return y, (lambda g: g * (y - y * y),)


def relu(x: Array) -> tuple[Array, Pullbacks]:
    """``max(x, 0)``; the derivative at 0 is 0."""
    y = np.maximum(x, 0)
    # y is 0 or positive, so its sign is the derivative, without a comparison's cast.
    return y, (lambda g: g * np.sign(y),)


def silu(x: Array) -> tuple[Array, Pullbacks]:
    """``x * sigmoid(x)``."""
    s = _logistic(x)
    y = x * s
    return y, (lambda g: g * (s + y * (1 - s)),)


def gelu(x: Array) -> tuple[Array, Pullbacks]:
    """``x * Phi(x)``, with the normal distribution function from the error function."""
    cdf = 0.5 * (1.0 + erf(x * math.sqrt(0.5)))
    scale = 1.0 / math.sqrt(2.0 * math.pi)
    return x * cdf, (lambda g: g * (cdf + x * (np.exp(-0.5 * np.square(x)) * scale)),)


def gelu_tanh(x: Array) -> tuple[Array, Pullbacks]:
    """``x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x ** 3)))``."""
    squared = x * x
    t = np.tanh(_SQRT_2_OVER_PI * x * (1.0 + _GELU_CUBIC * squared))

    def pullback(g: Array) -> Array:
        inner_slope = _SQRT_2_OVER_PI * (1.0 + (3.0 * _GELU_CUBIC) * squared)
        return g * (0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * inner_slope)

    return 0.5 * x * (1.0 + t), (pullback,)


def softplus(x: Array) -> tuple[Array, Pullbacks]:
    """``log(1 + e ** x)``."""
    return np.logaddexp(x, 0), (lambda g: g * _logistic(x),)


def clip(x: Array, low: float | None, high: float | None) -> tuple[Array, Pullbacks]:
    """``x`` held between two bounds; the derivative at a bound is 1."""

    def pullback(g: Array) -> Array:
        inside = np.ones_like(x)
        if low is not None:
            inside = inside * (x >= low)
        if high is not None:
            inside = inside * (x <= high)
        return g * inside

    return np.clip(x, low, high), (pullback,)


def reciprocal(x: Array) -> tuple[Array, Pullbacks]:
    """``1 / x``."""
    y = 1 / x
    return y, (lambda g: -g * y * y,)


def _logistic(x: Array) -> Array:
    # With the exponent never positive nothing overflows, and small values keep all their digits.
    # fabs, whose slope at 0 is that of `x >= 0`, which is the side that is chosen there.
    e = np.exp(-np.fabs(x))
    y: Array = np.where(x < 0, e, 1) / (1 + e)
    return y
