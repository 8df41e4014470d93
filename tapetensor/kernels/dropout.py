"""Leaving elements out by a mask that was drawn."""

from __future__ import annotations

from tapetensor.arrays.array import Array
from tapetensor.arrays.libraries import like
from tapetensor.tape import Pullbacks


def dropout(x: Array, scaled_mask: Array) -> tuple[Array, Pullbacks]:
    """``x * scaled_mask``, with the same mask backwards."""
    mask = like(scaled_mask, x)
    return x * mask, (lambda g: g * mask,)
