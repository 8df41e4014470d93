"""Convolutions in eager mode as loops over planes, beside `kernels.convolution`.

The planes are read as they lie, without a matrix of what windows read. Sums stay in registers while
all is added to them: an element of a filter meets one run of the frame of a channel (see `planes`),
which begins at its offset.
"""

from __future__ import annotations

import math
from functools import cache, lru_cache
from typing import NamedTuple

import numpy as np

from tapetensor.arrays.array import Array
from tapetensor.compiler.emit.code import indented
from tapetensor.kernels.numerics.along_axes import ones
from tapetensor.kernels.numerics.windows import Sizes, Window
from tapetensor.native.lanes import TURN
from tapetensor.native.loading import are_known, cotangents_on_numpy, pullbacks_of, run_over
from tapetensor.native.planes import FRAMES, frame_of
from tapetensor.tape import Pullbacks
from tapetensor.tape.pullbacks import Kernel, Needed


def convolution(
    kernel: Kernel,
    x: Array,
    weight: Array,
    bias: Array | None,
    window: Window,
    groups: int,
    *written: Sizes,
) -> tuple[Array, Pullbacks]:
    """Return a convolution, or a transposed one, by loops where they are faster.

    Args:
        kernel: the kernel as it is on numpy.
        x: its operands, as all that follows.
        weight: the filters.
        bias: one number for each channel that is written.
        window: what a filter reads, or writes.
        groups: how many groups of channels are convolved apart.
        written: the sizes of what the windows of a transposed convolution write.
    """
    args = x, weight, bias, window, groups, *written
    arrays = [one for one in (x, weight, bias) if one is not None]
    if not are_known(*arrays) or not all(one.flags.c_contiguous for one in arrays):
        return kernel(*args)
    # Sequences are images of one row.
    is_row = len(window.kernel) == 1
    if is_row:
        window = window.of_row()
    images = _as_images(x, is_row)
    filters = weight.reshape(*weight.shape[:2], *window.kernel)
    sizes: Sizes = (*(1,) * is_row, *written[0]) if written else images.shape[-2:]
    # Between windows there are zeros, by which filters are multiplied on the way back.
    can_go_back = bool(np.isfinite(weight).all())
    if not is_faster(filters, window, groups, sizes) or (written and not can_go_back):
        return kernel(*args)

    def there(images: Array, bias: Array | None = None) -> Array:
        return convolved(images, filters, bias, window, groups)

    def back(images: Array, bias: Array | None = None) -> Array:
        return convolved_back(images, filters, bias, window, groups, sizes)

    forward, backward = (back, there) if written else (there, back)

    def cotangents(needed: Needed, g: Array) -> list[Array | None]:
        g_images = _as_images(g, is_row)
        found: list[Array | None] = [None] * len(arrays)
        if needed[0]:
            found[0] = backward(g_images).reshape(x.shape)
        if needed[1]:
            pair = (images, g_images) if written else (g_images, images)
            found[1] = to_weight(*pair, window, groups).reshape(weight.shape)
        is_finite = found[1] is None or np.isfinite(found[1]).all()
        if not is_finite or (needed[0] and not can_go_back):
            return cotangents_on_numpy(kernel, args, needed, g)
        if needed[2:] == (True,):
            rows = g.reshape(-1, g_images.shape[-3], math.prod(g_images.shape[-2:]))
            found[2] = np.add.reduce(np.matmul(rows, ones(rows.shape[2], g.dtype)), axis=0)
        return found

    y = forward(images, bias)
    if is_row:
        y = y.reshape(*y.shape[:-2], y.shape[-1])
    return y, pullbacks_of(kernel, args, y, (True,) * len(arrays), cotangents)


def _as_images(x: Array, is_row: bool) -> Array:
    return x.reshape(*x.shape[:-1], 1, x.shape[-1]) if is_row else x


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
    """What is read from the frames of the channels of a group.

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


# So many sums are in registers at once. That hides how long each takes, and fits into 16 registers.
SUMS = 8

# A frame is entered once for all blocks of filters that follow each other.
_RUNS = """
def loop(
    first, last, planes, weight, starts, offsets, ends, result, pitch, size,
    shape, stride, padding, to_shape, to_stride, to_padding,
):
    groups, blocks, _, filters = weight.shape
    channels, slack = planes.shape[1], {sums} * lane_count(planes)
    frame = np.zeros(channels * pitch + slack, planes.dtype)
    reach = (ends.size - 1) * size + slack
    sums = np.empty(filters * reach, planes.dtype)
    for one in range(first, last):
        image, block = one // blocks, one % blocks
        if one == first or block == 0:
            for channel in range(channels):
                enter(planes[image, channel], frame[channel * pitch :], shape, stride, padding)
        factors, start = weight[image % groups, block].reshape(-1), starts[image % groups, block]
        for part in range(ends.size - 1):
            target = sums[part * size :]
            tile(frame, offsets, ends[part], ends[part + 1], factors, start, target, reach, size)
        targets = result[image, block * filters : (block + 1) * filters]
        for filter in range(len(targets)):
            leave(sums[filter * reach :], targets[filter], to_shape, to_stride, to_padding)
