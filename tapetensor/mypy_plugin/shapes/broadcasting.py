"""Ops whose operands broadcast: arithmetic, comparisons, masks, maximum, where, ssm_scan."""

from __future__ import annotations

from typing import Final

from mypy.checker import TypeChecker
from mypy.nodes import (
    CallExpr,
    ConditionalExpr,
    Expression,
    IndexExpr,
    MemberExpr,
    NameExpr,
    OpExpr,
    SliceExpr,
    TupleExpr,
    UnaryExpr,
)
from mypy.types import Instance, LiteralType, Type, get_proper_type

from tapetensor.errors import ArgumentTypeError
from tapetensor.mypy_plugin.shapes.calls import Answer, Call, of_all_shapes, type_of
from tapetensor.mypy_plugin.shapes.dtypes import is_bool
from tapetensor.mypy_plugin.shapes.reading import (
    Operand,
    common_dtype,
    is_plain,
    known,
    merged,
    read_tensor,
)
from tapetensor.mypy_plugin.shapes.sizes import value_of
from tapetensor.rules.broadcasting import (
    broadcast,
    check_coefficient,
    check_ranks,
    check_scanned,
)

_MAKING_AXES: Final = ("expand_dims", "reshape", "broadcast_to")


@of_all_shapes
def elementwise(call: Call) -> Answer:
    """Return the result of an operator that has a result of the operands' dtype."""
    _check_ranks(call, call.owner, call.expression(0))
    return _merged(call, [call.receiver, call.operand(0)])


@of_all_shapes
def extreme(call: Call) -> Answer:
    """Return the result of a function of two tensors."""
    _check_ranks(call, call.expression(0), call.expression(1))
    return _merged(call, [call.operand(0), call.operand(1)])


@of_all_shapes
def comparison(call: Call) -> Answer:
    """Return the result of an operator that gives a plain mask, whatever the tapes."""
    call.refuse_again()
    lhs, rhs, result = call.receiver, call.operand(0), call.result
    shapes = [lhs.dims, rhs.dims]
    common_dtype(lhs.dtype, rhs.dtype)
    _check_ranks(call, call.owner, call.expression(0))
    return call.like(result, known(broadcast(call.op, shapes)))


@of_all_shapes
def logic(call: Call) -> Answer:
    """Return the result of an operator on plain masks."""
    operands = [call.receiver, call.operand(0)]
    _check_ranks(call, call.owner, call.expression(0))
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
    _check_ranks(call, *map(call.expression, range(3)))
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


def _check_ranks(call: Call, *operands: Expression | None) -> None:
    """Raise ShapeError if operands of different rank meet each of a dim with each by accident.

    It is none where the program says so: the axis of 1 was made on purpose, or the result is to
    have the dim twice.
    """
    tensors = {
        one: tensor.shape
        for one in operands
        if one is not None and (tensor := read_tensor(type_of(one, call.api))) is not None
    }
    shapes = [shape for shape in tensors.values() if shape is not None]
    ranks = {*map(len, shapes)}
    if len(ranks) < 2:
        return
    wanted = read_tensor(call.wanted)
    is_said = wanted is not None and wanted.shape and len({*wanted.shape}) < len(wanted.shape)
    longer = [one for one, shape in tensors.items() if shape and len(shape) > min(ranks)]
    if not is_said and not any(_has_made_axis(one, call.api) for one in longer):
        check_ranks(call.op, shapes)


def _has_made_axis(found: Expression, api: TypeChecker, names: int = 10) -> bool:
    """Tell whether an axis of 1 is made on purpose: by `expand_dims`, `keepdims=True`, `None`, ...

    Elementwise ops and methods that follow keep it; functions and modules make what they like.
    """
    match found:
        case OpExpr(op="+" | "-" | "*" | "/" | "**" | "//" | "%", left=left, right=right):
            return any(_has_made_axis(one, api, names) for one in (left, right))
        case UnaryExpr(expr=inner):
            return _has_made_axis(inner, api, names)
        case ConditionalExpr(if_expr=then, else_expr=otherwise):
            return any(_has_made_axis(one, api, names) for one in (then, otherwise))
        case IndexExpr(base=base, index=index):
            parts = index.items if isinstance(index, TupleExpr) else [index]
            is_made = any(isinstance(one, SliceExpr) or _is_none(one) for one in parts)
            return is_made or _has_made_axis(base, api, names)
        case CallExpr(callee=MemberExpr(name=name, expr=receiver)) if name != "forward":
            is_made = name in _MAKING_AXES or "keepdims" in found.arg_names
            is_method = read_tensor(type_of(receiver, api)) is not None
            return is_method and (is_made or _has_made_axis(receiver, api, names))
    value = value_of(found, api) if names else None
    return value is not None and _has_made_axis(value, api, names - 1)


def _is_none(found: Expression) -> bool:
    return isinstance(found, NameExpr) and found.fullname == "builtins.None"


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
