"""Images reduced by windows, stretched, or laid out as rows: functions and layers."""

from __future__ import annotations

from tapetensor.errors import ArgumentValueError
from tapetensor.mypy_plugin.shapes.calls import Answer, Call
from tapetensor.mypy_plugin.shapes.dtypes import check_floating
from tapetensor.mypy_plugin.shapes.own_names import settled_dims
from tapetensor.mypy_plugin.shapes.reading import (
    Operand,
    is_absent,
    is_floating,
    known,
    read_shape,
    read_tensor,
)
from tapetensor.mypy_plugin.shapes.windows import read_number, read_numbers, read_sizes
from tapetensor.rules import windows as rules
from tapetensor.rules.dims import Dims, is_negative, product
from tapetensor.rules.windows import Window


def pooling(call: Call) -> Answer:
    """Return the result of a function that reduces windows."""
    image, step = image_of(call), call.argument("stride")
    (kernel,) = read_numbers(call, {"kernel_size": 2})
    x = known(image)
    # By default windows stand as far apart as they are large.
    moved = () if is_absent(step) else ("stride",)
    *stride, padding, dilation = read_numbers(
        call, dict.fromkeys((*moved, "padding", "dilation"), 2)
    )
    window = Window(kernel, stride[0] if stride else kernel, padding, dilation)
    return _reduced(call, x, window)


def pooling_layer(call: Call) -> Answer:
    """Return the result of the `forward` of a pooling layer."""
    x = known(image_of(call))
    return _reduced(call, x, Window(*[read_sizes(one, 2) for one in call.layer]))


def _reduced(call: Call, x: Operand, window: Window) -> Answer:
    found = rules.pooling(call.op, x.dims, window)
    return call.like(x, (*found[:-2], *settled_dims(found[-2:], x.dims, call.api)))


def upscale2d(call: Call) -> Answer:
    """Return the result of `upscale2d`: the size that was asked for."""
    x, size = known(image_of(call)), known(read_shape(call.argument("size")))
    return _stretched(call, x, size) if len(size) == 2 else None


def interpolate(call: Call) -> Answer:
    """Return the result of `interpolate`: the size that was asked for."""
    x, size = known(image_of(call)), known(read_shape(call.argument("size")))
    for one in size:
        if one.literal == 0 or is_negative(one):
            raise ArgumentValueError(f"{call.op}: size must be > 0, got {one}")
    return call.like(x, (*x.dims[:-2], *size)) if len(size) == 2 else None


def upscale_layer(call: Call) -> Answer:
    """Return the result of the `forward` of `Upscale2d`."""
    return _stretched(call, known(image_of(call)), tuple(map(read_number, call.layer)))


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


def _stretched(call: Call, x: Operand, size: Dims) -> Answer:
    rules.check_stretch(call.op, x.dims, size)
    return call.like(x, (*x.dims[:-2], *size))
