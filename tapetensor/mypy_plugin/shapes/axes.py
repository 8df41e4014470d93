"""Ops that change axes, put tensors together along one, and read elements at positions."""

from __future__ import annotations

from functools import partial
from itertools import chain

from mypy.nodes import CallExpr, Expression, ListExpr, MemberExpr, SliceExpr, StrExpr, TupleExpr
from mypy.types import Instance, TupleType, Type, get_proper_type

from tapetensor.arguments.checks import as_size, normalize_axes, normalize_axis
from tapetensor.errors import ArgumentTypeError
from tapetensor.mypy_plugin.reading import (
    Operand,
    UndecidedError,
    instance_of,
    is_absent,
    is_any,
    is_int,
    is_plain,
    known,
    may_have_any_shape,
    read_dim,
    read_int,
    read_ints,
    read_literal,
    read_shape,
    read_tensor,
    shape_of,
)
from tapetensor.mypy_plugin.shapes.broadcasting import check_same, is_bool
from tapetensor.mypy_plugin.shapes.calls import (
    Answer,
    Call,
    of_all_shapes,
    of_receiver,
    opening,
    type_of,
)
from tapetensor.mypy_plugin.shapes.computed import length_of, settled_dims, sharpened, size_of
from tapetensor.rules import broadcasting, indexing
from tapetensor.rules import rearranging as rules
from tapetensor.rules.dims import ANY, ONE, Dim, Dims, Size, is_negative, product, quotient, total
from tapetensor.rules.indexing import Index, Kind, check_count, check_single


def given_axes(call: Call) -> tuple[int, ...]:
    """Return the axis, or the axes, that the argument `axis` names, counted from the front."""
    axis = known(call.argument("axis"))
    one = read_int(axis)
    return normalize_axes(
        call.op, known(read_ints(axis)) if one is None else one, call.receiver.dims
    )


def given_axis(call: Call, default: int | None) -> int:
    """Return the argument `axis` as it is given."""
    axis = call.argument("axis")
    return known(default if axis is None else read_int(axis))


def axis_of_receiver(call: Call, default: int | None = None) -> int:
    """Return the argument `axis`, counted from the front of the receiver."""
    shape, axis = call.receiver.dims, given_axis(call, default)
    # mypy has complained of a 0-d tensor already: no overload takes it.
    if not shape:
        raise UndecidedError
    return normalize_axis(call.op, axis, shape)


first_axis = partial(axis_of_receiver, default=0)
last_axis = partial(axis_of_receiver, default=-1)


def resized(shape: Dims, axis: int, *dims: Dim) -> Dims:
    """Return a shape with other dims in the place of an axis."""
    return (*shape[:axis], *dims, *shape[axis + 1 :])


def _asked(call: Call) -> Dims:
    """Return the shape that is asked for."""
    target = known(read_shape(call.argument("shape")))
    return sharpened(target, call.expression("shape"), call.api)


def _new_axis(call: Call) -> int:
    return normalize_axis(call.op, given_axis(call, None), call.receiver.dims, extra=1)


def _check_axis(op: str, shape: Dims, axis: int) -> None:
    normalize_axis(op, axis, shape)


def _shorter(_: str, shape: Dims, axis: int) -> Dims:
    left = total((shape[axis], Size.of(-1)))
    return resized(shape, axis, Size.of(0) if is_negative(left) else left)


reshape = of_receiver(rules.reshape, _asked)
flatten = of_receiver(lambda _, shape: (product(shape),))
broadcast_to = of_receiver(broadcasting.broadcast_to, _asked)
transpose = of_receiver(
    lambda _, shape: (*shape[:-2], shape[-1], shape[-2]) if len(shape) > 1 else None, opens=True
)
squeeze = of_receiver(rules.squeeze, given_axes, opens=True)
expand_dims = of_receiver(
    lambda _, shape, axis: (*shape[:axis], ONE, *shape[axis:]), _new_axis, opens=True
)
diff = of_receiver(_shorter, last_axis)
roll = of_receiver(lambda _, shape, axis: shape, axis_of_receiver)
# Plain typing knows what these return; an axis has to be there, and what has a number one element.
along_axis = of_receiver(_check_axis, partial(given_axis, default=-1))
item = of_receiver(check_single)


@of_all_shapes
def permute_dims(call: Call) -> Answer:
    """Return the result of `permute_dims`."""
    x, axes = call.receiver, known(read_ints(call.argument("axes")))
    order = [normalize_axis(call.op, axis, x.dims) for axis in axes]
    return call.like(x, rules.permute_dims(call.op, axes, order, x.dims))


