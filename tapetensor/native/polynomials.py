"""Functions of one float32 without a branch, which LLVM turns into vector instructions.

`tapetensor.native.scalars` compiles them into generated code. Each is right to within 2 units in
the last place, and NaN and infinities come out where numpy has them. float64 uses the library's.

The last are integers in the order of floats: of them LLVM finds a maximum with vector instructions.
Of floats it does not, because a NaN is neither larger nor smaller than anything. Here a NaN has the
key that wins, so that it is found as numpy finds it. The functions are written for float32; with
the names of `WIDTHS` in place of their own they are compiled for each width.
"""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np

# A number of numpy's here, one of numba's when it is compiled.
Number: TypeAlias = Any

F = np.float32
I = np.int32

_LOG2_E = F(1.4426950408889634)
# The logarithm of 2 in two parts. The first ends in zeros, so that a small multiple is exact.
_LOG_2_HIGH = F(0.693359375)
_LOG_2_LOW = F(-2.12194440e-4)
_TINY = F(1.17549435e-38)
_ROOT_HALF = F(0.70710677)
_INFINITY = F(math.inf)
_NAN = F(math.nan)


def choose(mask: Number, lhs: Number, rhs: Number) -> Number:
    """Return `lhs` if `mask` is true, else `rhs`. Compiled, it is an instruction and no branch."""
    return lhs if mask else rhs


def exp_without(k: Number, x: Number) -> Number:
    """``e ** x / 2 ** k`` for the k that brings it next to 1, by a polynomial of degree 7."""
    rest = (x - k * _LOG_2_HIGH) - k * _LOG_2_LOW
    p = F(1.9875691500e-4)
    p = p * rest + F(1.3981999507e-3)
    p = p * rest + F(8.3334519073e-3)
    p = p * rest + F(4.1665795894e-2)
    p = p * rest + F(1.6666665459e-1)
    p = p * rest + F(5.0000001201e-1)
    return p * (rest * rest) + rest + F(1.0)


def exp(x: Number) -> Number:
    """``e ** x``, by 2 ** k times a polynomial of degree 7.

    **Source**: S. Moshier, Cephes, expf.
    """
    # Beyond these bounds it is infinite or 0. The choice at the end brings a NaN back.
    held = choose(x < F(88.8), x, F(88.8))
    held = choose(held > F(-104.0), held, F(-104.0))
    k = np.rint(held * _LOG2_E)
    p = exp_without(k, held)
    # 2 ** k is no float32 at both ends, two factors are.
    n = I(k)
    half = n >> I(1)
    first = I((half + I(127)) << I(23)).view(F)
    second = I((n - half + I(127)) << I(23)).view(F)
    y = p * first * second
    return choose(x == x, y, x)


def log(x: Number) -> Number:
    """The natural logarithm.

    **Source**: S. Moshier, Cephes, logf.
    """
    is_small = x < _TINY
    # 2 ** 23 times a number that has lost leading digits has them all.
    bits = F(x * choose(is_small, F(8388608.0), F(1.0))).view(I)
    exponent = F((bits >> I(23)) - I(126)) - choose(is_small, F(23.0), F(0.0))
    m = I((bits & I(0x7FFFFF)) | I(0x3F000000)).view(F)
    is_low = m < _ROOT_HALF
    k = choose(is_low, exponent - F(1.0), exponent)
    m = choose(is_low, m + m, m) - F(1.0)
    z = m * m
    p = F(7.0376836292e-2)
    p = p * m + F(-1.1514610310e-1)
    p = p * m + F(1.1676998740e-1)
    p = p * m + F(-1.2420140846e-1)
    p = p * m + F(1.4249322787e-1)
    p = p * m + F(-1.6668057665e-1)
    p = p * m + F(2.0000714765e-1)
    p = p * m + F(-2.4999993993e-1)
    p = p * m + F(3.3333331174e-1)
    y = m * z * p + k * _LOG_2_LOW - F(0.5) * z
    y = m + y + k * _LOG_2_HIGH
    y = choose(x == _INFINITY, x, y)
    y = choose(x == F(0.0), -_INFINITY, y)
    return choose(x >= F(0.0), y, _NAN)


def log1p(x: Number) -> Number:
    """``log(1 + x)``: the logarithm of the rounded sum, and what the rounding has lost over it."""
    u = F(1.0) + x
    lost = x - (u - F(1.0))
    # The sign is that of x, also where x is -0.
    y = math.copysign(log(u) + lost / choose(u > F(0.0), u, F(1.0)), x)
    # At infinity what is lost is NaN.
    return choose(u < _INFINITY, y, u)


def tanh(x: Number) -> Number:
    """The hyperbolic tangent: a polynomial near 0, and beyond by ``e ** (2 * x)``.

    **Source**: S. Moshier, Cephes, tanhf.
    """
    size = abs(x)
    z = x * x
    p = F(-5.70498872745e-3)
    p = p * z + F(2.06390887954e-2)
    p = p * z + F(-5.37397155531e-2)
    p = p * z + F(1.33314422036e-1)
    p = p * z + F(-3.33332819422e-1)
    near = p * z * x + x
    # From 10 on it is 1. Below, 2 ** k is a float32 as it stands.
    held = choose(size < F(10.0), size, F(10.0))
    k = np.rint((held + held) * _LOG2_E)
    power = exp_without(k, held + held) * I((I(k) + I(127)) << I(23)).view(F)
    far = F(1.0) - F(2.0) / (power + F(1.0))
    # The sign is that of x, also where x is -0.
    y = math.copysign(choose(size < F(0.625), near, far), x)
    return choose(x == x, y, x)


def _width(floats: type[np.floating[Any]], integers: Any, bits: int) -> dict[str, Any]:
    sign = bits - 1
    return {
        "F": floats, "I": integers, "SIGN": integers(sign),
        "LEAST": integers(-(2**sign)), "GREATEST": integers(2**sign - 1),
    }  # fmt: skip


# By what generated code calls the type of the floats.
WIDTHS = {"f4": _width(np.float32, np.int32, 32), "f8": _width(np.float64, np.int64, 64)}
_, _, SIGN, LEAST, GREATEST = WIDTHS["f4"].values()


def highest_key(x: Number) -> Number:
    """Return the key of a float for a maximum."""
    bits = I(F(x).view(I))
    key = I(bits ^ ((bits >> SIGN) & GREATEST))
    return choose(x == x, key, GREATEST)


def lowest_key(x: Number) -> Number:
    """Return the key of a float for a minimum."""
    bits = I(F(x).view(I))
    key = I(bits ^ ((bits >> SIGN) & GREATEST))
    return choose(x == x, key, LEAST)


def from_key(key: Number) -> Number:
    """Return the float of a key."""
    return I(key ^ ((key >> SIGN) & GREATEST)).view(F)


def highest(best: Number, key: Number) -> Number:
    """Return the larger of two keys of one width."""
    return choose(key > best, key, best)


def lowest(best: Number, key: Number) -> Number:
    """Return the smaller of two keys of one width."""
    return choose(key < best, key, best)
