"""Reading elements: positions, slices, None, ``...`` and integer tensors."""

from __future__ import annotations

from mypy.nodes import Expression, ListExpr, SliceExpr, TupleExpr
from mypy.types import Instance, Type, get_proper_type

from tapetensor.mypy_plugin.kinds import is_int
from tapetensor.mypy_plugin.shapes.calls import Answer, Call, of_all_shapes, type_of
from tapetensor.mypy_plugin.shapes.joining import is_bool, is_integer
from tapetensor.mypy_plugin.shapes.own_names import settled_dims
from tapetensor.mypy_plugin.shapes.reading import (
    UndecidedError,
    is_absent,
    is_plain,
    known,
    read_dim,
    read_int,
    read_tensor,
)
from tapetensor.mypy_plugin.shapes.sizes import size_of
from tapetensor.rules import indexing as rules
from tapetensor.rules.dims import ANY, Dim, Size
from tapetensor.rules.indexing import Bounds, Index, Kind


@of_all_shapes
def getitem(call: Call) -> Answer:
    """Return the result of ``x[index]``."""
    x, expression = call.receiver, known(call.expression(0))
    # Read, so that the signature takes it.
    call.argument(0)
    items = expression.items if isinstance(expression, TupleExpr) else [expression]
    shape = x.dims
    mask = read_tensor(type_of(items[0], call.api)) if len(items) == 1 else None
    if mask is not None and is_bool(mask.dtype):
        rules.check_mask(call.op, mask.dims, shape)
    indices = [_read(call, item) for item in items]
    read = known(rules.getitem(call.op, indices, shape))
    given = [dim for one in indices for dim in one.shape]
    return call.like(x, settled_dims(read, (*shape, *given), call.api))


def _read(call: Call, expression: Expression) -> Index:
    if isinstance(expression, SliceExpr):
        parts = (expression.begin_index, expression.end_index, expression.stride)
        return Index(Kind.SLICE, bounds=_bounds(call, parts))
    found = get_proper_type(type_of(expression, call.api))
    if is_absent(found):
        return Index(Kind.NEW_AXIS)
    if read_int(found) is not None or is_int(found):
        size = size_of(expression, call.api)
        return Index(Kind.POSITION, position=size.literal)
    if isinstance(found, Instance):
        if found.type.fullname in ("types.EllipsisType", "builtins.ellipsis"):
            return Index(Kind.REST)
        if found.type.fullname == "builtins.slice":
            return Index(Kind.SLICE, bounds=(ANY, ANY, ANY))
    if isinstance(expression, ListExpr):
        # A list of truth values is a mask.
        if not all(is_int(type_of(one, call.api)) for one in expression.items):
            raise UndecidedError
        return Index(Kind.TENSOR, shape=(Size.of(len(expression.items)),))
    tensor = known(read_tensor(found))
    if not is_plain(tensor.tape) or not is_integer(tensor.dtype):
        raise UndecidedError
    return Index(Kind.TENSOR, shape=tensor.dims)


def _bounds(call: Call, parts: tuple[Expression | None, ...]) -> Bounds:
    values: list[Dim | None] = []
    for part in parts:
        found: Type | None = None if part is None else type_of(part, call.api)
        values.append(None if found is None or is_absent(found) else _bound(found))
    start, stop, step = values
    return start, stop, step


def _bound(found: Type) -> Dim:
    dim = read_dim(found)
    return ANY if dim is None else dim
