"""Ops whose operands broadcast: arithmetic, comparisons, masks, maximum, where, ssm_scan."""

from __future__ import annotations

from mypy.types import Instance, LiteralType, Type, get_proper_type

from tapetensor.errors import ArgumentTypeError
from tapetensor.mypy_plugin.shapes.calls import Answer, Call, of_all_shapes
from tapetensor.mypy_plugin.shapes.dtypes import is_bool
from tapetensor.mypy_plugin.shapes.reading import (
    Operand,
    common_dtype,
    is_plain,
    known,
    merged,
    read_tensor,
)
from tapetensor.rules.broadcasting import broadcast, check_coefficient, check_scanned


@of_all_shapes
def elementwise(call: Call) -> Answer:
    """Return the result of an operator that has a result of the operands' dtype."""
    return _merged(call, [call.receiver, call.operand(0)])


@of_all_shapes
def extreme(call: Call) -> Answer:
    """Return the result of a function of two tensors."""
    return _merged(call, [call.operand(0), call.operand(1)])


@of_all_shapes
def comparison(call: Call) -> Answer:
    """Return the result of an operator that gives a plain mask, whatever the tapes."""
    lhs, rhs, result = call.receiver, call.operand(0), call.result
    shapes = [lhs.dims, rhs.dims]
    common_dtype(lhs.dtype, rhs.dtype)
    return call.like(result, known(broadcast(call.op, shapes)))


@of_all_shapes
def logic(call: Call) -> Answer:
    """Return the result of an operator on plain masks."""
    operands = [call.receiver, call.operand(0)]
    return _merged(call, operands) if all(map(_is_mask, operands)) else None


@of_all_shapes
def where(call: Call) -> Answer:
    """Return the result of `where`."""
    mask = read_tensor(call.argument(0))
    values = [call.argument(1), call.argument(2)]
    tensors = [one for value in values if (one := read_tensor(value)) is not None]
    if not tensors and all(map(_is_number, values)):
        raise ArgumentTypeError(f"{call.op}: at least one of the two values must be a tensor")
    if mask is None or not _is_mask(mask) or not tensors:
        return None
    if len(tensors) == 1:
        # A number may stand beside a floating tensor.
        number = next(value for value in values if read_tensor(value) is None)
        dtype = tensors[0].dtype
        is_floating = isinstance(dtype, Instance) and dtype.type.has_base("numpy.floating")
        if not _is_number(number) or not is_floating:
            return None
    return _merged(call, tensors, mask)


def ssm_scan(call: Call) -> Answer:
    """Return the result of `ssm_scan`, whose coefficients broadcast to the sequence."""
    x = call.operand(0)
    check_scanned(call.op, x.dims)
    operands = [x]
    for index, name in enumerate("ab", 1):
        one = call.operand(index)
        check_coefficient(call.op, name, one.dims, x.dims)
        if broadcast(call.op, [x.dims, one.dims]) != x.dims:
            return None
        operands.append(one)
    return _merged(call, operands)


def _merged(call: Call, tensors: list[Operand], mask: Operand | None = None) -> Answer:
    shapes = [one.dims for one in (tensors if mask is None else [*tensors, mask])]
    tape, dtype = merged(tensors)
    return call.tensor(known(broadcast(call.op, shapes)), tape, dtype)


def _is_mask(operand: Operand) -> bool:
    return is_plain(operand.tape) and is_bool(operand)


def _is_number(found: Type | None) -> bool:
    proper = get_proper_type(found)
    if isinstance(proper, LiteralType):
        proper = proper.fallback
    return isinstance(proper, Instance) and proper.type.fullname in (
        "builtins.int",
        "builtins.float",
    )
