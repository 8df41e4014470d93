"""Images made larger or smaller, along one axis after the other."""

from __future__ import annotations

import numpy as np

from tapetensor.arrays.array import Array
from tapetensor.arrays.libraries import like
from tapetensor.kernels.numerics.windows import batch_first, batch_last
from tapetensor.tape import Pullback, Pullbacks

# An axis of another length and its pullback.
Stretched = tuple[Array, Pullback]
# Which element each of a new axis reads, and the weight that it has there; None for 1.
Tap = tuple[Array, Array | None]
# What a cubic takes from beyond the two nearest elements; PyTorch's, and most programs'.
_SHARPNESS = -0.75


def upscale2d(
    x: Array, height: int, width: int, mode: str, align_corners: bool
) -> tuple[Array, Pullbacks]:
    """`interpolate`; it has a name of its own so that errors say what the user wrote."""
    return interpolate(x, height, width, mode, align_corners)


def interpolate(
    x: Array, height: int, width: int, mode: str, align_corners: bool
) -> tuple[Array, Pullbacks]:
    """Stretch the last two axes, by repetition ("nearest") or interpolation."""
    taps = _nearest if mode == "nearest" else _linear if mode == "bilinear" else _cubic
    images = batch_last(x, 2)
    tall, pullback_height = _stretched(images, 1, taps(images.shape[1], height, align_corners))
    y, pullback_width = _stretched(tall, 2, taps(images.shape[2], width, align_corners))

    def pullback(g: Array) -> Array:
        return batch_first(pullback_height(pullback_width(batch_last(g, 2))), x.shape[:-3])

    return batch_first(y, x.shape[:-3]), (pullback,)


def _nearest(old: int, new: int, align_corners: bool) -> list[Tap]:
    """Return the element at ``floor(i * old / new)``."""
    return [(np.arange(new) * old // new, None)]


def _linear(old: int, new: int, align_corners: bool) -> list[Tap]:
    """Return the two elements around each place."""
    below, share = _places(old, new, align_corners, low=0)
    return [(below, 1 - share), (np.minimum(below + 1, old - 1), share)]


def _cubic(old: int, new: int, align_corners: bool) -> list[Tap]:
    """Return the four elements around each place; the first and the last stand for those beyond."""
    below, share = _places(old, new, align_corners, low=-1)
    far, near = _SHARPNESS, _SHARPNESS + 2

    def beyond(distance: Array) -> Array:
        return ((far * distance - 5 * far) * distance + 8 * far) * distance - 4 * far

    def beside(distance: Array) -> Array:
        return (near * distance - near - 1) * distance * distance + 1

    weights = (beyond(share + 1), beside(share), beside(1 - share), beyond(2 - share))
    return [
        (np.clip(below + step, 0, old - 1), w)
        for step, w in zip(range(-1, 3), weights, strict=True)
    ]


def _places(old: int, new: int, align_corners: bool, low: int) -> tuple[Array, Array]:
    """Return the place of each element of a new axis: that before it, and how far behind that."""
    steps = np.arange(new)
    # Integers keep the corners, and every pixel that falls on another, exact.
    if align_corners:
        divisor = max(new - 1, 1)
        numerator = steps * (old - 1)
    else:
        divisor = 2 * new
        numerator = np.maximum((2 * steps + 1) * old - new, low * divisor)
    below, rest = np.divmod(numerator, divisor)
    return below, rest / divisor


def _stretched(x: Array, axis: int, taps: list[Tap]) -> Stretched:
    """Return an axis of which each element is what it reads, weighed."""
    along = [1] * x.ndim
    along[axis] = -1
    weighed = [
        (sources, None if w is None else like(np.reshape(w, along).astype(x.dtype), x))
        for sources, w in taps
    ]

    def pullback(g: Array) -> Array:
        parts = [
            _read_by(g if weights is None else g * weights, sources, axis, x.shape)
            for sources, weights in weighed
        ]
        return _total(parts)

    read = [(np.take(x, sources, axis=axis), weights) for sources, weights in weighed]
    return _total([y if weights is None else y * weights for y, weights in read]), pullback


def _read_by(g: Array, sources: Array, axis: int, shape: tuple[int, ...]) -> Array:
    """Return what each element gets from those that read it; `sources` ascend."""
    starts = np.flatnonzero(np.diff(sources, prepend=-1))
    sums = np.add.reduceat(g, like(starts, g), axis=axis)
    if starts.size == shape[axis]:
        return sums
    # Some are read by none.
    result = np.zeros_like(sums, shape=(*sums.shape[:axis], shape[axis], *sums.shape[axis + 1 :]))
    result[(slice(None),) * axis + (like(sources[starts], g),)] = sums
    return result


def _total(parts: list[Array]) -> Array:
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total
