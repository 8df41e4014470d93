"""Convolutions, as functions and as layers."""

from __future__ import annotations

import operator
from collections.abc import Sequence

from mypy.types import Type

from tapetensor.mypy_plugin.shapes.calls import Answer, Call, MismatchError
from tapetensor.mypy_plugin.shapes.dims import ANY, ONE, Dim, Dims, Size, computed, differ, written
from tapetensor.mypy_plugin.shapes.dtypes import check_floating, check_same
from tapetensor.mypy_plugin.shapes.own_names import settled_dims
from tapetensor.mypy_plugin.shapes.reading import (
    UndecidedError,
    common_dtype,
    is_floating,
    is_none,
    known,
    merged,
    read_dim,
    read_tensor,
)
from tapetensor.mypy_plugin.shapes.windows import Window, read_number, read_numbers

_AXES = {1: "C, L", 2: "C, H, W"}
_WEIGHTS = {
    "conv1d": "(O, C / groups, k)",
    "conv2d": "(O, C / groups, kh, kw)",
    "conv_transpose2d": "(C, O / groups, kh, kw)",
}


def convolution(call: Call) -> Answer:
    """Return the result of a function that slides a weight over `x`."""
    axes = _axes(call)
    (x, weight, *biases), tape, dtype = _operands(call)
    check_rank(x, axes)
    window, groups, _ = _window(call, weight, axes)
    channels = x[-1 - axes]
    if any(map(is_left_over, (channels, weight[0]), (groups, groups))):
        raise MismatchError(
            f"{groups} groups do not divide the {channels} channels that go in and the "
            f"{weight[0]} that come out"
        )
    grouped = f" in each of {groups} groups" if groups != ONE else ""
    takes = f"the weight of shape {written(weight)} takes {weight[1]}{grouped}"
    _check_channels(x, channels, computed(operator.mul, weight[1], groups), takes)
    _check_bias(biases, weight[0])
    counts = settled_dims(window.counts(x), x, call.api)
    return call.tensor((*x[: -1 - axes], weight[0], *counts), tape, dtype)


def conv_transpose2d(call: Call) -> Answer:
    """Return the result of `conv_transpose2d`."""
    (x, weight, *biases), tape, dtype = _operands(call)
    check_rank(x, 2)
    window, groups, more = _window(call, weight, 2)
    channels = x[-3]
    if is_left_over(channels, groups):
        raise MismatchError(
            f"{groups} groups do not divide the {channels} channels of shape {written(x)}"
        )
    takes = f"the weight of shape {written(weight)} takes {weight[0]}"
    _check_channels(x, channels, weight[0], takes)
    out_channels = computed(operator.mul, weight[1], groups)
    _check_bias(biases, out_channels)
    return call.tensor((*x[:-3], out_channels, *window.extents(x, more)), tape, dtype)


def layer(call: Call) -> Answer:
    """Return the result of the `forward` of a convolution layer."""
    axes = _axes(call)
    operand, (channels, out_channels, *numbers, own_dtype) = call.operand(0), call.layer
    x, dtype = operand.dims, common_dtype(operand.dtype, own_dtype)
    taken, made = read_dim(channels), read_dim(out_channels)
    if taken is None or made is None:
        return None
    check_rank(x, axes)
    _check_channels(x, x[-1 - axes], taken, f"the layer takes {taken}")
    kernel, stride, padding, *more, dilation, _ = [(read_number(one),) * axes for one in numbers]
    window = Window(kernel, stride, padding, dilation)
    sizes = window.extents(x, more[0]) if more else settled_dims(window.counts(x), x, call.api)
    return call.tensor((*x[: -1 - axes], made, *sizes), operand.tape, dtype)


def check_rank(shape: Dims, axes: int) -> None:
    """Raise MismatchError if a shape has too few axes for an image, or a sequence."""
    if len(shape) < axes + 1:
        raise MismatchError(f"the input must have shape (..., {_AXES[axes]}), got {written(shape)}")


def _axes(call: Call) -> int:
    return 1 if call.op == "conv1d" else 2


def _operands(call: Call) -> tuple[list[Dims], Type, Type]:
    """Return the shapes of the operands, and the tape state and dtype of the result."""
    given = [call.argument(index) for index in range(3)]
    if given[2] is None or is_none(given[2]):
        del given[2]
    operands = [known(read_tensor(one)) for one in given]
    shapes = [one.dims for one in operands]
    check_floating(operands[0])
    check_same(operands)
    if not is_floating(operands[0].dtype):
        raise UndecidedError
    return (shapes, *merged(operands))


def _window(call: Call, weight: Dims, axes: int) -> tuple[Window, Dim, Dims]:
    """Return the window, the number of groups, and what is added to the output."""
    kernel = tuple(dim if isinstance(dim, Size) else ANY for dim in weight[2:])
    if len(weight) != axes + 2 or any(dim.literal == 0 for dim in kernel):
        raise MismatchError(
            f"the weight must have shape {_WEIGHTS[call.op]}, got {written(weight)}"
        )
    counts = dict.fromkeys(("stride", "padding", "dilation"), axes)
    stride, padding, dilation, groups, more = read_numbers(
        call, counts | {"groups": 1, "output_padding": axes}
    )
    return Window(kernel, stride, padding, dilation), groups[0], more


def is_left_over(channels: Dim, groups: Dim) -> bool:
    """Tell whether a number of groups, if it is not 0, does not divide a number of channels."""
    if channels.literal is None or not groups.literal:
        return False
    return channels.literal % groups.literal != 0


def _check_channels(x: Dims, channels: Dim, taken: Dim, takes: str) -> None:
    if differ(channels, taken):
        raise MismatchError(
            f"channels differ: the input of shape {written(x)} has {channels}, {takes}"
        )


def _check_bias(biases: Sequence[Dims], channels: Dim) -> None:
    for bias in biases:
        if len(bias) != 1 or differ(bias[0], channels):
            raise MismatchError(
                f"the bias must have shape {written((channels,))}, one number per output channel, "
                f"got {written(bias)}"
            )
