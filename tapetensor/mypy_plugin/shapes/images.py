"""Images reduced by windows, stretched, or laid out as rows: functions and layers."""

from __future__ import annotations

from mypy.types import Type

from tapetensor.mypy_plugin.shapes.calls import UNSURE, Answer, Call, MismatchError, Rule
from tapetensor.mypy_plugin.shapes.convolution import check_rank
from tapetensor.mypy_plugin.shapes.dims import ANY, Dims, Size, product, written
from tapetensor.mypy_plugin.shapes.dtypes import check_floating
from tapetensor.mypy_plugin.shapes.reading import (
    Operand,
    is_floating,
    is_none,
    read_int,
    read_shape,
    read_tensor,
)
from tapetensor.mypy_plugin.shapes.windows import Numbers, Window, listed, read_numbers


def pooling(op: str) -> Rule:
    """Return the rule of a function that reduces windows."""

    def rule(call: Call) -> Answer:
        image, step = _image(op, call.position(0)), call.argument("stride")
        kernel = read_numbers(op, "kernel_size", call.position(1), 2, 1)
        if image is None or kernel is None:
            return UNSURE
        x, shape = image
        stride: Numbers | None = kernel
        if step is not None and not is_none(step):
            stride = read_numbers(op, "stride", step, 2, 1)
        padding = read_numbers(op, "padding", call.argument("padding"), 2, 0, low=0)
        dilation = read_numbers(op, "dilation", call.argument("dilation"), 2, 1)
        if stride is None or padding is None or dilation is None:
            return UNSURE
        window = Window(kernel, stride, padding, dilation)
        _check_padding(op, window)
        return call.like(x, (*shape[:-2], *_counts(op, shape, window)))

    return rule


def pooling_layer(op: str) -> Rule:
    """Return the rule of the `forward` of a pooling layer."""

    def rule(call: Call) -> Answer:
        image, arguments = _image(op, call.position(0)), call.layer
        if image is None or arguments is None:
            return UNSURE
        x, shape = image
        kernel, stride, padding = [(read_int(one),) * 2 for one in arguments]
        window = Window(kernel, stride, padding, (1, 1))
        return call.like(x, (*shape[:-2], *_counts(op, shape, window)))

    return rule


def upscale2d(call: Call) -> Answer:
    """Return the result of `upscale2d`: the size that was asked for."""
    image, asked = _image("upscale2d", call.position(0)), call.argument("size")
    size = None if asked is None else read_shape(asked)
    if image is None or size is None or len(size) != 2:
        return UNSURE
    return _stretched(call, *image, size)


def upscale_layer(call: Call) -> Answer:
    """Return the result of the `forward` of `Upscale2d`."""
    image, arguments = _image("upscale2d", call.position(0)), call.layer
    if image is None or arguments is None:
        return UNSURE
    sizes = [read_int(one) for one in arguments]
    return _stretched(call, *image, tuple(ANY if one is None else Size.of(one) for one in sizes))


def upscale_by_layer(call: Call) -> Answer:
    """Return the result of the `forward` of `Upscale2dBy`."""
    image, arguments = _image("Upscale2dBy", call.position(0)), call.layer
    if image is None or arguments is None:
        return UNSURE
    x, shape = image
    factor = read_int(arguments[0])
    by = ANY if factor is None else Size.of(factor)
    return call.like(x, (*shape[:-2], *[product((by, size)) for size in shape[-2:]]))


def flatten_layer(call: Call) -> Answer:
    """Return the result of the `forward` of `Flatten`."""
    x = read_tensor(call.position(0))
    # Of a 0-d tensor mypy has complained already: no overload takes it.
    if x is None or not x.shape:
        return UNSURE
    return call.like(x, (x.shape[0], product(x.shape[1:])))


def _image(op: str, found: Type | None) -> tuple[Operand, Dims] | None:
    """Return an image and its shape; None where plain typing decides."""
    x = read_tensor(found)
    if x is None or x.shape is None:
        return None
    check_floating(op, x)
    if not is_floating(x.dtype):
        return None
    check_rank(op, x.shape, 2)
    return x, x.shape


def _check_padding(op: str, window: Window) -> None:
    numbers = zip(window.kernel, window.padding, window.dilation, strict=True)
    for kernel, padding, dilation in numbers:
        if kernel is None or padding is None or dilation is None:
            continue
        if 2 * padding > dilation * (kernel - 1) + 1:
            raise MismatchError(
                f"{op}: padding {listed(window.padding)} is more than half of the window "
                f"{listed(window.kernel)}; a window would hold nothing but padding"
            )


def _counts(op: str, shape: Dims, window: Window) -> Dims:
    """Return how many windows there are along each axis, each of which holds some of the image."""
    counts = window.counts(op, shape)
    axes = zip(shape[-2:], counts, window.stride, window.padding, window.dilation, strict=True)
    for size, count, stride, padding, dilation in axes:
        if not isinstance(size, Size) or not isinstance(count, Size) or stride is None:
            continue
        if size.literal is None or count.literal is None or padding is None or dilation is None:
            continue
        # Of one that begins before it the first element that does not may lie behind it.
        starts = range(-padding, 0, stride)[: count.literal]
        if any(start % dilation >= size.literal for start in starts):
            raise MismatchError(
                f"{op}: a window of {listed(window.kernel)} with padding {listed(window.padding)} "
                f"and dilation {listed(window.dilation)} holds nothing but padding of the input "
                f"of shape {written(shape)}"
            )
    return counts


def _stretched(call: Call, x: Operand, shape: Dims, size: Dims) -> Answer:
    for have, want in zip(shape[-2:], size, strict=True):
        before, after = (one.literal if isinstance(one, Size) else None for one in (have, want))
        if before is not None and after is not None and after < before:
            raise MismatchError(
                f"upscale2d: an input of shape {written(shape)} cannot be stretched to "
                f"{written(size)}; avg_pool2d makes images smaller"
            )
    return call.like(x, (*shape[:-2], *size))
