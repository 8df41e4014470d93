"""Ops whose operands broadcast, products and decompositions of matrices, and dtypes.

Dtypes are refused where they are known: `Any` and what is abstract fit everything.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from mypy import nodes
from mypy.checker import TypeChecker
from mypy.types import Instance, LiteralType, Type, get_proper_type

from tapetensor.errors import ArgumentTypeError, DTypeError
from tapetensor.mypy_plugin.reading import (
    Operand,
    common_dtype,
    instance_of,
    is_absent,
    is_floating,
    is_plain,
    known,
    merged,
    read_int,
    read_literal,
    read_tensor,
    shape_of,
)
from tapetensor.mypy_plugin.shapes.calls import (
    Answer,
    Call,
    of_all_shapes,
    of_receiver,
    opening,
    type_of,
)
from tapetensor.mypy_plugin.shapes.computed import value_of
from tapetensor.rules import broadcasting as rules
from tapetensor.rules.broadcasting import (
    broadcast,
    check_coefficient,
    check_matrices,
    check_ranks,
    check_scanned,
)
from tapetensor.rules.dims import ANY, Dim, Dims, Size

_KINDS: Final = {
    "numpy.floating": "float",
    "numpy.signedinteger": "int",
    "numpy.unsignedinteger": "uint",
}
_ALONE: Final = {"numpy.float64": "float64", "numpy.bool": "bool", "numpy.bool_": "bool"}


def check_same(op: str, operands: Sequence[Operand]) -> None:
    """Raise DTypeError if the dtypes of operands differ."""
    found = [dtype_name(one.dtype) for one in operands]
    if len({one for one in found if one is not None}) > 1:
        raise DTypeError(
            f"{op}: dtypes differ: {' and '.join([one or '?' for one in found])}; "
            "convert one with astype(...), nothing is promoted"
        )


def check_floating(op: str, operand: Operand) -> None:
    """Raise DTypeError if an operand that must be floating is not."""
    found = dtype_name(operand.dtype)
    if found is not None and not found.startswith("float"):
        raise DTypeError(
            f"{op}: not defined for dtype {found}; convert first with x.astype(np.float32)"
        )


def check_number(op: str, operand: Operand, number: Type) -> None:
    """Raise DTypeError if a number beside integers or truth values would make another dtype."""
    dtype, found = dtype_name(operand.dtype), get_proper_type(number)
    kind = found.type.name if isinstance(found, Instance) else ""
    if dtype is None or dtype.startswith("float") or kind not in ("int", "float"):
        return
    cure = "convert first with x.astype(np.float32)"
    exponent = read_int(number)
    if op == "power" and (kind == "float" or (exponent is not None and exponent < 0)):
        raise DTypeError(f"{op}: not defined for dtype {dtype}; {cure}")
    if kind == "float" or op == "divide" or dtype == "bool":
        result = "int64" if (kind, dtype) == ("int", "bool") and op != "divide" else "float64"
        raise DTypeError(
            f"{op}: not defined for dtype {dtype}, the result would be {result}; {cure}"
        )


def check_integers(
    op: str, name: str, operand: Operand, cure: str = "", kind: str = "integers"
) -> None:
    """Raise DTypeError if an operand that must hold integers does not."""
    found = dtype_name(operand.dtype)
    if found is not None and found.startswith(("float", "bool")):
        raise DTypeError(f"{op}: {name} must be {kind}, got {found}{cure}")


def is_bool(operand: Operand) -> bool:
    """Tell whether an operand is known to hold truth values."""
    return dtype_name(operand.dtype) == "bool"


def dtype_name(dtype: Type) -> str | None:
    """Return what numpy calls a dtype; None for one that is not known, or abstract."""
    found = get_proper_type(dtype)
    if not isinstance(found, Instance):
        return None
    kind = _KINDS.get(found.type.fullname)
    bits = get_proper_type(found.args[0]) if found.args else None
    if kind is None or not isinstance(bits, Instance):
        return _ALONE.get(found.type.fullname)
    size = bits.type.name.removeprefix("_").removesuffix("Bit")
    return f"{kind}{size}" if size.isdigit() else None


_MAKING_AXES: Final = ("expand_dims", "reshape", "broadcast_to")


@of_all_shapes
def elementwise(call: Call) -> Answer:
    """Return the result of an operator that has a result of the operands' dtype."""
    other = call.argument(0)
    if other is not None and read_tensor(other) is None:
        check_number(call.op, call.receiver, other)
        return None
    return _merged(call, _operands(call))


