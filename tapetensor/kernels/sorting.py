"""Elements in their order along an axis."""

from __future__ import annotations

import numpy as np

from tapetensor.arrays.array import Array
from tapetensor.kernels.indexing import take_along_axis
from tapetensor.kernels.numerics.ordering import order_of
from tapetensor.tape import Pullbacks


def sort(x: Array, axis: int, descending: bool) -> tuple[Array, Pullbacks]:
    """The elements in order; equal ones keep the order that they have."""
    order = order_of(x, axis, descending)

    def pullback(g: Array) -> Array:
        return np.take_along_axis(g, np.argsort(order, axis=axis), axis)

    return np.take_along_axis(x, order, axis), (pullback,)


def topk(x: Array, indices: Array, axis: int) -> tuple[Array, Pullbacks]:
    """`take_along_axis`; it has a name of its own so that errors say what the user wrote."""
    return take_along_axis(x, indices, axis)
