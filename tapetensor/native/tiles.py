"""The loops of convolutions, written out: sums that stay in registers while all is added to them.

An element of a filter meets one run of the frame of a channel (see `planes`), which begins at its
offset.
"""

from __future__ import annotations

from functools import cache

from tapetensor.compiler.emit.code import indented
from tapetensor.native.lanes import TURN
from tapetensor.native.planes import FRAMES

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
