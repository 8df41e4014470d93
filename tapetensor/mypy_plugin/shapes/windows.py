"""Windows that move over images and sequences: convolutions, pooling, patches, upscaling."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mypy.types import Type

from tapetensor.errors import ArgumentValueError
from tapetensor.mypy_plugin.names import MAY_BE_0
from tapetensor.mypy_plugin.reading import (
    Operand,
    UndecidedError,
    all_known,
    common_dtype,
    is_absent,
    is_floating,
    is_int,
    keeps_size,
    known,
    merged,
    on_axes,
    read_dim,
    read_int,
    read_shape,
    read_tensor,
)
from tapetensor.mypy_plugin.shapes.broadcasting import check_floating, check_same
from tapetensor.mypy_plugin.shapes.calls import Answer, Call
from tapetensor.mypy_plugin.shapes.sizes import settled_dims
from tapetensor.rules import windows as rules
from tapetensor.rules.dims import ANY, Dim, Dims, Size, is_negative, product
from tapetensor.rules.windows import Window


def read_numbers(call: Call, axes: Mapping[str, int]) -> list[Dims]:
    """Return the numbers that arguments give.

    Args:
        axes: how many numbers to read, by the name of the argument.
    """
    # All are read before one may leave the call to plain typing, for the first may be refused.
    found = [_numbers(call.op, name, call.argument(name), count) for name, count in axes.items()]
    return [*known(all_known(found))]


def _numbers(op: str, name: str, found: Type | None, axes: int) -> Dims | None:
    low = 0 if name in MAY_BE_0 else 1
    if found is None:
        return (Size.of(low),) * axes
    items = on_axes(found, axes)
    if len(items) != axes or not all(is_int(one) or read_int(one) is not None for one in items):
        return None
    for number in map(read_int, items):
        if number is not None and number < low:
            says = "must be > 0" if low else "must not be negative"
            raise ArgumentValueError(f"{op}: {name} {says}, got {number}")
    return tuple(map(read_number, items))


def read_sizes(found: Type, axes: int) -> Dims:
    """Return the numbers of a window that a type argument of a layer names, one for each axis."""
    items = on_axes(found, axes)
    if len(items) != axes:
        raise UndecidedError
    return tuple(map(read_number, items))


def read_number(found: Type) -> Dim:
    """Return the number that a type names, be it by a name; ANY where it names none."""
    dim = read_dim(found)
    return dim if isinstance(dim, Size) else ANY


def convolution(call: Call) -> Answer:
    """Return the result of a function that slides a weight over `x`, or in which `x` writes it."""
    axes, transposed = _axes(call), call.op.startswith("conv_transpose")
    shapes, tape, dtype = _operands(call)
    x, weight = shapes[:2]
    rules.check_rank(call.op, x, axes)
    rules.check_weight(call.op, weight, axes, transposed=transposed)
    kernel = tuple(dim if isinstance(dim, Size) else ANY for dim in weight[2:])
    counts = dict.fromkeys(("stride", "padding", "dilation"), axes)
    stride, padding, dilation, groups, more = read_numbers(
        call, counts | {"groups": 1, "output_padding": axes}
    )
    window = Window(kernel, stride, padding, dilation)
    if transposed:
        found = rules.transposed_convolution(call.op, shapes, window, groups[0], more)
    else:
        found = rules.convolution(call.op, shapes, window, groups[0])
    return call.tensor((*found[:-axes], *settled_dims(found[-axes:], x, call.api)), tape, dtype)


def layer(call: Call) -> Answer:
    """Return the result of the `forward` of a convolution layer."""
    axes = _axes(call)
    operand, (channels, out_channels, *numbers, own_dtype) = call.operand(0), call.layer
    x, dtype = operand.dims, common_dtype(operand.dtype, own_dtype)
    taken, made = read_dim(channels), read_dim(out_channels)
    if taken is None or made is None:
        return None
    rules.check_rank(call.op, x, axes)
    rules.check_channels(call.op, x, axes, taken, f"the layer takes {taken}")
    kernel, stride, padding, *more, dilation = [read_sizes(one, axes) for one in numbers[:-1]]
    window = Window(kernel, stride, padding, dilation)
    if keeps_size(numbers[2]):
        sizes = x[-axes:]
    elif more:
        sizes = window.extents(call.op, x, more[0])
    else:
        sizes = settled_dims(window.counts(call.op, x), x, call.api)
    return call.tensor((*x[: -1 - axes], made, *sizes), operand.tape, dtype)


def _axes(call: Call) -> int:
    return 1 if call.op.endswith("1d") else 2


def _operands(call: Call) -> tuple[list[Dims], Type, Type]:
    """Return the shapes of the operands, and the tape state and dtype of the result."""
    given = [call.argument(index) for index in range(3)]
    if is_absent(given[2]):
        del given[2]
    operands = [known(read_tensor(one)) for one in given]
    check_floating(call.op, operands[0])
    check_same(call.op, operands)
    if not is_floating(operands[0].dtype):
        raise UndecidedError
    return ([one.dims for one in operands], *merged(operands))


def pooling(call: Call) -> Answer:
    """Return the result of a function that reduces windows, or of its layer."""
    image, window = image_of(call), _window(call)
    x = known(image)
    found = rules.pooling(call.op, x.dims, window)
    return call.like(x, (*found[:-2], *settled_dims(found[-2:], x.dims, call.api)))


def _window(call: Call) -> Window:
    """Return the window of a function, by its arguments, or of a layer, by its type."""
    if _is_layer(call):
        return Window(*[read_sizes(one, 2) for one in call.layer])
    names = ["kernel_size", "padding", "dilation"]
    # By default the windows of a pool stand as far apart as they are large.
    if not (call.op.endswith("pool2d") and is_absent(call.argument("stride"))):
        names.append("stride")
    kernel, padding, dilation, *stride = read_numbers(call, dict.fromkeys(names, 2))
    return Window(kernel, stride[0] if stride else kernel, padding, dilation)


def _is_layer(call: Call) -> bool:
    return call.formals == 1


def upscale2d(call: Call) -> Answer:
    """Return the result of `upscale2d`, or of its layer: the size that was asked for."""
    x, size = known(image_of(call)), _size(call)
    if len(size) != 2:
        return None
    rules.check_stretch(call.op, x.dims, size)
    return call.like(x, (*x.dims[:-2], *size))


def _size(call: Call) -> Dims:
    if _is_layer(call):
        return tuple(map(read_number, call.layer))
    return known(read_shape(call.argument("size")))


def interpolate(call: Call) -> Answer:
    """Return the result of `interpolate`: the size that was asked for."""
    x, size = known(image_of(call)), _size(call)
    for one in size:
        if one.literal == 0 or is_negative(one):
            raise ArgumentValueError(f"{call.op}: size must be > 0, got {one}")
    return call.like(x, (*x.dims[:-2], *size)) if len(size) == 2 else None


def upscale_by_layer(call: Call) -> Answer:
    """Return the result of the `forward` of `Upscale2dBy`."""
    x, by = known(image_of(call)), read_number(call.layer[0])
    return call.like(x, (*x.dims[:-2], *[product((by, size)) for size in x.dims[-2:]]))


def flatten_layer(call: Call) -> Answer:
    """Return the result of the `forward` of `Flatten`."""
    x = call.operand(0)
    # mypy has complained of a 0-d tensor already: no overload takes it.
    return call.like(x, (x.dims[0], product(x.dims[1:]))) if x.dims else None


def image_of(call: Call) -> Operand | None:
    """Return the image that is the first operand; None where plain typing decides."""
    x = read_tensor(call.argument(0))
    if x is None or x.shape is None:
        return None
    check_floating(call.op, x)
    if not is_floating(x.dtype):
        return None
    rules.check_rank(call.op, x.shape, 2)
    return x


def unfold(call: Call) -> Answer:
    """Return the result of `unfold`, or its layer: rows for what a window reads, a column each."""
    x, window = known(image_of(call)), _window(call)
    found = (product((x.dims[-3], *window.kernel)), product(window.counts(call.op, x.dims)))
    return _settled(call, x, (*x.dims[:-3], *found), 2)


def fold(call: Call) -> Answer:
    """Return the result of `fold`: images of the size that was asked for."""
    x, size, window = call.operand(0), _size(call), _window(call)
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
    asked = () if _is_layer(call) else read_numbers(call, {"factor": 1})[0]
    factor = asked[0] if asked else read_number(call.layer[0])
    x = call.operand(0)
    return _settled(call, x, rule(call.op, x.dims, factor), 3)


def _settled(call: Call, x: Operand, found: Dims, axes: int, asked: Dims = ()) -> Answer:
    """Return a result the last axes of which are new; those that were asked for stand behind."""
    return call.like(x, (*found[:-axes], *settled_dims(found[-axes:], x.dims, call.api), *asked))