"""
# Each part of a batch is added up by itself, some images together while they are in the cache.
_TO_WEIGHT = """
def loop(
    first, last, planes, g, parts, offsets, pitch, across, together, shape, stride, padding
):
    images, groups, channels = planes.shape[:3]
    filters, down, right = g.shape[2:]
    rows, width = parts.shape[2:]
    lanes = lane_count(planes)
    frame = np.zeros(together * channels * pitch + lanes, planes.dtype)
    values = np.zeros(together * down * across * width + lanes, planes.dtype)
    numbers = np.arange(2).astype(planes.dtype)
    for one in range(first, last):
        part, group = one // groups, one % groups
        sums = parts[part, group].reshape(-1)
        end = images * (part + 1) // len(parts)
        for begin in range(images * part // len(parts), end, together):
            count = min(together, end - begin)
            for image in range(count):
                for channel in range(channels):
                    plane = planes[begin + image, group, channel]
                    target = frame[(image * channels + channel) * pitch :]
                    enter(plane, target, shape, stride, padding)
{run}
"""
_BY_FILTERS = """\
            for image in range(count):
                of_image = g[begin + image, group].reshape(filters, down * right)
                turn(of_image, values[image * down * right * width :], width)
            for lead in range(0, width, lanes):
                for k in range(0, rows, {rows}):
                    tile(
                        frame, offsets, k, values[lead:], sums[lead:], numbers, width,
                        count, channels * pitch, down, right, across,
                    )
"""
_BY_WINDOWS = """\
            for filter in range(filters):
                enter(g[begin, group, filter], values, (down, across), (1, 1), (0, 0))
                run = (down - 1) * across + right
                for k in range(0, rows, {rows}):
                    tile(frame, offsets, k, values, sums[filter:], numbers, width, run)
"""


@cache
def runs(filters: int) -> str:
    """Return the source of what windows read times the elements of filters, so many at once."""
    vectors = SUMS // filters
    sums = [(f, v) for f in range(filters) for v in range(vectors)]
    products = []
    for f in range(filters):
        products.append(f"w = repeated(weight, k * {filters} + {f})")
        products += [f"s{f}_{v} = with_product(s{f}_{v}, w, x{v})" for v in range(vectors)]
    lines = [
        "def tile(frame, offsets, first, last, weight, starts, sums, reach, size):",
        "    lanes = lane_count(frame)",
        f"    for at in range(0, size, {vectors} * lanes):",
        *indented([f"s{f}_{v} = repeated(starts, {f})" for f, v in sums], 2),
        "        for k in range(first, last):",
        "            begin = offsets[k] + at",
        *indented([f"x{v} = loaded(frame, begin + {v} * lanes)" for v in range(vectors)], 3),
        *indented(products, 3),
        *indented([f"stored(sums, {f} * reach + at + {v} * lanes, s{f}_{v})" for f, v in sums], 2),
    ]
    return _source(lines, _RUNS.format(sums=SUMS))


@cache
def to_weight_by_filters(rows: int) -> str:
    """Return the source of the cotangent of a weight, vectors of filters times so many elements."""
    each = range(rows)
    ends = []
    for k in each:
        ends.append(f"end = (k + {k}) * width")
        ends.append(f"stored(sums, end, with_product(loaded(sums, end), s{k}, one))")
    lines = [
        "def tile(",
        "    frame, offsets, k, values, sums, numbers, width, count, distance, down, right, across",
        "):",
        "    zero, one, at = repeated(numbers, 0), repeated(numbers, 1), 0",
        *indented([f"o{k}, s{k} = offsets[k + {k}], zero" for k in each]),
        "    for image in range(count):",
        "        for row in range(down):",
        "            begin = image * distance + row * across",
        "            for read in range(begin, begin + right):",
        "                g = loaded(values, at)",
        *indented([f"s{k} = with_product(s{k}, repeated(frame, o{k} + read), g)" for k in each], 4),
        "                at += width",
        *indented(ends),
    ]
    return _source(lines, TURN + _TO_WEIGHT.format(run=_BY_FILTERS.format(rows=rows)))


@cache
def to_weight_by_windows(rows: int) -> str:
    """Return the source of the cotangent of a weight, vectors of windows times so many elements."""
    each = range(rows)
    lines = [
        "def tile(frame, offsets, k, values, sums, numbers, width, size):",
        "    zero, lanes = repeated(numbers, 0), lane_count(values)",
        *indented([f"o{k}, s{k} = offsets[k + {k}], zero" for k in each]),
        "    for at in range(0, size, lanes):",
        "        g = loaded(values, at)",
        *indented([f"s{k} = with_product(s{k}, loaded(frame, o{k} + at), g)" for k in each], 2),
        *indented([f"sums[(k + {k}) * width] += in_all(s{k})" for k in each]),
    ]
    return _source(lines, _TO_WEIGHT.format(run=_BY_WINDOWS.format(rows=rows)))


def _source(tile: list[str], loop: str) -> str:
    return "\n".join([FRAMES, *tile, "", "", "tile = compiled(tile)", "", loop])
