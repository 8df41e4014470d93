"""Reductions over windows."""

from __future__ import annotations

import numpy as np

from tapetensor.gradients import Array
from tapetensor.kernels.windows import Window, batch_first, batch_last, cropped, padded
from tapetensor.tape import Pullbacks


def avg_pool2d(x: Array, window: Window) -> tuple[Array, Pullbacks]:
    """The sum over a window, the zeros of the padding included, divided by its area."""
    leading, count = x.shape[:-3], window.counts(x.shape[-2:])
    full = padded(batch_last(x, 2), window.padding)
    places = window.places(count)
    total = full[places[0]]
    for place in places[1:]:
        total = total + full[place]
    shape = full.shape

    def pullback(g: Array) -> Array:
        share = batch_last(g, 2) / window.area
        result = np.zeros_like(share, order="C", shape=shape)
        for place in places:
            if window.is_disjoint:
                result[place] = share
            else:
                result[place] += share
        return batch_first(cropped(result, window.padding), leading)

    return batch_first(total / window.area, leading), (pullback,)


def max_pool2d(x: Array, window: Window) -> tuple[Array, Pullbacks]:
    """The largest element of a window; ties share the cotangent equally."""
    return _extreme(x, window, np.maximum, np.less, -np.inf)


def min_pool2d(x: Array, window: Window) -> tuple[Array, Pullbacks]:
    """The smallest element of a window; ties share the cotangent equally."""
    return _extreme(x, window, np.minimum, np.greater, np.inf)


def _extreme(
    x: Array, window: Window, extreme: np.ufunc, is_beaten: np.ufunc, fill: float
) -> tuple[Array, Pullbacks]:
    """Reduce windows by `extreme`; `fill` is what never wins, and pads."""
    leading, count = x.shape[:-3], window.counts(x.shape[-2:])
    full = padded(batch_last(x, 2), window.padding, fill)
    places = window.places(count)
    y = full[places[0]]
    for place in places[1:]:
        y = extreme(y, full[place])
    best = y

    def pullback(g: Array) -> Array:
        # Asked this way round, every element of a window with a NaN wins: none of them is beaten.
        # As numbers, because a product with a mask casts it each time.
        wins = [np.logical_not(is_beaten(full[place], best)).astype(x.dtype) for place in places]
        if any(window.padding):
            # Nor does padding win beside an infinity or a NaN, which do not beat it either.
            inside = padded(np.ones_like(best, shape=(1, *x.shape[-2:], 1)), window.padding)
            wins = [won * inside[place] for won, place in zip(wins, places, strict=True)]
        winners = wins[0]
        for won in wins[1:]:
            winners = winners + won
        share = batch_last(g, 2) / winners
        result = np.zeros_like(full)
        for place, won in zip(places, wins, strict=True):
            if window.is_disjoint:
                np.multiply(share, won, out=result[place])
            else:
                result[place] += share * won
        return batch_first(cropped(result, window.padding), leading)

    return batch_first(y, leading), (pullback,)
