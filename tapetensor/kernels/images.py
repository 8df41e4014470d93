"""Windows of images: pooled, as columns and as pixels of channels; and images of other sizes."""

from __future__ import annotations

from functools import reduce

import numpy as np

from tapetensor.arrays.array import Array
from tapetensor.arrays.libraries import like
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
    gather,
    padded,
    scatter,
    write_shares,
)
from tapetensor.tape import Pullback, Pullbacks


def _shape_of_pooled(x: Array, window: Window) -> Sizes:
    return *x.shape[:-2], *window.counts(x.shape[-2:])


@whole_kernel(_shape_of_pooled, for_models=True)
def avg_pool2d(x: Array, window: Window) -> tuple[Array, Pullbacks]:
    """The sum over a window, the zeros of the padding included, divided by its area."""
    leading, count = x.shape[:-3], window.counts(x.shape[-2:])
    full = padded(batch_last(x, 2), window.padding)
    places = window.places(count)
    total = reduce(np.add, [full[place] for place in places])
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
        best = reduce(extreme, [full[place] for place in window.places(count)])

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
    highest = reduce(extreme, _shifted(full, 1, window, count))
    return highest, reduce(extreme, _shifted(highest, 2, window, count))


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
    for axis, wins, source in ((2, row_wins, highest), (1, column_wins, full)):
        result = np.zeros_like(source)
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


def unfold(x: Array, window: Window) -> tuple[Array, Pullbacks]:
    """What every window reads of ``(*leading, channels, height, width)``, as a column."""
    leading, sizes = x.shape[:-3], x.shape[-2:]
    count = window.counts(sizes)
    source = batch_last(x, 2)
    columns = gather(source, window, count)
    rows = x.shape[-3] * window.area
    y = np.reshape(columns, (rows, count[0] * count[1], source.shape[-1]))
    return batch_first(y, leading), (lambda g: fold(g, window, sizes)[0],)


def fold(x: Array, window: Window, sizes: Sizes) -> tuple[Array, Pullbacks]:
    """The columns added up where windows read them: the transpose of `unfold`."""
    leading = x.shape[:-2]
    source = batch_last(x, 1)
    channels = x.shape[-2] // window.area
    shape = (channels, window.area, *window.counts(sizes), source.shape[-1])
    y = scatter(np.reshape(source, shape), window, sizes)
    return batch_first(y, leading), (lambda g: unfold(g, window)[0],)


def pixel_shuffle(x: Array, factor: int) -> tuple[Array, Pullbacks]:
    """The channels of a pixel as a square of pixels."""
    *leading, channels, height, width = x.shape
    rank, out_channels = len(leading), channels // factor**2
    parts = np.reshape(x, (*leading, out_channels, factor, factor, height, width))
    order = (*range(rank), *[rank + one for one in (0, 3, 1, 4, 2)])
    shape = (*leading, out_channels, height * factor, width * factor)
    y = np.reshape(np.transpose(parts, order), shape)
    return y, (lambda g: pixel_unshuffle(g, factor)[0],)


def pixel_unshuffle(x: Array, factor: int) -> tuple[Array, Pullbacks]:
    """The pixels of a square as channels of one pixel: it undoes `pixel_shuffle`."""
    *leading, channels, height, width = x.shape
    rank, sizes = len(leading), (height // factor, width // factor)
    parts = np.reshape(x, (*leading, channels, sizes[0], factor, sizes[1], factor))
    order = (*range(rank), *[rank + one for one in (0, 2, 4, 1, 3)])
    y = np.reshape(np.transpose(parts, order), (*leading, channels * factor**2, *sizes))
    return y, (lambda g: pixel_shuffle(g, factor)[0],)


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
        return reduce(np.add, parts)

    read = [(np.take(x, sources, axis=axis), weights) for sources, weights in weighed]
    parts = [y if weights is None else y * weights for y, weights in read]
    return reduce(np.add, parts), pullback


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
