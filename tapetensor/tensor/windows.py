"""The arguments of ops that slide windows over images, checked."""

from __future__ import annotations

from functools import partial
from typing import Any, TypeAlias

from tapetensor.arguments import as_size
from tapetensor.errors import ArgumentTypeError
from tapetensor.kernels.numerics.windows import Sizes, Window
from tapetensor.rules import windows as rules
from tapetensor.rules.dims import Size, sized
from tapetensor.rules.refusals import refusal
from tapetensor.rules.windows import check_rank
from tapetensor.tensor.base import check_floating, check_same_dtype, check_tensor

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
    axes: int,
    stride: object,
    padding: object,
    dilation: object,
    groups: object,
) -> tuple[Window, int]:
    """Return the window of a convolution and the number of groups, after all checks."""
    shapes = [operand._array.shape for operand in operands]
    shape, weight_shape, *bias_shape = shapes
    check_rank(op, shape, axes)
    window = kernel_window(op, weight_shape, axes, stride, padding, dilation)
    count = as_size(op, "groups", groups, low=1)
    channels, made = shape[-1 - axes], weight_shape[0]
    fits = (
        weight_shape[1] * count == channels
        and made % count == 0
        and bias_shape in ([], [(made,)])
        and min(window.counts(shape[-axes:])) > 0
    )
    if not fits:
        dims = list(map(sized, shapes))
        asked = rules.Window(*map(sized, window))
        raise refusal(lambda: rules.convolution(op, dims, asked, Size.of(count)))
    return window, count


def kernel_window(
    op: str,
    shape: Sizes,
    axes: int,
    stride: object,
    padding: object,
    dilation: object,
    *,
    transposed: bool = False,
) -> Window:
    """Return the window that the shape of a weight says.

    Raises:
        ShapeError: if it says none.
    """
    if len(shape) != axes + 2 or min(shape[2:]) < 1:
        raise refusal(partial(rules.check_weight, op, sized(shape), axes, transposed=transposed))
    return as_window(op, shape[2:], stride, padding, dilation)


def check_fits(op: str, shape: Sizes, window: Window) -> None:
    """Raise ShapeError if no window fits the padded image."""
    if min(window.counts(shape[-len(window.kernel) :])) < 1:
        asked = rules.Window(*map(sized, window))
        raise refusal(lambda: asked.counts(op, sized(shape)))