@of_all_shapes
def extreme(call: Call) -> Answer:
    """Return the result of a function of two tensors."""
    _check_ranks(call, call.expression(0), call.expression(1))
    return _merged(call, [call.operand(0), call.operand(1)])


@of_all_shapes
def comparison(call: Call) -> Answer:
    """Return the result of an operator that gives a plain mask, whatever the tapes."""
    operands = lhs, rhs = _operands(call)
    common_dtype(lhs.dtype, rhs.dtype)
    return call.like(call.result, _broadcast(call, operands))


@of_all_shapes
def logic(call: Call) -> Answer:
    """Return the result of an operator on plain masks."""
    operands = _operands(call)
    return _merged(call, operands) if all(map(_is_mask, operands)) else None


def _operands(call: Call) -> tuple[Operand, Operand]:
    """Return the operands of an operator, which do not meet each with each by accident."""
    operands = call.receiver, call.operand(0)
    _check_ranks(call, call.owner, call.expression(0))
    return operands


@of_all_shapes
def where(call: Call) -> Answer:
    """Return the result of `where`."""
    mask = read_tensor(call.argument(0))
    values = [call.argument(1), call.argument(2)]
    tensors = [one for value in values if (one := read_tensor(value)) is not None]
    if not tensors and all(map(is_number, values)):
        raise ArgumentTypeError(f"{call.op}: at least one of the two values must be a tensor")
    if mask is None or not _is_mask(mask) or not tensors:
        return None
    if len(tensors) == 1:
        # A number may stand beside a floating tensor.
        number = next(value for value in values if read_tensor(value) is None)
        if not is_number(number) or not is_floating(tensors[0].dtype):
            return None
    _check_ranks(call, *map(call.expression, range(3)))
    return _merged(call, tensors, mask)


def ssm_scan(call: Call) -> Answer:
    """Return the result of `ssm_scan`, whose coefficients broadcast to the sequence."""
    x, *coefficients = operands = [call.operand(place) for place in range(3)]
    if not x.fits_all:
        check_scanned(call.op, x.dims)
    for name, one in zip("ab", coefficients, strict=True):
        if not (x.fits_all or one.fits_all):
            check_coefficient(call.op, name, one.dims, x.dims)
            if broadcast(call.op, [x.dims, one.dims]) != x.dims:
                return None
    shape = _broadcast(call, operands) if x.fits_all else x.dims
    return call.tensor(shape, *merged(operands))


def _merged(call: Call, tensors: Sequence[Operand], *masks: Operand) -> Answer:
    return call.tensor(_broadcast(call, [*tensors, *masks]), *merged(tensors))


def _broadcast(call: Call, operands: Sequence[Operand]) -> Dims | None:
    """Return the shape of a result; None where one operand has some `Any` for its first dims."""
    if not any(one.fits_all for one in operands):
        return known(broadcast(call.op, [one.dims for one in operands]))
    axes = min(len(one.ending) for one in operands)
    endings = [one.ending[len(one.ending) - axes :] for one in operands]
    broadcast(call.op, endings, of="of the last axes, ")
    return None


def _check_ranks(call: Call, *operands: nodes.Expression | None) -> None:
    """Raise ShapeError if operands of different rank meet each of a dim with each by accident.

    It is none where the program says so: the axis of 1 was made on purpose, or the result is to
    have the dim twice.
    """
    tensors = {one: shape_of(type_of(one, call.api)) for one in operands if one is not None}
    shapes = [shape for shape in tensors.values() if shape is not None]
    ranks = {*map(len, shapes)}
    if len(ranks) < 2:
        return
    wanted = shape_of(call.wanted) or ()
    is_said = len({*wanted}) < len(wanted)
    longer = [one for one, shape in tensors.items() if shape and len(shape) > min(ranks)]
    if not is_said and not any(_has_made_axis(one, call.api) for one in longer):
        check_ranks(call.op, shapes)


