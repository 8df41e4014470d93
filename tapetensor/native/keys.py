"""Integers in the order of floats: of them LLVM finds a maximum with vector instructions.

Of floats it does not, because a NaN is neither larger nor smaller than anything. Here a NaN has the
key that wins, so that it is found as numpy finds it. The functions are written for float32; with
the names of `WIDTHS` in place of their own they are compiled for each width.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tapetensor.native.polynomials import Number, choose


def _width(floats: type[np.floating[Any]], integers: Any, bits: int) -> dict[str, Any]:
    sign = bits - 1
    return {
        "F": floats, "I": integers, "SIGN": integers(sign),
        "LEAST": integers(-(2**sign)), "GREATEST": integers(2**sign - 1),
    }  # fmt: skip


# By what generated code calls the type of the floats.
WIDTHS = {"f4": _width(np.float32, np.int32, 32), "f8": _width(np.float64, np.int64, 64)}
F, I, SIGN, LEAST, GREATEST = WIDTHS["f4"].values()


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