@of_all_shapes
def pad(call: Call) -> Answer:
    """Return the result of `pad`: the axes, longer by two widths each."""
    x, pairs = call.receiver, get_proper_type(call.argument("widths"))
    if not isinstance(pairs, TupleType):
        return None
    widths = [known(read_ints(pair)) for pair in pairs.items]
    rules.check_widths(call.op, len(widths), x.dims)
    mode = read_literal(call.argument("mode"), str) if call.argument("mode") else None
    for dim, (before, after) in zip(x.dims, widths, strict=True):
        if mode in ("reflect", "replicate", "circular") and dim.literal is not None:
            rules.check_repeated(call.op, mode, (before, after), dim.literal, x.dims)
    sizes = [total((dim, *map(Size.of, pair))) for dim, pair in zip(x.dims, widths, strict=True)]
    return call.like(x, tuple(sizes))


# Nobody names more parts than that one by one.
_PARTS = 64


def split(call: Call) -> Answer:
    """Return the result of `split`: as many parts as there are."""
    x, axis = call.receiver, axis_of_receiver(call, 0)
    shape = x.dims
    count = read_dim(known(call.argument("sections")))
    if isinstance(count, Size) and count.atoms:
        sizes = resized(shape, axis, quotient(shape[axis], count))
        part = call.like(x, settled_dims(sizes, shape, call.api))
        return call.api.named_generic_type("builtins.tuple", [part])
    parts = [call.like(x, resized(shape, axis, size)) for size in _sections(call, shape, axis)]
    return call.tuple_of(parts) if parts else None


def _sections(call: Call, shape: Dims, axis: int) -> list[Size]:
    """Return the sizes of the parts; none where they are open."""
    count = read_int(call.argument("sections"))
    if count is not None:
        part = rules.split(call.op, shape, axis, as_size(call.op, "sections", count, low=1))
        return [part] * count if isinstance(part, Size) and count <= _PARTS else []
    sizes = tuple([known(read_int(one)) for one in call.items("sections")])
    rules.check_sections(call.op, shape, axis, sizes)
    return [] if min(sizes, default=0) < 0 else [Size.of(one) for one in sizes]


def _is_whole(call: Call) -> bool:
    """Tell whether a reduction is one of all axes."""
    return is_absent(call.argument("axis"))


@opening(lambda call: call.receiver.fits_all and not _is_whole(call))
def reduction(call: Call) -> Answer:
    """Return the result of a reduction with `axis` and `keepdims`."""
    x, keepdims = call.receiver, call.argument("keepdims")
    shape = x.dims
    axes = tuple(range(len(shape))) if _is_whole(call) else given_axes(call)
    if keepdims is not None and known(read_literal(keepdims, bool)):
        return call.like(x, tuple(ONE if at in axes else dim for at, dim in enumerate(shape)))
    return call.like(x, tuple(dim for at, dim in enumerate(shape) if at not in axes))


@of_all_shapes
def position(call: Call) -> Answer:
    """Return the result of `argmax` and `argmin`, whose dtype is their own."""
    if _is_whole(call):
        return call.like(call.result, ())
    return call.like(call.result, resized(call.receiver.dims, axis_of_receiver(call)))


@of_all_shapes
def topk(call: Call) -> Answer:
    """Return the results of `topk`: the elements, and the positions with a dtype of their own."""
    shape, axis = call.receiver.dims, axis_of_receiver(call, -1)
    count = read_dim(known(call.argument("k")))
    if count is None:
        return None
    as_size(call.op, "k", count.literal or 0)
    check_count(call.op, shape, axis, count)
    return call.tuple_of([call.like(one, resized(shape, axis, count)) for one in call.results])


def formatted(call: Call) -> Answer:
    """Refuse ``f"{x:.2f}"`` of what cannot have one element."""
    # mypy spells it "{:{}}".format(x, ".2f").
    match call.node:
        case CallExpr(callee=MemberExpr(expr=StrExpr(value="{:{}}")), args=[_, how]):
            if not isinstance(how, StrExpr) or how.value:
                check_single(call.op, known(shape_of(call.given(0)[0])))
    return None


def _is_open(call: Call) -> bool:
    """Tell whether not even one of the tensors has a shape, which plain typing would take."""
    tensors = call.items("tensors")
    return bool(tensors) and all(map(may_have_any_shape, tensors))


