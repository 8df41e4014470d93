"""Windows that slide over the spatial axes: where they stand, what they read and write.

The arrays in here have their batch *last*: ``(channels, *spatial, batch)``. A shifted slice of such
an array is made of runs as long as the batch times a row, which copies and adds several times
faster than with the batch or the channels elsewhere, and channels in front are the rows of the
matrices that a convolution multiplies.
"""

from __future__ import annotations

import itertools
import math
from functools import partial, reduce
from typing import NamedTuple

import numpy as np

from tapetensor.arrays.array import Array
from tapetensor.kernels.numerics.decorators import MANY_STEPS, native_from, writing_step

Sizes = tuple[int, ...]


class Window(NamedTuple):
    """A window over a padded array, one number of each kind per spatial axis.

    Attributes:
        kernel: how many elements it reads.
        stride: how far apart two neighbouring windows stand.
        padding: how many elements are added at both ends.
        dilation: how far apart two neighbouring elements of one window are.
    """

    kernel: Sizes
    stride: Sizes
    padding: Sizes
    dilation: Sizes

    @property
    def area(self) -> int:
        """The number of elements of a window."""
        return math.prod(self.kernel)

    @property
    def is_element(self) -> bool:
        """Whether each element is a window."""
        return self.area == math.prod(self.stride) == 1 and not any(self.padding)

    @property
    def is_disjoint(self) -> bool:
        """Whether no element belongs to two windows."""
        return all(
            dilation * (kernel - 1) < stride
            for kernel, stride, dilation in zip(
                self.kernel, self.stride, self.dilation, strict=True
            )
        )

    def of_row(self) -> Window:
        """Return a window over sequences as one over images of one row."""
        return Window(*[(one, *of) for one, of in zip((1, 1, 0, 1), self, strict=True)])

    def counts(self, sizes: Sizes) -> Sizes:
        """Return how many windows fit along each axis; 0 or less where none does."""
        return tuple(
            [
                (size + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1
                for size, kernel, stride, padding, dilation in zip(sizes, *self, strict=True)
            ]
        )

    def places(self, count: Sizes) -> list[tuple[slice, ...]]:
        """Return, for each element of a window, where all windows read it in a padded array."""
        along = [
            [
                slice(at * dilation, at * dilation + (windows - 1) * stride + 1, stride)
                for at in range(kernel)
            ]
            for windows, kernel, stride, dilation in zip(
                count, self.kernel, self.stride, self.dilation, strict=True
            )
        ]
        return [(slice(None), *place) for place in itertools.product(*along)]


def batch_last(x: Array, spatial: int) -> Array:
    """Return ``(*leading, channels, *spatial)`` as ``(channels, *spatial, batch)``."""
    merged = np.reshape(x, (math.prod(x.shape[: -1 - spatial]), *x.shape[-1 - spatial :]))
    return np.moveaxis(merged, 0, -1)


def batch_first(x: Array, leading: Sizes) -> Array:
    """Undo `batch_last`."""
    return np.reshape(np.moveaxis(x, -1, 0), (*leading, *x.shape[:-1]))


def padded(x: Array, padding: Sizes, fill: float = 0.0) -> Array:
    """Return an array with `fill` around its spatial axes, its batch innermost in memory."""
    if not any(padding):
        # Reshaping there and back copies where the batch is not innermost yet, and only there.
        return np.reshape(np.reshape(x, (x.size,)), x.shape)
    sizes = [size + 2 * extra for size, extra in zip(x.shape[1:-1], padding, strict=True)]
    result = np.full_like(x, fill, order="C", shape=(x.shape[0], *sizes, x.shape[-1]))
    result[_inside(x.shape[1:-1], padding)] = x
    return result


def cropped(x: Array, padding: Sizes) -> Array:
    """Undo `padded`."""
    if not any(padding):
        return x
    sizes = [size - 2 * extra for size, extra in zip(x.shape[1:-1], padding, strict=True)]
    return x[_inside(tuple(sizes), padding)]


def overlap(size: int, count: int, before: int, step: int) -> tuple[slice, slice]:
    """Return which of `size` elements are read, and by which of `count` places.

    Place number ``i`` reads element ``i * step - before``, if there is one.
    """
    first = max(0, -(-before // step) if before > 0 else 0)
    stop = max(first, min(count, (size - 1 + before) // step + 1))
    start = first * step - before
    return slice(start, start + (stop - first) * step, step), slice(first, stop)


def gather(x: Array, window: Window, count: Sizes) -> Array:
    """Return what all windows read, as ``(channels, elements of a window, *count, batch)``."""
    full = padded(x, window.padding)
    places = window.places(count)
    if len(places) == 1:
        return np.expand_dims(full[places[0]], 1)
    # Each element of a window is a slice: copying numpy's sliding view takes ten times longer.
    return np.stack([full[place] for place in places], axis=1)


def scatter(columns: Array, window: Window, sizes: Sizes) -> Array:
    """Add up what windows hold where they read it: the transpose of `gather`."""
    extended = [size + 2 * extra for size, extra in zip(sizes, window.padding, strict=True)]
    shape = (columns.shape[0], *extended, columns.shape[-1])
    result = np.empty_like(columns, order="C", shape=shape)
    write_sums(result, columns, window)
    return cropped(result, window.padding)


@partial(writing_step, by_machine_code=True)
@native_from(MANY_STEPS)
def write_sums(result: Array, columns: Array, window: Window) -> None:
    """Write into a padded array what windows hold, added up where they read it."""
    result[...] = 0
    for element, place in enumerate(window.places(columns.shape[2:-1])):
        result[place] += columns[:, element]


@partial(writing_step, by_machine_code=True)
@native_from(MANY_STEPS)
def write_shares(
    result: Array, g: Array, full: Array, best: Array, is_beaten: np.ufunc, window: Window
) -> None:
    """Write the cotangent of a padded array from that of the extremes of its windows.

    The winners of a window share its own equally: what is not beaten by the extreme.
    """
    places = window.places(best.shape[1:-1])
    # Asked this way round, every element of a window with a NaN wins: none of them is beaten.
    # They are numbers, because a product with a mask casts it each time.
    wins = [np.logical_not(is_beaten(full[place], best)).astype(full.dtype) for place in places]
    if any(window.padding):
        # Padding must not win beside an infinity or a NaN, which do not beat it either.
        sizes = cropped(full, window.padding).shape[1:-1]
        inside = padded(np.ones_like(best, shape=(1, *sizes, 1)), window.padding)
        wins = [won * inside[place] for won, place in zip(wins, places, strict=True)]
    share = g / reduce(np.add, wins)
    result[...] = 0
    for place, won in zip(places, wins, strict=True):
        if window.is_disjoint:
            np.multiply(share, won, out=result[place])
        else:
            result[place] += share * won


def _inside(sizes: Sizes, padding: Sizes) -> tuple[slice, ...]:
    spatial = [slice(at, at + size) for size, at in zip(sizes, padding, strict=True)]
    return (slice(None), *spatial)
