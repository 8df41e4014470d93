"""The arguments of ops that slide windows over images, checked."""

from __future__ import annotations

from typing import Any, TypeAlias

from tapetensor.arguments import as_size
from tapetensor.errors import ArgumentTypeError, ArgumentValueError, ShapeError
from tapetensor.kernels.numerics.windows import Sizes, Window
from tapetensor.tensor.base import TensorBase, check_floating, check_same_dtype, check_tensor

# One number for both axes, or one for each.
Ints: TypeAlias = int | tuple[int, int]


def as_window(op: str, kernel: Sizes, stride: object, padding: object, dilation: object) -> Window:
    """Return a window of numbers that hold for all axes, or of one for each.

    Raises:
        ArgumentTypeError: if one is not an int, or there are not as many as axes.
        ArgumentValueError: if one is outside its range.
    """
    axes = len(kernel)
    return Window(
        kernel,
        per_axis(op, "stride", stride, axes),
        per_axis(op, "padding", padding, axes, low=0),
        per_axis(op, "dilation", dilation, axes),
    )


def per_axis(op: str, name: str, value: object, axes: int, low: int = 1) -> Sizes:
    """Return one int >= `low` for each axis; a single one stands for all.

    Raises:
        ArgumentTypeError: if it is neither an int nor as many ints as there are axes.
        ArgumentValueError: if an int is too small.
    """
    numbers = tuple(value) if isinstance(value, tuple | list) else (value,) * axes
    if len(numbers) != axes:
        raise ArgumentTypeError(
            f"{op}: {name} is an int or {axes} of them in a tuple, got {value!r}"
        )
    return tuple([as_size(op, name, number, low) for number in numbers])


def check_rank(op: str, shape: Sizes, axes: str) -> None:
    """Raise ShapeError if a shape has fewer axes than are named."""
    if len(shape) < axes.count(",") + 1:
        raise ShapeError(f"{op}: the input must have shape (..., {axes}), got {shape}")


def check_fits(op: str, shape: Sizes, window: Window) -> None:
    """Raise ShapeError if no window fits the padded image."""
    sizes = shape[-len(window.kernel) :]
    if min(window.counts(sizes)) < 1:
        padded = tuple(
            [size + 2 * extra for size, extra in zip(sizes, window.padding, strict=True)]
        )
        spread = f" with dilation {window.dilation}" if max(window.dilation) > 1 else ""
        raise ShapeError(
            f"{op}: a kernel of {window.kernel}{spread} is larger than the padded input "
            f"{padded} of shape {shape}"
        )


def check_inside(op: str, shape: Sizes, window: Window) -> None:
    """Raise ShapeError if a window holds nothing but padding.

    With a padding of at most half of the window, only one that begins before the image may.
    """
    sizes = shape[-len(window.kernel) :]
    counts = window.counts(sizes)
    numbers = zip(sizes, counts, window.stride, window.padding, window.dilation, strict=True)
    for size, count, stride, padding, dilation in numbers:
        starts = range(-padding, 0, stride)[:count]
        # The first of its elements that does not lie before the image lies behind it.
        if any(start % dilation >= size for start in starts):
            raise ShapeError(
                f"{op}: a window of {window.kernel} with padding {window.padding} and dilation "
                f"{window.dilation} holds nothing but padding of the input of shape {shape}"
            )


def operands_of(op: str, x: object, weight: object, bias: object) -> tuple[Any, ...]:
    """Return the operands that are there, after a look at their kinds."""
    check_tensor(op, "the input", x)
    check_tensor(op, "the weight", weight)
    if bias is not None:
        check_tensor(op, "the bias", bias)
    operands: tuple[Any, ...] = (x, weight) if bias is None else (x, weight, bias)
    check_same_dtype(op, operands)
    check_floating(op, operands[0])
    return operands


def convolution_window(
    op: str,
    operands: tuple[Any, ...],
    axes: str,
    stride: object,
    padding: object,
    dilation: object,
    groups: object,
) -> tuple[Window, int]:
    """Return the window of a convolution and the number of groups, after all checks."""
    shape, weight_shape = operands[0].array.shape, operands[1].array.shape
    check_rank(op, shape, axes)
    kernel = {"C, L": "k", "C, H, W": "kh, kw"}[axes]
    window = kernel_window(
        op, weight_shape, f"(O, C / groups, {kernel})", stride, padding, dilation
    )
    count = as_size(op, "groups", groups, low=1)
    channels, out_channels = shape[-1 - len(window.kernel)], weight_shape[0]
    if channels % count or out_channels % count:
        raise ArgumentValueError(
            f"{op}: {count} groups do not divide the {channels} channels that go in and the "
            f"{out_channels} that come out"
        )
    if weight_shape[1] * count != channels:
        grouped = f" in each of {count} groups" if count > 1 else ""
        raise ShapeError(
            f"{op}: channels differ: the input of shape {shape} has {channels}, "
            f"the weight of shape {weight_shape} takes {weight_shape[1]}{grouped}"
        )
    check_bias(op, operands, out_channels)
    check_fits(op, shape, window)
    return window, count


def kernel_window(
    op: str, shape: tuple[int, ...], wanted: str, stride: object, padding: object, dilation: object
) -> Window:
    """Return the window that the shape of a weight says."""
    if len(shape) != wanted.count(",") + 1 or min(shape[2:]) < 1:
        raise ShapeError(f"{op}: the weight must have shape {wanted}, got {shape}")
    return as_window(op, shape[2:], stride, padding, dilation)


def check_bias(op: str, operands: tuple[TensorBase[Any, Any, Any], ...], channels: int) -> None:
    """Raise ShapeError if there is a bias without one number per output channel."""
    if len(operands) == 3 and operands[2].array.shape != (channels,):
        raise ShapeError(
            f"{op}: the bias must have shape ({channels},), one number per output channel, "
            f"got {operands[2].array.shape}"
        )
