"""Windows of images as columns, and channels as pixels: functions and layers."""

from __future__ import annotations

from tapetensor.mypy_plugin.shapes.calls import Answer, Call, MismatchError
from tapetensor.mypy_plugin.shapes.convolution import check_rank, is_left_over
from tapetensor.mypy_plugin.shapes.dims import (
    ANY,
    Dim,
    Dims,
    are_other_numbers,
    computed,
    product,
    written,
)
from tapetensor.mypy_plugin.shapes.dtypes import check_floating
from tapetensor.mypy_plugin.shapes.images import image_of
from tapetensor.mypy_plugin.shapes.own_names import settled_dims
from tapetensor.mypy_plugin.shapes.reading import Operand, known, read_shape
from tapetensor.mypy_plugin.shapes.windows import Window, read_number, read_numbers


def unfold(call: Call) -> Answer:
    """Return the result of `unfold`: rows for what a window reads, a column for each."""
    x, window = known(image_of(call)), _window(call)
    found = (product((x.dims[-3], *window.kernel)), product(window.counts(x.dims)))
    return call.like(x, (*x.dims[:-3], *settled_dims(found, x.dims, call.api)))


def fold(call: Call) -> Answer:
    """Return the result of `fold`: images of the size that was asked for."""
    x, size, window = call.operand(0), known(read_shape(call.argument("size"))), _window(call)
    check_floating(x)
    if len(size) != 2:
        return None
    area, count = product(window.kernel), product(window.counts(size))
    if len(x.dims) < 2 or is_left_over(x.dims[-2], area) or are_other_numbers(x.dims[-1], count):
        raise MismatchError(
            f"for images of size {written(size)} and windows of {written(window.kernel)} the "
            f"input must have shape (..., C * {area}, {count}), got {written(x.dims)}"
        )
    channels = (_quotient(x.dims[-2], area),)
    return call.like(x, (*x.dims[:-2], *settled_dims(channels, x.dims, call.api), *size))


def pixel_shuffle(call: Call) -> Answer:
    """Return the result of `pixel_shuffle`, or its layer: fewer channels, and larger images."""
    x, factor = _image_and_factor(call)
    channels, area = x.dims[-3], product((factor, factor))
    if is_left_over(channels, area):
        raise MismatchError(
            f"the {channels} channels of shape {written(x.dims)} are no multiple of {area}, the "
            "pixels of a square"
        )
    sizes = [product((size, factor)) for size in x.dims[-2:]]
    return _resized(call, x, (_quotient(channels, area), *sizes))


def pixel_unshuffle(call: Call) -> Answer:
    """Return the result of `pixel_unshuffle`, or its layer: more channels, and smaller images."""
    x, factor = _image_and_factor(call)
    if any(is_left_over(size, factor) for size in x.dims[-2:]):
        raise MismatchError(
            f"the height and the width of shape {written(x.dims)} are no multiples of {factor}"
        )
    sizes = [_quotient(size, factor) for size in x.dims[-2:]]
    return _resized(call, x, (product((x.dims[-3], factor, factor)), *sizes))


def _image_and_factor(call: Call) -> tuple[Operand, Dim]:
    """Return the images and the factor, which is an argument or of the layer's type."""
    is_layer = call.formals == 1
    factor = read_number(call.layer[0]) if is_layer else read_numbers(call, {"factor": 1})[0][0]
    x = call.operand(0)
    check_rank(x.dims, 2)
    return x, factor


def _resized(call: Call, x: Operand, found: Dims) -> Answer:
    return call.like(x, (*x.dims[:-3], *settled_dims(found, x.dims, call.api)))


def _window(call: Call) -> Window:
    names = ("kernel_size", "stride", "padding", "dilation")
    return Window(*read_numbers(call, dict.fromkeys(names, 2)))


def _quotient(size: Dim, by: Dim) -> Dim:
    return computed(lambda whole, part: whole / part or ANY, size, by)
