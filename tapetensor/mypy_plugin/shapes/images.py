"""Images reduced by windows, stretched, or laid out as rows: functions and layers."""

from __future__ import annotations

from tapetensor.mypy_plugin.shapes.calls import Answer, Call, MismatchError
from tapetensor.mypy_plugin.shapes.convolution import check_rank
from tapetensor.mypy_plugin.shapes.dims import ONE, Dims, is_negative, product, written
from tapetensor.mypy_plugin.shapes.dtypes import check_floating
from tapetensor.mypy_plugin.shapes.own_names import settled_dims
from tapetensor.mypy_plugin.shapes.reading import (
    Operand,
    all_known,
    is_floating,
    is_none,
    known,
    read_shape,
    read_tensor,
)
from tapetensor.mypy_plugin.shapes.windows import Window, read_number, read_numbers


def pooling(call: Call) -> Answer:
    """Return the result of a function that reduces windows."""
    image, step = image_of(call), call.argument("stride")
    (kernel,) = read_numbers(call, {"kernel_size": 2})
    x = known(image)
    # By default windows stand as far apart as they are large.
    moved = () if step is None or is_none(step) else ("stride",)
    *stride, padding, dilation = read_numbers(
        call, dict.fromkeys((*moved, "padding", "dilation"), 2)
    )
    window = Window(kernel, stride[0] if stride else kernel, padding, dilation)
    _check_padding(window)
    return call.like(x, (*x.dims[:-2], *settled_dims(_counts(x.dims, window), x.dims, call.api)))


def pooling_layer(call: Call) -> Answer:
    """Return the result of the `forward` of a pooling layer."""
    x = known(image_of(call))
    kernel, stride, padding = [(read_number(one),) * 2 for one in call.layer]
    window = Window(kernel, stride, padding, (ONE, ONE))
    return call.like(x, (*x.dims[:-2], *settled_dims(_counts(x.dims, window), x.dims, call.api)))


def upscale2d(call: Call) -> Answer:
    """Return the result of `upscale2d`: the size that was asked for."""
    x, size = known(image_of(call)), known(read_shape(call.argument("size")))
    return _stretched(call, x, size) if len(size) == 2 else None


def interpolate(call: Call) -> Answer:
    """Return the result of `interpolate`: the size that was asked for."""
    x, size = known(image_of(call)), known(read_shape(call.argument("size")))
    if any(one.literal == 0 or is_negative(one) for one in size):
        raise MismatchError(f"size must be > 0, got {written(size)}")
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
    check_floating(x)
    if not is_floating(x.dtype):
        return None
    check_rank(x.shape, 2)
    return x


def _check_padding(window: Window) -> None:
    for sizes in zip(window.kernel, window.padding, window.dilation, strict=True):
        numbers = all_known([one.literal for one in sizes])
        if numbers is None:
            continue
        kernel, padding, dilation = numbers
        if 2 * padding > dilation * (kernel - 1) + 1:
            raise MismatchError(
                f"padding {written(window.padding)} is more than half of the window "
                f"{written(window.kernel)}; a window would hold nothing but padding"
            )


def _counts(shape: Dims, window: Window) -> Dims:
    """Return how many windows there are along each axis, each of which holds some of the image."""
    counts = window.counts(shape)
    axes = zip(shape[-2:], counts, window.stride, window.padding, window.dilation, strict=True)
    for sizes in axes:
        numbers = all_known([one.literal for one in sizes])
        if numbers is None:
            continue
        size, count, stride, padding, dilation = numbers
        # A window that begins before the image may have its next element behind it.
        starts = range(-padding, 0, stride)[:count]
        if any(start % dilation >= size for start in starts):
            raise MismatchError(
                f"a window of {written(window.kernel)} with padding {written(window.padding)} and "
                f"dilation {written(window.dilation)} holds nothing but padding of the input of "
                f"shape {written(shape)}"
            )
    return counts


def _stretched(call: Call, x: Operand, size: Dims) -> Answer:
    for have, want in zip(x.dims[-2:], size, strict=True):
        if have.literal is not None and want.literal is not None and want.literal < have.literal:
            raise MismatchError(
                f"an input of shape {written(x.dims)} cannot be stretched to {written(size)}; "
                "interpolate and avg_pool2d make images smaller"
            )
    return call.like(x, (*x.dims[:-2], *size))