@opening(_is_open)
def concat(call: Call) -> Answer:
    """Return the result of `concat`."""
    operands, counts = _operands(call)
    shapes = [one.dims for one in operands]
    axis = normalize_axis(call.op, given_axis(call, 0), shapes[0])
    joined = rules.concat(call.op, list(map(partial(_repeated, axis=axis), shapes, counts)), axis)
    size = total(shape[axis] for shape in shapes)
    dims = settled_dims(joined, (*chain(*shapes), size), call.api)
    return call.merging(operands, dims)


@opening(_is_open)
def stack(call: Call) -> Answer:
    """Return the result of `stack`."""
    operands, counts = _operands(call)
    shapes = [one.dims for one in operands]
    axis = normalize_axis(call.op, given_axis(call, 0), shapes[0], extra=1)
    joined = rules.stack(call.op, shapes, axis, total(counts))
    dims = settled_dims(joined, tuple(chain(*shapes)), call.api)
    return call.merging(operands, dims)


def _repeated(shape: Dims, count: Dim, axis: int) -> Dims:
    """Return a shape with an axis as long as several of them."""
    if count == ONE:
        return shape
    return resized(shape, axis, product((shape[axis], count)))


def _operands(call: Call) -> tuple[list[Operand], list[Dim]]:
    """Return the tensors, and how many of each.

    A tuple or what is listed has one of each, a list in a variable some of one shape.
    """
    expression, found = known(call.expression("tensors")), get_proper_type(call.argument("tensors"))
    if isinstance(found, Instance) and not isinstance(expression, ListExpr):
        items = [*found.args] if found.type.fullname == "builtins.list" else []
        counts = [length_of(expression, call.node, call.api)]
    else:
        items = call.items("tensors")
        counts = [ONE] * len(items)
    if not items:
        if isinstance(expression, ListExpr | TupleExpr):
            raise ArgumentTypeError(f"{call.op}: expected one tensor or more in a tuple or list")
        raise UndecidedError
    operands = [known(read_tensor(item)) for item in items]
    check_same(call.op, operands)
    return operands, counts


@of_all_shapes
def segment_sum(call: Call) -> Answer:
    """Return the result of `segment_sum`: as many slices as it says."""
    x, segments = call.operand(0), _positions(call, "segments")
    indexing.check_segments(call.op, x.dims, segments.dims)
    count = call.argument("count")
    slices = None if count is None else read_dim(count)
    return None if slices is None else call.like(x, (slices, *x.dims[1:]))


def _positions(call: Call, name: str) -> Operand:
    """Return plain integers; others are refused by plain typing."""
    found = call.operand(name)
    if not is_plain(found.tape) or not (is_any(found.dtype) or is_integer(found.dtype)):
        raise UndecidedError
    return found


def is_integer(dtype: Type) -> bool:
    """Tell whether a dtype holds integers."""
    return isinstance(dtype, Instance) and dtype.type.has_base("numpy.integer")


def _indices(call: Call) -> Dims:
    return _positions(call, "indices").dims


take = of_receiver(
    lambda _, shape, axis, indices: resized(shape, axis, *indices), first_axis, _indices, opens=True
)
take_along_axis = of_receiver(indexing.take_along_axis, _indices, last_axis, opens=True)
# The shape stays, if places and values for them fit.
put_along_axis = of_receiver(
    indexing.check_places, _indices, lambda call: call.operand("values").dims, last_axis
)


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
        indexing.check_mask(call.op, mask.dims, shape)
    indices = [_read(call, item) for item in items]
    read = known(indexing.getitem(call.op, indices, shape))
    given = [dim for one in indices for dim in one.shape]
    return call.like(x, settled_dims(read, (*shape, *given), call.api))


def _read(call: Call, expression: Expression) -> Index:
    if isinstance(expression, SliceExpr):
        begin, end = _bound(call, expression.begin_index), _bound(call, expression.end_index)
        return Index(Kind.SLICE, bounds=(begin, end, _bound(call, expression.stride)))
    found = get_proper_type(type_of(expression, call.api))
    if is_absent(found):
        return Index(Kind.NEW_AXIS)
    if read_int(found) is not None or is_int(found):
        size = size_of(expression, call.api)
        return Index(Kind.POSITION, position=size.literal)
    if instance_of(found, "types.EllipsisType", "builtins.ellipsis"):
        return Index(Kind.REST)
    if instance_of(found, "builtins.slice"):
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


def _bound(call: Call, expression: Expression | None) -> Dim | None:
    """Return an end, or the step, of a slice; None where it is left out."""
    found = None if expression is None else type_of(expression, call.api)
    if found is None or is_absent(found):
        return None
    dim = read_dim(found)
    return ANY if dim is None else dim
