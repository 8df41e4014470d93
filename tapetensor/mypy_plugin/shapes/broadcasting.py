"""Ops whose operands broadcast: arithmetic, comparisons, masks, maximum, where, ssm_scan."""

from __future__ import annotations

from collections.abc import Sequence

from mypy.types import Instance, LiteralType, Type, get_proper_type

from tapetensor.mypy_plugin.codes import ARGUMENT_KIND
from tapetensor.mypy_plugin.shapes.calls import (
    UNSURE,
    Answer,
    Call,
    MismatchError,
    Rule,
    of_all_shapes,
)
from tapetensor.mypy_plugin.shapes.dims import ANY, INT, ONE, Dim, Dims, Size, differ, written
from tapetensor.mypy_plugin.shapes.reading import (
    Operand,
    common_dtype,
    is_plain,
    merged_tape,
    read_tensor,
)


class NotATensorError(MismatchError):
    """Numbers are given where a tensor is wanted."""

    code = ARGUMENT_KIND


def broadcast(op: str, shapes: Sequence[Dims]) -> Dims | None:
    """Return the shape to which shapes broadcast; None where plain typing decides.

    Raises:
        MismatchError: if they do not.
    """
    rank = max(len(shape) for shape in shapes)
    result: list[Dim] = [ONE] * rank
    for shape in shapes:
        start = rank - len(shape)
        for axis, dim in enumerate(shape, start):
            joined = joined_dim(result[axis], dim)
            if joined is None:
                if differ(result[axis], dim):
                    named = " and ".join(map(written, shapes))
                    raise MismatchError(
                        f"{op}: shapes {named} do not broadcast, {result[axis]} != {dim}"
                    )
                return None
            result[axis] = joined
    return tuple(result)


def joined_dim(lhs: Dim, rhs: Dim) -> Dim | None:
    """Return the dim to which two broadcast; None if they do not, or nothing is certain."""
    if lhs == rhs or rhs == ONE:
        return lhs
    if lhs == ONE:
        return rhs
    if isinstance(lhs, Size) and isinstance(rhs, Size):
        return None
    if ANY in (lhs, rhs) and INT in (lhs, rhs):
        return ANY
    # An open dim is 1 or that of the other operand: where the other is a literal, it is that.
    known, unknown = (lhs, rhs) if isinstance(lhs, Size) else (rhs, lhs)
    assert isinstance(known, Size)
    if known.literal is not None:
        return known
    return ANY if unknown is ANY else None


def elementwise(op: str) -> Rule:
    """Return the rule of an operator that has a result of the operands' dtype."""

    def rule(call: Call) -> Answer:
        lhs, rhs = call.receiver, read_tensor(call.position(0))
        return UNSURE if lhs is None or rhs is None else _merged(op, call, [lhs, rhs])

    return of_all_shapes(rule)


def extreme(op: str) -> Rule:
    """Return the rule of a function of two tensors."""

    def rule(call: Call) -> Answer:
        lhs, rhs = read_tensor(call.position(0)), read_tensor(call.position(1))
        return UNSURE if lhs is None or rhs is None else _merged(op, call, [lhs, rhs])

    return of_all_shapes(rule)


def comparison(op: str) -> Rule:
    """Return the rule of an operator that gives a plain mask, whatever the tapes."""

    def rule(call: Call) -> Answer:
        lhs, rhs, result = call.receiver, read_tensor(call.position(0)), call.result
        if lhs is None or rhs is None or result is None:
            return UNSURE
        if lhs.shape is None or rhs.shape is None or common_dtype(lhs.dtype, rhs.dtype) is None:
            return UNSURE
        shape = broadcast(op, [lhs.shape, rhs.shape])
        return UNSURE if shape is None else call.like(result, shape)

    return of_all_shapes(rule)


def logic(op: str) -> Rule:
    """Return the rule of an operator on plain masks."""

    def rule(call: Call) -> Answer:
        lhs, rhs = call.receiver, read_tensor(call.position(0))
        if lhs is None or rhs is None or not all(_is_mask(one) for one in (lhs, rhs)):
            return UNSURE
        return _merged(op, call, [lhs, rhs])

    return of_all_shapes(rule)


@of_all_shapes
def where(call: Call) -> Answer:
    """Return the result of `where`."""
    mask = read_tensor(call.position(0))
    values = [call.position(1), call.position(2)]
    tensors = [one for value in values if (one := read_tensor(value)) is not None]
    if not tensors and all(one is not None and _is_number(one) for one in values):
        raise NotATensorError("where: at least one of the two values must be a tensor")
    if mask is None or not _is_mask(mask) or not tensors:
        return UNSURE
    if len(tensors) == 1:
        number = next(value for value in values if read_tensor(value) is None)
        if not _fits(number, tensors[0].dtype):
            return UNSURE
    return _merged("where", call, tensors, mask)


def ssm_scan(call: Call) -> Answer:
    """Return the result of `ssm_scan`, whose coefficients broadcast to the sequence."""
    x, *coefficients = [read_tensor(call.position(index)) for index in range(3)]
    if x is None or x.shape is None:
        return UNSURE
    if len(x.shape) < 2:
        raise MismatchError(
            f"ssm_scan: x must have shape (..., length, channels), got {written(x.shape)}"
        )
    tensors = [x]
    for name, one in zip("ab", coefficients, strict=True):
        if one is None or one.shape is None:
            return UNSURE
        if broadcast("ssm_scan", [x.shape, one.shape]) != x.shape:
            if len(one.shape) > len(x.shape) or _stretches(x.shape, one.shape):
                raise MismatchError(
                    f"ssm_scan: {name} of shape {written(one.shape)} does not broadcast to the "
                    f"shape {written(x.shape)} of x"
                )
            return UNSURE
        tensors.append(one)
    return _merged("ssm_scan", call, tensors)


def _stretches(shape: Dims, other: Dims) -> bool:
    """Tell whether broadcasting with `other` surely repeats something in `shape`."""
    aligned = zip(reversed(shape), reversed(other), strict=False)
    return any(have == ONE and differ(have, want) for have, want in aligned)


def _merged(op: str, call: Call, tensors: list[Operand], mask: Operand | None = None) -> Answer:
    first = tensors[0]
    tape: Type | None = first.tape
    dtype: Type | None = first.dtype
    shapes = []
    for one in tensors if mask is None else [mask, *tensors]:
        if one.shape is None:
            return UNSURE
        shapes.append(one.shape)
    for one in tensors[1:]:
        tape = merged_tape(tape, one.tape) if tape is not None else None
        dtype = common_dtype(dtype, one.dtype) if dtype is not None else None
    if tape is None or dtype is None:
        return UNSURE
    shape = broadcast(op, shapes)
    return UNSURE if shape is None else call.tensor(shape, tape, dtype)


def _is_mask(operand: Operand) -> bool:
    dtype = operand.dtype
    return (
        is_plain(operand.tape)
        and isinstance(dtype, Instance)
        and dtype.type.fullname in ("numpy.bool", "numpy.bool_")
    )


def _fits(number: Type | None, dtype: Type) -> bool:
    """Tell whether a number may stand beside a floating tensor."""
    return (
        _is_number(number) and isinstance(dtype, Instance) and dtype.type.has_base("numpy.floating")
    )


def _is_number(found: Type | None) -> bool:
    proper = get_proper_type(found)
    if isinstance(proper, LiteralType):
        proper = proper.fallback
    return isinstance(proper, Instance) and proper.type.fullname in (
        "builtins.int",
        "builtins.float",
    )