def _has_made_axis(found: nodes.Expression, api: TypeChecker, names: int = 10) -> bool:
    """Tell whether an axis of 1 is made on purpose: by `expand_dims`, `keepdims=True`, `None`, ...

    Elementwise ops and methods that follow keep it; functions and modules make what they like.
    """
    match found:
        case (
            nodes.OpExpr(op="+" | "-" | "*" | "/" | "**" | "//" | "%", left=one, right=other)
            | nodes.ConditionalExpr(if_expr=one, else_expr=other)
        ):
            return _has_made_axis(one, api, names) or _has_made_axis(other, api, names)
        case nodes.UnaryExpr(expr=inner):
            return _has_made_axis(inner, api, names)
        case nodes.IndexExpr(base=base, index=index):
            parts = index.items if isinstance(index, nodes.TupleExpr) else [index]
            is_made = any(
                isinstance(one, nodes.SliceExpr) or is_absent(type_of(one, api)) for one in parts
            )
            return is_made or _has_made_axis(base, api, names)
        case nodes.CallExpr(callee=nodes.MemberExpr(name=name, expr=receiver)) if name != "forward":
            is_made = name in _MAKING_AXES or "keepdims" in found.arg_names
            is_method = read_tensor(type_of(receiver, api)) is not None
            return is_method and (is_made or _has_made_axis(receiver, api, names))
    value = value_of(found, api) if names else None
    return value is not None and _has_made_axis(value, api, names - 1)


def _is_mask(operand: Operand) -> bool:
    return is_plain(operand.tape) and is_bool(operand)


def is_number(found: Type | None) -> bool:
    """Tell whether a type is that of a number of Python."""
    proper = get_proper_type(found)
    value = proper.fallback if isinstance(proper, LiteralType) else proper
    return instance_of(value, "builtins.int", "builtins.float") is not None


# Plain typing knows the columns of what a matrix gives, and nothing else of an open shape.
@opening(lambda call: call.fits_all and len(shape_of(call.argument(0)) or ()) != 2)
def matmul(call: Call) -> Answer:
    """Return the result of ``@`` for operands of all ranks."""
    operands = [call.receiver, call.operand(0)]
    return call.merging(operands, rules.matmul(call.op, *[one.dims for one in operands]))


def rmatmul(call: Call) -> Answer:
    """Explain a product whose left operand has no axes, which no overload takes."""
    if call.operand(0).shape == ():
        rules.matmul(call.op, (), call.receiver.dims)
    return None


def einsum(call: Call) -> Answer:
    """Return the result of `einsum` with literal subscripts."""
    subscripts = known(read_literal(call.argument(0), str))
    given = [read_tensor(one) for index in range(1, call.formals) for one in call.given(index)]
    operands = [known(one) for one in given]
    shapes = [one.dims for one in operands]
    _, output, dims = rules.einsum(call.op, subscripts, shapes, rules.shared_dim)
    return call.merging(operands, tuple(dims[letter] for letter in output))


solve = of_receiver(rules.solve, lambda call: call.operand(0).dims, opens=True)


# The axes of what each op makes of matrices (*Ds, M, N), where K is the smaller of M and N.
MADE: Final = {
    "inv": ("NN",),
    "cholesky": ("NN",),
    "det": ("",),
    "slogdet": ("", ""),
    "eigh": ("N", "NN"),
    "qr": ("MK", "KN"),
    "svd": ("MK", "K", "KN"),
    "pinv": ("NM",),
}
_OF_ANY_MATRIX: Final = ("qr", "svd", "pinv")


@of_all_shapes
def of_matrices(call: Call) -> Answer:
    """Return what an op makes of matrices, which mostly have to be square."""
    shape = call.receiver.dims
    if call.op in _OF_ANY_MATRIX:
        check_matrices(call.op, shape)
        rows, columns = shape[-2:]
    else:
        rows = columns = rules.side_of_squares(call.op, shape)
    sides = {"M": rows, "N": columns, "K": _smaller(rows, columns)}
    shapes = [(*shape[:-2], *[sides[side] for side in made]) for made in MADE[call.op]]
    if len(shapes) == 1:
        return call.like(call.receiver, shapes[0])
    return call.tuple_of(list(map(call.like, call.results, shapes)))


def _smaller(rows: Dim, columns: Dim) -> Dim:
    if rows.literal is not None and columns.literal is not None:
        return Size.of(min(rows.literal, columns.literal))
    return rows if rows == columns else ANY
