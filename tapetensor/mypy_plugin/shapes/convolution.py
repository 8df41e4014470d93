"""Convolutions, as functions and as layers."""

from __future__ import annotations

from collections.abc import Sequence

from mypy.types import Type

from tapetensor.mypy_plugin.shapes.calls import UNSURE, Answer, Call, MismatchError, Rule
from tapetensor.mypy_plugin.shapes.dims import ANY, Dim, Dims, Size, differ, written
from tapetensor.mypy_plugin.shapes.dtypes import check_floating, check_same
from tapetensor.mypy_plugin.shapes.reading import (
    Operand,
    common_dtype,
    is_floating,
    is_none,
    merged_tape,
    read_dim,
    read_int,
    read_tensor,
)
from tapetensor.mypy_plugin.shapes.windows import Numbers, Window, is_nothing, read_numbers

_AXES = {1: "C, L", 2: "C, H, W"}
_WEIGHTS = {
    "conv1d": "(O, C / groups, k)",
    "conv2d": "(O, C / groups, kh, kw)",
    "conv_transpose2d": "(C, O / groups, kh, kw)",
}


def convolution(op: str, axes: int) -> Rule:
    """Return the rule of a function that slides a weight over `x`."""

    def rule(call: Call) -> Answer:
        operands = _operands(op, call)
        if operands is None:
            return UNSURE
        (x, weight, *biases), tape, dtype = operands
        check_rank(op, x, axes)
        window, groups = _window(op, call, weight, axes), _groups(op, call.argument("groups"))
        if window is None or groups is None:
            return UNSURE
        count = groups[0]
        channels = x[-1 - axes]
        if count is not None:
            _check_divides(op, count, channels, weight[0])
        taken = _times(weight[1], count)
        if differ(channels, taken):
            grouped = f" in each of {count} groups" if count != 1 else ""
            raise MismatchError(
                f"{op}: channels differ: the input of shape {written(x)} has {channels}, "
                f"the weight of shape {written(weight)} takes {weight[1]}{grouped}"
            )
        _check_bias(op, biases, weight[0])
        shape = (*x[: -1 - axes], weight[0], *window.counts(op, x))
        return call.tensor(shape, tape, dtype)

    return rule


def conv_transpose2d(call: Call) -> Answer:
    """Return the result of `conv_transpose2d`."""
    op = "conv_transpose2d"
    operands = _operands(op, call)
    if operands is None:
        return UNSURE
    (x, weight, *biases), tape, dtype = operands
    check_rank(op, x, 2)
    window, groups = _window(op, call, weight, 2), _groups(op, call.argument("groups"))
    more = read_numbers(op, "output_padding", call.argument("output_padding"), 2, 0, low=0)
    if window is None or groups is None or more is None:
        return UNSURE
    channels, count = x[-3], groups[0]
    if count is not None and isinstance(channels, Size) and (channels.literal or 0) % count:
        raise MismatchError(
            f"{op}: {count} groups do not divide the {channels} channels of shape {written(x)}"
        )
    if differ(channels, weight[0]):
        raise MismatchError(
            f"{op}: channels differ: the input of shape {written(x)} has {channels}, "
            f"the weight of shape {written(weight)} takes {weight[0]}"
        )
    out_channels = _times(weight[1], count)
    _check_bias(op, biases, out_channels)
    return call.tensor((*x[:-3], out_channels, *_extents(op, window, x, more)), tape, dtype)


