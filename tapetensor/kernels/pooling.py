"""Reductions over windows."""

from __future__ import annotations

import numpy as np

from tapetensor.arrays.array import Array
from tapetensor.kernels.numerics.decorators import (
    MANY_STEPS,
    native_from,
    runs_steps,
    single_step,
    whole_kernel,
)
from tapetensor.kernels.numerics.windows import (
    Sizes,
    Window,
    batch_first,
    batch_last,
    cropped,
    padded,
    write_shares,
)
from tapetensor.tape import Pullbacks


def _shape_of_pooled(x: Array, window: Window) -> Sizes:
    return *x.shape[:-2], *window.counts(x.shape[-2:])


@whole_kernel(_shape_of_pooled, for_models=True)
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


@whole_kernel(_shape_of_pooled, for_models=True)
@native_from(MANY_STEPS)
def max_pool2d(x: Array, window: Window) -> tuple[Array, Pullbacks]:
    """The largest element of a window; ties share the cotangent equally."""
    return _extreme(x, window, np.maximum, np.less, -np.inf)


@whole_kernel(_shape_of_pooled, for_models=True)
@native_from(MANY_STEPS)
def min_pool2d(x: Array, window: Window) -> tuple[Array, Pullbacks]:
    """The smallest element of a window; ties share the cotangent equally."""
    return _extreme(x, window, np.minimum, np.greater, np.inf)


def _extreme(
    x: Array, window: Window, extreme: np.ufunc, is_beaten: np.ufunc, fill: float
) -> tuple[Array, Pullbacks]:
    """Reduce windows by `extreme`; the padding is made of `fill`, which never wins."""
    leading, count = x.shape[:-3], window.counts(x.shape[-2:])
    full = padded(batch_last(x, 2), window.padding, fill)
    in_two_steps = runs_steps(full) and not window.is_disjoint
    if in_two_steps:
        highest, best = _found_in_two_steps(full, extreme, window, count)
    else:
        best = _combined([full[place] for place in window.places(count)], extreme)

    def pullback(g: Array) -> Array:
        turned = batch_last(g, 2)
        if in_two_steps and runs_steps(g):
            result = _shared_in_two_steps(turned, full, highest, best, is_beaten, window)
        else:
            result = _shared(turned, full, best, is_beaten, window)
        return batch_first(cropped(result, window.padding), leading)

    return batch_first(best, leading), (pullback,)


def _shared(g: Array, full: Array, best: Array, is_beaten: np.ufunc, window: Window) -> Array:
    """Return the cotangent of a padded array: the winners of a window share its own equally."""
    result = np.empty_like(full)
    write_shares(result, g, full, best, is_beaten, window)
    return result


@single_step
def _found_in_two_steps(
    full: Array, extreme: np.ufunc, window: Window, count: Sizes
) -> tuple[Array, Array]:
    """Return the extremes of the columns of all windows, and the extremes of these along the rows.

    That is less work than all at once, and most of it is done in long runs.
    """
    highest = _combined(_shifted(full, 1, window, count), extreme)
    return highest, _combined(_shifted(highest, 2, window, count), extreme)


@single_step
def _shared_in_two_steps(
    g: Array, full: Array, highest: Array, best: Array, is_beaten: np.ufunc, window: Window
) -> Array:
    """Return what `_shared` does; `highest` and `best` are what was found in two steps."""
    if not np.isfinite(best).all():
        return _shared(g, full, best, is_beaten, window)
    count = best.shape[1:-1]
    row_wins = [one == best for one in _shifted(highest, 2, window, count)]
    column_wins = [one == highest for one in _shifted(full, 1, window, count)]
    of_column = column_wins[0].astype(np.min_scalar_type(window.area))
    for won in column_wins[1:]:
        of_column += won
    winners = np.zeros_like(best, of_column.dtype)
    for one, won in zip(_shifted(of_column, 2, window, count), row_wins, strict=True):
        winners += one * won
    share: Array = g / winners.astype(g.dtype)
    for axis, wins, like in ((2, row_wins, highest), (1, column_wins, full)):
        result = np.zeros_like(like)
        stride, dilation = window.stride[axis - 1], window.dilation[axis - 1]
        written = set()
        for element, one in enumerate(_shifted(result, axis, window, count)):
            # Two elements meet only where they are a multiple of the stride apart.
            place = element * dilation % stride
            if place in written:
                one += share * wins[element]
            else:
                np.multiply(share, wins[element], out=one)
                written.add(place)
        share = result
    return share


def _shifted(x: Array, axis: int, window: Window, count: Sizes) -> list[Array]:
    """Return, for each element of a window along one axis, what all windows read."""
    at = axis - 1
    last = (count[at] - 1) * window.stride[at] + 1
    starts = [element * window.dilation[at] for element in range(window.kernel[at])]
    before = (slice(None),) * axis
    return [x[(*before, slice(start, start + last, window.stride[at]))] for start in starts]


def _combined(parts: list[Array], extreme: np.ufunc) -> Array:
    """Return the extremes of arrays of one shape, element by element."""
    best = parts[0]
    for part in parts[1:]:
        best = extreme(best, part)
    return best
