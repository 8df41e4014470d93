"""Tensors put together along an axis, and elements at positions: `concat`, `take`, ``x[...]``."""

from __future__ import annotations

from functools import partial
from itertools import chain

from mypy.nodes import Expression, ListExpr, SliceExpr, TupleExpr
from mypy.types import AnyType, Instance, Type, get_proper_type

from tapetensor.arguments.checks import normalize_axis
from tapetensor.errors import ArgumentTypeError
from tapetensor.mypy_plugin.reading import (
    Operand,
    UndecidedError,
    is_absent,
    is_int,
    is_plain,
    known,
    may_have_any_shape,
    merged,
    read_dim,
    read_int,
    read_tensor,
)
from tapetensor.mypy_plugin.shapes.axes import axis_of_receiver, given_axis
from tapetensor.mypy_plugin.shapes.broadcasting import check_same, is_bool
from tapetensor.mypy_plugin.shapes.calls import Answer, Call, of_all_shapes, opening, type_of
from tapetensor.mypy_plugin.shapes.sizes import length_of, settled_dims, size_of
from tapetensor.rules import indexing as rules
from tapetensor.rules import joining
from tapetensor.rules.dims import ANY, ONE, Dim, Dims, Size, product, total
from tapetensor.rules.indexing import Bounds, Index, Kind


def _is_open(call: Call) -> bool:
    """Tell whether not even one of the tensors has a shape, which plain typing would take."""
    tensors = call.items("tensors")
    return bool(tensors) and all(map(may_have_any_shape, tensors))


@opening(_is_open)
def concat(call: Call) -> Answer:
    """Return the result of `concat`."""
    shapes, counts, tape, dtype = _operands(call)
    axis = normalize_axis(call.op, given_axis(call, 0), shapes[0])
    joined = joining.concat(call.op, list(map(partial(_repeated, axis=axis), shapes, counts)), axis)
    size = total(shape[axis] for shape in shapes)
    dims = settled_dims(joined, (*chain(*shapes), size), call.api)
    return call.tensor(dims, tape, dtype)


@opening(_is_open)
def stack(call: Call) -> Answer:
    """Return the result of `stack`."""
    shapes, counts, tape, dtype = _operands(call)
    axis = normalize_axis(call.op, given_axis(call, 0), shapes[0], extra=1)
    joined = joining.stack(call.op, shapes, axis, total(counts))
    dims = settled_dims(joined, tuple(chain(*shapes)), call.api)
    return call.tensor(dims, tape, dtype)


def _repeated(shape: Dims, count: Dim, axis: int) -> Dims:
    """Return a shape with an axis as long as several of them."""
    if count == ONE:
        return shape
    return (*shape[:axis], product((shape[axis], count)), *shape[axis + 1 :])


def _operands(call: Call) -> tuple[list[Dims], list[Dim], Type, Type]:
    """Return the shapes of the tensors, and how many of each; tape state and dtype of the result.

    A tuple or what is listed has one of each, a list in a variable some of one shape.
    """
    expression, found = known(call.expression("tensors")), get_proper_type(call.argument("tensors"))
    if isinstance(found, Instance) and not isinstance(expression, ListExpr):
        items = [*found.args] if found.type.fullname == "builtins.list" else []
        counts = [length_of(expression, call.node, call.api)]
    else:
        items = call.items("tensors")
        counts = [ONE] * len(items)
    if not items and isinstance(expression, ListExpr | TupleExpr):
        raise ArgumentTypeError(f"{call.op}: expected one tensor or more in a tuple or list")
    operands = [known(read_tensor(item)) for item in items]
    shapes = [one.dims for one in operands]
    check_same(call.op, operands)
    return (shapes, counts, *merged(operands))


@of_all_shapes
def take(call: Call) -> Answer:
    """Return the result of `take`."""
    indices, x, axis = _read_along(call, default=0)
    return call.like(call.receiver, (*x[:axis], *indices, *x[axis + 1 :]))


@of_all_shapes
def segment_sum(call: Call) -> Answer:
    """Return the result of `segment_sum`: as many slices as it says."""
    x, segments = call.operand(0), _positions(call, "segments")
    rules.check_segments(call.op, x.dims, segments.dims)
    count = call.argument("count")
    slices = None if count is None else read_dim(count)
    return None if slices is None else call.like(x, (slices, *x.dims[1:]))


@of_all_shapes
def take_along_axis(call: Call) -> Answer:
    """Return the result of `take_along_axis`: the other axes broadcast."""
    indices, x, along = _read_along(call, default=-1)
    return call.like(call.receiver, known(rules.take_along_axis(call.op, x, indices, along)))


def put_along_axis(call: Call) -> Answer:
    """Refuse places, or values for them, that do not fit; the shape stays."""
    indices, x, along = _read_along(call, default=-1)
    values = call.operand("values").dims
    rules.check_places(call.op, x, indices, values, along)
    return None


def _read_along(call: Call, default: int) -> tuple[Dims, Dims, int]:
    """Return the shape of plain positions, that of the receiver, and the axis from the front."""
    return (_positions(call, "indices").dims, *axis_of_receiver(call, default))


def _positions(call: Call, name: str) -> Operand:
    """Return plain integers; others are refused by plain typing."""
    found = call.operand(name)
    is_open = isinstance(found.dtype, AnyType)
    if not is_plain(found.tape) or not (is_open or is_integer(found.dtype)):
        raise UndecidedError
    return found


def is_integer(dtype: Type) -> bool:
    """Tell whether a dtype holds integers."""
    return isinstance(dtype, Instance) and dtype.type.has_base("numpy.integer")


@of_all_shapes
def getitem(call: Call) -> Answer:
    """Return the result of ``x[index]``."""
    x, expression = call.receiver, known(call.expression(0))
    # Read, so that the signature takes it.
    call.argument(0)
    items = expression.items if isinstance(expression, TupleExpr) else [expression]
    shape = x.dims
    mask = read_tensor(type_of(items[0], call.api)) if len(items) == 1 else None
    if mask is not None and is_bool(mask):
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
