"""Windows of images as columns, and channels as pixels: functions and layers."""

from __future__ import annotations

from collections.abc import Callable

from tapetensor.mypy_plugin.shapes.calls import Answer, Call
from tapetensor.mypy_plugin.shapes.dtypes import check_floating
from tapetensor.mypy_plugin.shapes.images import image_of
from tapetensor.mypy_plugin.shapes.own_names import settled_dims
from tapetensor.mypy_plugin.shapes.reading import Operand, known, read_shape
from tapetensor.mypy_plugin.shapes.windows import read_number, read_numbers, read_sizes
from tapetensor.rules import windows as rules
from tapetensor.rules.dims import Dim, Dims, product
from tapetensor.rules.windows import Window


def unfold(call: Call) -> Answer:
    """Return the result of `unfold`, or its layer: rows for what a window reads, a column each."""
    x, window = known(image_of(call)), _window(call)
    found = (product((x.dims[-3], *window.kernel)), product(window.counts(call.op, x.dims)))
    return _settled(call, x, (*x.dims[:-3], *found), 2)


def fold(call: Call) -> Answer:
    """Return the result of `fold`: images of the size that was asked for."""
    x, size, window = call.operand(0), known(read_shape(call.argument("size"))), _window(call)
    check_floating(call.op, x)
    if len(size) != 2:
        return None
    found = rules.fold(call.op, x.dims, size, window)
    return _settled(call, x, found[:-2], 1, size)


def pixel_shuffle(call: Call) -> Answer:
    """Return the result of `pixel_shuffle`, or its layer: fewer channels, and larger images."""
    return _by_factor(call, rules.pixel_shuffle)


def pixel_unshuffle(call: Call) -> Answer:
    """Return the result of `pixel_unshuffle`, or its layer: more channels, and smaller images."""
    return _by_factor(call, rules.pixel_unshuffle)


def _by_factor(call: Call, rule: Callable[[str, Dims, Dim], Dims]) -> Answer:
    # The factor is an argument, or of the layer's type.
    is_layer = call.formals == 1
    factor = read_number(call.layer[0]) if is_layer else read_numbers(call, {"factor": 1})[0][0]
    x = call.operand(0)
    return _settled(call, x, rule(call.op, x.dims, factor), 3)


def _settled(call: Call, x: Operand, found: Dims, axes: int, asked: Dims = ()) -> Answer:
    """Return a result the last axes of which are new; those that were asked for stand behind."""
    return call.like(x, (*found[:-axes], *settled_dims(found[-axes:], x.dims, call.api), *asked))


def _window(call: Call) -> Window:
    if call.formals == 1:
        return Window(*[read_sizes(one, 2) for one in call.layer])
    names = ("kernel_size", "stride", "padding", "dilation")
    return Window(*read_numbers(call, dict.fromkeys(names, 2)))
