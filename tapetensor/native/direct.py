"""Convolutions over planes as they lie, without a matrix of what windows read."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from tapetensor.arrays.array import Array
from tapetensor.kernels.numerics.windows import Sizes, Window
from tapetensor.native.loading import run_over
from tapetensor.native.planes import frame_of
from tapetensor.native.tiles import runs, to_weight_by_filters, to_weight_by_windows

# Images have so many windows at least.
_FEWEST_WINDOWS = 64
# So few multiplications for an image are less than what follows them.
_LITTLE = 1 << 20
# So many multiplications take as long as one element in other loops.
_MULTIPLICATIONS = 8
# The cotangent of a weight has vectors of filters if there are so many, otherwise of windows.
_MANY_FILTERS = 8
# It is added up in so many parts of a batch, on any number of threads.
_PARTS = 4
# So many elements are read again while they are in the cache of a core.
_CACHED = 1 << 16
# No vector has more elements.
_LONGEST_VECTOR = 16
_WHOLE = (1, 1), (0, 0)


class _Runs(NamedTuple):
    """The elements that are read from the frames of the channels of a group.

    Attributes:
        offsets: where the run of each element of a filter begins.
        ends: where those of each part of the result end in `offsets`, behind a 0.
        order: which element of a filter each is.
        pitch: how far apart the frames of two channels are.
    """

    offsets: Array
    ends: Array
    order: Array
    pitch: int


def is_faster(weight: Array, window: Window, groups: int, sizes: Sizes) -> bool:
    """Tell whether the loops here are faster than products of matrices.

    They have no columns to write, which is the more of the work the fewer filters there are. The
    shorter the runs are, the more of them is nothing but the ends of rows. Products leave images
    with the batch last, which pooling reads faster: that counts where there is little to convolve.
    """
    count = math.prod(window.counts(sizes))
    if groups == 1 and (window.area == 1 or (sizes[0] > 1 and weight.size * count < _LITTLE)):
        return False
    return count >= max(_FEWEST_WINDOWS, len(weight) // groups)


def convolved(x: Array, weight: Array, bias: Array | None, window: Window, groups: int) -> Array:
    """Return the convolution of ``(*leading, channels, height, width)``."""
    channels, area = weight.shape[1], window.area
    sizes = x.shape[-2:]
    planes = x.reshape(-1, channels, *sizes)
    (down, right), frame = window.counts(sizes), frame_of(sizes, window)
    filters = len(weight) // groups
    y = np.empty((len(planes), filters, down, right), x.dtype)
    matrices = weight.reshape(groups, filters, channels * area)
    reads = _reads(channels, sizes, window)
    into = frame.shape, window.stride, window.padding
    out_of = (down, frame.shape[1]), *_WHOLE
    _write_runs(y, planes, matrices, bias, reads, frame.run, into, out_of)
    return y.reshape(*x.shape[:-3], len(weight), down, right)


def convolved_back(
    g: Array, weight: Array, bias: Array | None, window: Window, groups: int, sizes: Sizes
) -> Array:
    """Return the cotangent of what was convolved, or the transposed convolution of images.

    Args:
        g: the cotangent.
        weight: the filters; if they are not finite, the result may be none where it should be.
        bias: what is added to each channel.
        window: what was read.
        groups: how many groups of channels are convolved apart.
        sizes: how large the images were.
    """
    channels, area = weight.shape[1], window.area
    filters = len(weight) // groups
    of_planes = g.reshape(-1, filters, *g.shape[-2:])
    frame = frame_of(sizes, window)
    result = np.empty((len(of_planes), channels, *sizes), g.dtype)
    by_element = weight.reshape(groups, filters, channels, area).swapaxes(1, 2)
    matrices = by_element.reshape(groups, channels, filters * area)
    writes, lead = _writes(filters, sizes, window)
    # Rows of padding are left out.
    above = window.padding[0] // window.stride[0]
    rows = -(-(sizes[0] + window.padding[0]) // window.stride[0]) - above
    across = frame.shape[1]
    into = (frame.shape[0], across), (1, 1), (0, lead)
    padding = window.padding[0] - above * window.stride[0], window.padding[1]
    out_of = (rows, across), window.stride, padding
    _write_runs(result, of_planes, matrices, bias, writes, rows * across, into, out_of)
    return result.reshape(*g.shape[:-3], groups * channels, *sizes)


def to_weight(g: Array, x: Array, window: Window, groups: int) -> Array:
    """Return the cotangent of the weight, ``(out, channels / groups, *kernel)``."""
    sizes, counts = x.shape[-2:], g.shape[-2:]
    channels, filters = x.shape[-3] // groups, g.shape[-3] // groups
    planes = x.reshape(-1, groups, channels, *sizes)
    of_planes = g.reshape(-1, groups, filters, *counts)
    frame, reads = frame_of(sizes, window), _reads(channels, sizes, window)
    count = reads.offsets.size
    rows = 9 if count % 9 == 0 else 8
    padded = -(-count // rows) * rows
    offsets = np.zeros(padded, np.int64)
    offsets[:count] = reads.offsets
    width, write, together = filters, to_weight_by_windows, 1
    if filters >= _MANY_FILTERS:
        width, write = -(-filters // _LONGEST_VECTOR) * _LONGEST_VECTOR, to_weight_by_filters
        of_image = channels * reads.pitch + width * counts[0] * counts[1]
        together = max(1, min(-(-len(planes) // _PARTS), _CACHED // of_image))
    parts = np.zeros((min(_PARTS, len(planes)), groups, padded, width), x.dtype)
    arrays = planes, of_planes, parts, offsets
    places = reads.pitch, frame.shape[1], together, frame.shape, window.stride, window.padding
    size = count * g.size // _MULTIPLICATIONS
    run_over(write(rows), size, len(parts) * groups, *arrays, *places)
    sums = np.add.reduce(parts, axis=0)[:, :count, :filters].swapaxes(1, 2)
    to_weight: Array = sums.reshape(groups * filters, channels, *window.kernel)
    return to_weight


def _write_runs(
    result: Array,
    planes: Array,
    matrices: Array,
    bias: Array | None,
    reads: _Runs,
    size: int,
    into: tuple[Sizes, Sizes, Sizes],
    out_of: tuple[Sizes, Sizes, Sizes],
) -> None:
    """Write sums of runs times elements of filters.

    Args:
        result: where they are written, ``(batch * groups, filters, height, width)``.
        planes: what is read, ``(batch * groups, channels, height, width)``.
        matrices: the filters of each group, ``(groups, filters, elements)``.
        bias: what the sums start with.
        reads: what they are sums of.
        size: how long runs are.
        into: the shape, the stride and the padding with which planes enter frames.
        out_of: those with which the results leave.
    """
    groups, count = matrices.shape[:2]
    filters = _at_once(count)
    blocks = -(-count // filters)
    weight = np.zeros((groups, blocks * filters, reads.order.size), planes.dtype)
    weight[:, :count] = matrices[:, :, reads.order]
    by_block = weight.reshape(groups, blocks, filters, -1).swapaxes(2, 3)
    starts = np.zeros((groups, blocks * filters), planes.dtype)
    if bias is not None:
        starts[:, :count] = bias.reshape(groups, count)
    arrays = planes, np.ascontiguousarray(by_block), starts.reshape(groups, blocks, filters)
    work = len(planes) * blocks * filters * reads.order.size * size // _MULTIPLICATIONS
    places = reads.offsets, reads.ends, result, reads.pitch, size
    run_over(runs(filters), work, len(planes) * blocks, *arrays, *places, *into, *out_of)


def _at_once(filters: int) -> int:
    """Return how many filters a loop takes at once; further ones of its last turn are wasted."""
    if filters <= 2:
        return filters
    return 4 if filters % 8 in (1, 2, 3, 4) else 8


@lru_cache(maxsize=256)
def _reads(channels: int, sizes: Sizes, window: Window) -> _Runs:
    """Return what windows read."""
    frame = frame_of(sizes, window)
    pitch = _apart(frame.size * window.stride[0] * window.stride[1])
    taps = [frame.place(row, column, window.stride) for row, column in _elements(window)]
    offsets = np.add.outer(np.arange(channels) * pitch, taps).reshape(-1)
    return _Runs(offsets, np.array([0, offsets.size]), np.arange(offsets.size), pitch)


@lru_cache(maxsize=256)
def _writes(filters: int, sizes: Sizes, window: Window) -> tuple[_Runs, int]:
    """Return what meets each part of a frame, of windows with zeros around and between them.

    The second number is how many zeros are in front of them.
    """
    frame = frame_of(sizes, window)
    taps = [frame.place(row, column, window.stride) for row, column in _elements(window)]
    lead = max([tap % frame.size for tap in taps])
    begin = lead + window.padding[0] // window.stride[0] * frame.shape[1]
    pitch = _apart(lead + frame.size)
    offsets, order, ends = [], [], [0]
    for part in range(window.stride[0] * window.stride[1]):
        of_part = [element for element, tap in enumerate(taps) if tap // frame.size == part]
        for filter in range(filters):
            offsets += [filter * pitch + begin - taps[one] % frame.size for one in of_part]
            order += [filter * len(taps) + one for one in of_part]
        ends.append(len(offsets))
    return _Runs(np.array(offsets), np.array(ends), np.array(order), pitch), lead


def _elements(window: Window) -> list[tuple[int, int]]:
    """Return in which row and column of a padded array the first window reads."""
    (height, width), (down, across) = window.kernel, window.dilation
    return [(row * down, column * across) for row in range(height) for column in range(width)]


def _apart(size: int) -> int:
    """Return how far apart frames lie: not so that their elements compete for a place in caches."""
    return (-(-size // 16) | 1) * 16
