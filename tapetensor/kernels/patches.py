"""Windows of images as columns, and channels as pixels; each is undone by its neighbour here."""

from __future__ import annotations

import numpy as np

from tapetensor.arrays.array import Array
from tapetensor.kernels.numerics.windows import (
    Sizes,
    Window,
    batch_first,
    batch_last,
    gather,
    scatter,
)
from tapetensor.tape import Pullbacks


def unfold(x: Array, window: Window) -> tuple[Array, Pullbacks]:
    """The elements of every window of ``(*leading, channels, height, width)``, as a column."""
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
