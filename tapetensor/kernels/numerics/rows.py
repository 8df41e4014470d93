"""The axes that a reduction goes over, as one axis."""

from __future__ import annotations

import math

import numpy as np

from tapetensor.arrays.array import Array
from tapetensor.tape import Pullback


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
