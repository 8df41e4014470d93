"""Convolutions, as functions and as layers."""

from __future__ import annotations

from mypy.types import Type

from tapetensor.mypy_plugin.shapes.calls import Answer, Call
from tapetensor.mypy_plugin.shapes.dtypes import check_floating, check_same
from tapetensor.mypy_plugin.shapes.own_names import settled_dims
from tapetensor.mypy_plugin.shapes.reading import (
    UndecidedError,
    common_dtype,
    is_absent,
    is_floating,
    known,
    merged,
    read_dim,
    read_tensor,
)
from tapetensor.mypy_plugin.shapes.windows import keeps_size, read_numbers, read_sizes
from tapetensor.rules import windows as rules
from tapetensor.rules.dims import ANY, Dim, Dims, Size
from tapetensor.rules.windows import Window


def convolution(call: Call) -> Answer:
    """Return the result of a function that slides a weight over `x`."""
    axes = _axes(call)
    shapes, tape, dtype = _operands(call)
    x, weight = shapes[:2]
    rules.check_rank(call.op, x, axes)
    window, groups, _ = _window(call, weight, axes)
    found = rules.convolution(call.op, shapes, window, groups)
    return call.tensor((*found[:-axes], *settled_dims(found[-axes:], x, call.api)), tape, dtype)


def transposed(call: Call) -> Answer:
    """Return the result of a function in which every element writes a weight."""
    axes = _axes(call)
    shapes, tape, dtype = _operands(call)
    x, weight = shapes[:2]
    rules.check_rank(call.op, x, axes)
    window, groups, more = _window(call, weight, axes)
    found = rules.transposed_convolution(call.op, shapes, window, groups, more)
    return call.tensor(found, tape, dtype)


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


def _window(call: Call, weight: Dims, axes: int) -> tuple[Window, Dim, Dims]:
    """Return the window, the number of groups, and what is added to the output."""
    rules.check_weight(call.op, weight, axes, transposed=call.op.startswith("conv_transpose"))
    kernel = tuple(dim if isinstance(dim, Size) else ANY for dim in weight[2:])
    counts = dict.fromkeys(("stride", "padding", "dilation"), axes)
    stride, padding, dilation, groups, more = read_numbers(
        call, counts | {"groups": 1, "output_padding": axes}
    )
    return Window(kernel, stride, padding, dilation), groups[0], more
