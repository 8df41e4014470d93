"""Integers in the order of floats: of them LLVM finds a maximum with vector instructions.

Of floats it does not, because a NaN is neither larger nor smaller than anything. Here a NaN has the
key that wins, so that it is found as numpy finds it.
"""

from __future__ import annotations

import numpy as np

from tapetensor.native.polynomials import Number, choose

F4, F8 = np.float32, np.float64
I4, I8 = np.int32, np.int64

LEAST_F4, GREATEST_F4 = I4(-(2**31)), I4(2**31 - 1)
LEAST_F8, GREATEST_F8 = I8(-(2**63)), I8(2**63 - 1)


def highest_key_f4(x: Number) -> Number:
    """Return the key of a float32 for a maximum."""
    bits = I4(F4(x).view(I4))
    key = I4(bits ^ ((bits >> I4(31)) & GREATEST_F4))
    return choose(x == x, key, GREATEST_F4)


def lowest_key_f4(x: Number) -> Number:
    """Return the key of a float32 for a minimum."""
    bits = I4(F4(x).view(I4))
    key = I4(bits ^ ((bits >> I4(31)) & GREATEST_F4))
    return choose(x == x, key, LEAST_F4)


def from_key_f4(key: Number) -> Number:
    """Return the float32 of a key."""
    return I4(key ^ ((key >> I4(31)) & GREATEST_F4)).view(F4)


def highest_key_f8(x: Number) -> Number:
    """Return the key of a float64 for a maximum."""
    bits = I8(F8(x).view(I8))
    key = I8(bits ^ ((bits >> I8(63)) & GREATEST_F8))
    return choose(x == x, key, GREATEST_F8)


def lowest_key_f8(x: Number) -> Number:
    """Return the key of a float64 for a minimum."""
    bits = I8(F8(x).view(I8))
    key = I8(bits ^ ((bits >> I8(63)) & GREATEST_F8))
    return choose(x == x, key, LEAST_F8)


def from_key_f8(key: Number) -> Number:
    """Return the float64 of a key."""
    return I8(key ^ ((key >> I8(63)) & GREATEST_F8)).view(F8)


def highest(best: Number, key: Number) -> Number:
    """Return the larger of two keys of one width."""
    return choose(key > best, key, best)


def lowest(best: Number, key: Number) -> Number:
    """Return the smaller of two keys of one width."""
    return choose(key < best, key, best)
