"""Rearranging axes: no arithmetic forwards, the inverse rearrangement backwards."""

from __future__ import annotations

import numpy as np

from tapetensor.arrays.array import Array
from tapetensor.kernels.numerics.along_axes import sum_to, unchanged
from tapetensor.tape import Pullback, Pullbacks

Shape = tuple[int, ...]
Widths = tuple[tuple[int, int], ...]


def reshape(x: Array, shape: Shape) -> tuple[Array, Pullbacks]:
    """The same elements in C order under another shape."""
    original = x.shape
    return np.reshape(x, shape), (lambda g: np.reshape(g, original),)


def flatten(x: Array, shape: Shape) -> tuple[Array, Pullbacks]:
    """`reshape` to one axis; it has a name of its own so that errors say what the user wrote."""
    return reshape(x, shape)


def squeeze(x: Array, shape: Shape) -> tuple[Array, Pullbacks]:
    """`reshape` without axes of size 1."""
    return reshape(x, shape)


def expand_dims(x: Array, shape: Shape) -> tuple[Array, Pullbacks]:
    """`reshape` with a new axis of size 1."""
    return reshape(x, shape)


def realize(x: Array) -> tuple[Array, Pullbacks]:
    """The array itself: what changes is what type checkers know of its shape."""
    return x, (unchanged,)


def permute_dims(x: Array, axes: Shape) -> tuple[Array, Pullbacks]:
    """The axes in another order."""
    inverse = tuple(sorted(range(len(axes)), key=axes.__getitem__))
    return np.transpose(x, axes), (lambda g: np.transpose(g, inverse),)


def transpose(x: Array, axes: Shape) -> tuple[Array, Pullbacks]:
    """`permute_dims` of the last two axes."""
    return permute_dims(x, axes)


def broadcast_to(x: Array, shape: Shape) -> tuple[Array, Pullbacks]:
    """The elements repeated to a larger shape."""
    original = x.shape
    return np.broadcast_to(x, shape), (lambda g: sum_to(g, original),)


def roll(x: Array, shift: int, axis: int) -> tuple[Array, Pullbacks]:
    """The elements moved along an axis; what leaves at one end enters at the other."""
    return np.roll(x, shift, axis), (lambda g: np.roll(g, -shift, axis),)


def pad(x: Array, widths: Widths, value: float) -> tuple[Array, Pullbacks]:
    """The elements within a frame of a number, `widths` wide before and after them on each axis."""
    y = x
    for axis, pair in enumerate(widths):
        ends = [
            np.zeros_like(y, shape=(*y.shape[:axis], width, *y.shape[axis + 1 :])) + value
            for width in pair
        ]
        if any(pair):
            y = np.concatenate([ends[0], y, ends[1]], axis=axis)
    inner = tuple(
        [slice(before, before + size) for (before, _), size in zip(widths, x.shape, strict=True)]
    )
    return np.copy(y) if y is x else y, (lambda g: g[inner],)


def concat(*operands: Array, axis: int) -> tuple[Array, Pullbacks]:
    """Arrays one after another along an existing axis."""
    pullbacks: list[Pullback] = []
    start = 0
    for operand in operands:
        stop = start + operand.shape[axis]
        pullbacks.append(_slice_pullback(axis, slice(start, stop)))
        start = stop
    return np.concatenate(operands, axis=axis), tuple(pullbacks)


def stack(*operands: Array, axis: int) -> tuple[Array, Pullbacks]:
    """Arrays of one shape along a new axis."""
    pullbacks = tuple([_slice_pullback(axis, index) for index in range(len(operands))])
    return np.stack(operands, axis=axis), pullbacks


def _slice_pullback(axis: int, part: int | slice) -> Pullback:
    index = (slice(None),) * axis + (part,)
    return lambda g: g[index]
