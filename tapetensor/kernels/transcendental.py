"""Functions of one array from geometry, growth and probability, element by element."""

from __future__ import annotations

import math

import numpy as np

from tapetensor.arrays.array import Array
from tapetensor.kernels.numerics import special
from tapetensor.tape import Pullbacks

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
