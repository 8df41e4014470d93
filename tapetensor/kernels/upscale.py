"""Images made larger, along one axis after the other."""

from __future__ import annotations

import numpy as np

from tapetensor.arrays.array import Array
from tapetensor.arrays.libraries import like
from tapetensor.kernels.numerics.windows import batch_first, batch_last
from tapetensor.tape import Pullback, Pullbacks

# A longer array and its pullback.
Stretched = tuple[Array, Pullback]


def upscale2d(x: Array, height: int, width: int, mode: str) -> tuple[Array, Pullbacks]:
    """Stretch the last two axes, by repetition ("nearest") or interpolation ("bilinear")."""
    stretched = _repeated if mode == "nearest" else _interpolated
    tall, pullback_height = stretched(batch_last(x, 2), 1, height)
    y, pullback_width = stretched(tall, 2, width)

    def pullback(g: Array) -> Array:
        return batch_first(pullback_height(pullback_width(batch_last(g, 2))), x.shape[:-3])

    return batch_first(y, x.shape[:-3]), (pullback,)


def _repeated(x: Array, axis: int, size: int) -> Stretched:
    """Return every element of an axis several times: output ``i`` is ``floor(i * old / new)``."""
    sources = np.arange(size) * x.shape[axis] // size
    starts = _first_of_each(sources)
    return np.take(x, sources, axis=axis), lambda g: np.add.reduceat(g, like(starts, g), axis=axis)


def _interpolated(x: Array, axis: int, size: int) -> Stretched:
    """Return an axis interpolated; its two ends stay its ends."""
    last = x.shape[axis] - 1
    # Integers keep the corners, and every pixel that falls on another, exact.
    below, rest = np.divmod(np.arange(size) * last, max(size - 1, 1))
    above = np.minimum(below + 1, last)
    along = [1] * x.ndim
    along[axis] = size
    share = like(np.reshape(rest / max(size - 1, 1), along).astype(x.dtype), x)
    starts = like(_first_of_each(below), x)

    def pullback(g: Array) -> Array:
        to_below = np.add.reduceat(g * (1 - share), starts, axis=axis)
        to_above = np.add.reduceat(g * share, starts, axis=axis)
        # What goes to the pixel above the last one goes to the last one: its share is 0.
        front = np.take(to_below, range(1), axis=axis)
        behind = np.take(to_below, range(1, last + 1), axis=axis)
        shifted = np.take(to_above, range(last), axis=axis)
        return np.concatenate([front, behind + shifted], axis=axis)

    y = np.take(x, below, axis=axis) * (1 - share) + np.take(x, above, axis=axis) * share
    return y, pullback


def _first_of_each(sources: Array) -> Array:
    """Return where each number of an ascending sequence without gaps occurs first."""
    return np.flatnonzero(np.diff(sources, prepend=-1))