def layer(op: str, axes: int) -> Rule:
    """Return the rule of the `forward` of a convolution layer."""

    def rule(call: Call) -> Answer:
        x, arguments = read_tensor(call.position(0)), call.layer
        if x is None or x.shape is None or arguments is None:
            return UNSURE
        channels, out_channels, *numbers, dtype = arguments
        shared = common_dtype(x.dtype, dtype)
        taken, made = read_dim(channels), read_dim(out_channels)
        if shared is None or taken is None or made is None:
            return UNSURE
        check_rank(op, x.shape, axes)
        if differ(x.shape[-1 - axes], taken):
            raise MismatchError(
                f"{op}: channels differ: the input of shape {written(x.shape)} has "
                f"{x.shape[-1 - axes]}, the layer takes {taken}"
            )
        each = [(read_int(one),) * axes for one in numbers]
        if op == "conv_transpose2d":
            kernel, stride, padding, more, dilation, _ = each
            sizes = _extents(op, Window(kernel, stride, padding, dilation), x.shape, more)
        else:
            kernel, stride, padding, dilation, _ = each
            sizes = Window(kernel, stride, padding, dilation).counts(op, x.shape)
        return call.tensor((*x.shape[: -1 - axes], made, *sizes), x.tape, shared)

    return rule


def check_rank(op: str, shape: Dims, axes: int) -> None:
    """Raise MismatchError if a shape has too few axes for an image, or a sequence."""
    if len(shape) < axes + 1:
        raise MismatchError(
            f"{op}: the input must have shape (..., {_AXES[axes]}), got {written(shape)}"
        )


def _operands(op: str, call: Call) -> tuple[list[Dims], Type, Type] | None:
    """Return the shapes of the operands, and the tape state and dtype of the result."""
    given = [call.position(index) for index in range(3)]
    if is_none(given[2]):
        given[2] = None
    tensors = [read_tensor(one) for one in given if one is not None]
    known = [one for one in tensors if one is not None and one.shape is not None]
    if len(known) != len(tensors) or len(known) < 2:
        return None
    check_floating(op, known[0])
    check_same(op, known)
    if not is_floating(known[0].dtype):
        return None
    return _merged(known)


def _merged(operands: Sequence[Operand]) -> tuple[list[Dims], Type, Type] | None:
    tape: Type | None = operands[0].tape
    dtype: Type | None = operands[0].dtype
    for one in operands[1:]:
        tape = merged_tape(tape, one.tape) if tape is not None else None
        dtype = common_dtype(dtype, one.dtype) if dtype is not None else None
    if tape is None or dtype is None:
        return None
    return [one.shape for one in operands if one.shape is not None], tape, dtype


def _window(op: str, call: Call, weight: Dims, axes: int) -> Window | None:
    kernel = tuple(dim.literal if isinstance(dim, Size) else None for dim in weight[2:])
    if len(weight) != axes + 2 or 0 in kernel:
        raise MismatchError(
            f"{op}: the weight must have shape {_WEIGHTS[op]}, got {written(weight)}"
        )
    stride = read_numbers(op, "stride", call.argument("stride"), axes, 1)
    padding = read_numbers(op, "padding", call.argument("padding"), axes, 0, low=0)
    dilation = read_numbers(op, "dilation", call.argument("dilation"), axes, 1)
    if stride is None or padding is None or dilation is None:
        return None
    return Window(kernel, stride, padding, dilation)


def _groups(op: str, found: Type | None) -> Numbers | None:
    return read_numbers(op, "groups", found, 1, 1)


def _check_divides(op: str, groups: int, channels: Dim, out_channels: Dim) -> None:
    sizes = [one.literal for one in (channels, out_channels) if isinstance(one, Size)]
    if any(size is not None and size % groups for size in sizes):
        raise MismatchError(
            f"{op}: {groups} groups do not divide the {channels} channels that go in and the "
            f"{out_channels} that come out"
        )


def _check_bias(op: str, biases: Sequence[Dims], channels: Dim) -> None:
    for bias in biases:
        if len(bias) != 1 or differ(bias[0], channels):
            raise MismatchError(
                f"{op}: the bias must have shape {written((channels,))}, one number per output "
                f"channel, got {written(bias)}"
            )


def _extents(op: str, window: Window, shape: Dims, more: Numbers) -> Dims:
    found = window.extents(shape, more)
    if any(is_nothing(one) for one in found):
        raise MismatchError(
            f"{op}: the padding leaves nothing of the output for an input of shape {written(shape)}"
        )
    return found


def _times(dim: Dim, groups: int | None) -> Dim:
    return dim * Size.of(groups) if isinstance(dim, Size) and groups is not None else ANY
