"""Ops that change axes or take them away: `reshape`, `pad`, `split`, reductions, ..."""

from __future__ import annotations

from mypy.nodes import CallExpr, MemberExpr, StrExpr
from mypy.types import TupleType, get_proper_type

from tapetensor.arguments.checks import normalize_axes, normalize_axis
from tapetensor.errors import ArgumentValueError
from tapetensor.mypy_plugin.reading import (
    UndecidedError,
    is_absent,
    known,
    read_dim,
    read_int,
    read_ints,
    read_literal,
    read_shape,
    read_tensor,
)
from tapetensor.mypy_plugin.shapes.calls import Answer, Call, of_all_shapes, opening
from tapetensor.mypy_plugin.shapes.sizes import settled_dims, sharpened
from tapetensor.rules import broadcasting
from tapetensor.rules import rearranging as rules
from tapetensor.rules.dims import ANY, ONE, Dims, Size, computed, is_negative, product, total
from tapetensor.rules.indexing import check_count, check_single


def given_axes(call: Call, shape: Dims) -> tuple[int, ...]:
    """Return the axis, or the axes, that the argument `axis` names, counted from the front."""
    axis = known(call.argument("axis"))
    one = read_int(axis)
    return normalize_axes(call.op, known(read_ints(axis)) if one is None else one, shape)


def given_axis(call: Call, default: int | None) -> int:
    """Return the argument `axis` as it is given."""
    axis = call.argument("axis")
    return known(default if axis is None else read_int(axis))


def axis_of_receiver(call: Call, default: int | None) -> tuple[Dims, int]:
    """Return the shape of the receiver, and the argument `axis` counted from the front of it."""
    shape, axis = call.receiver.dims, given_axis(call, default)
    # mypy has complained of a 0-d tensor already: no overload takes it.
    if not shape:
        raise UndecidedError
    return shape, normalize_axis(call.op, axis, shape)


# Nobody names more parts than that one by one.
_PARTS = 64


def reshape(call: Call) -> Answer:
    """Return the result of `reshape`, a ``-1`` worked out."""
    x = call.receiver
    shape = rules.reshape(call.op, x.dims, _asked(call))
    rules.check_order(call.op, x.dims, shape)
    return call.like(x, shape)


def _asked(call: Call) -> Dims:
    """Return the shape that is asked for."""
    target = known(read_shape(call.argument("shape")))
    return sharpened(target, call.expression("shape"), call.api)


def flatten(call: Call) -> Answer:
    """Return the result of `flatten`."""
    return call.like(call.receiver, (product(call.receiver.dims),))


@of_all_shapes
def permute_dims(call: Call) -> Answer:
    """Return the result of `permute_dims`."""
    x, axes = call.receiver, known(read_ints(call.argument("axes")))
    order = [normalize_axis(call.op, axis, x.dims) for axis in axes]
    return call.like(x, rules.permute_dims(call.op, axes, order, x.dims))


@of_all_shapes
def transpose(call: Call) -> Answer:
    """Return the result of `transpose`."""
    x = call.receiver
    return call.like(x, (*x.dims[:-2], x.dims[-1], x.dims[-2])) if len(x.dims) > 1 else None


def broadcast_to(call: Call) -> Answer:
    """Return the result of `broadcast_to`, which is the shape that was asked for."""
    x = call.receiver
    return call.like(x, broadcasting.broadcast_to(call.op, x.dims, _asked(call)))


@of_all_shapes
def squeeze(call: Call) -> Answer:
    """Return the result of `squeeze`."""
    x = call.receiver
    return call.like(x, rules.squeeze(call.op, x.dims, given_axes(call, x.dims)))


@of_all_shapes
def expand_dims(call: Call) -> Answer:
    """Return the result of `expand_dims`."""
    x = call.receiver
    position = normalize_axis(call.op, given_axis(call, None), x.dims, extra=1)
    return call.like(x, (*x.dims[:position], ONE, *x.dims[position:]))


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


def diff(call: Call) -> Answer:
    """Return the result of `diff`: the axis, shorter by one."""
    shape, axis = axis_of_receiver(call, -1)
    left = total((shape[axis], Size.of(-1)))
    size = Size.of(0) if is_negative(left) else left
    return call.like(call.receiver, (*shape[:axis], size, *shape[axis + 1 :]))


def roll(call: Call) -> Answer:
    """Return the result of `roll`, whose axis has to be there."""
    shape, _ = axis_of_receiver(call, None)
    return call.like(call.receiver, shape)


def split(call: Call) -> Answer:
    """Return the result of `split`: as many parts as there are."""
    x, (shape, axis) = call.receiver, axis_of_receiver(call, 0)
    count = read_dim(known(call.argument("sections")))
    if isinstance(count, Size) and count.atoms:
        size = computed(lambda whole, parts: whole / parts or ANY, shape[axis], count)
        dims = settled_dims((*shape[:axis], size, *shape[axis + 1 :]), shape, call.api)
        part = call.like(x, dims)
        return call.api.named_generic_type("builtins.tuple", [part])
    sizes = _sections(call, shape, axis)
    if not sizes:
        return None
    parts = [call.like(x, (*shape[:axis], size, *shape[axis + 1 :])) for size in sizes]
    return call.tuple_of(parts)


def _sections(call: Call, shape: Dims, axis: int) -> list[Size] | None:
    """Return the sizes of the parts; None where they are open."""
    whole, count = shape[axis], read_int(call.argument("sections"))
    if count is not None and count < 1:
        raise ArgumentValueError(f"{call.op}: sections must be > 0, got {count}")
    if count is not None and isinstance(whole, Size):
        part = rules.split(call.op, shape, axis, count)
        return [part] * count if isinstance(part, Size) and count <= _PARTS else None
    sizes = tuple([known(read_int(one)) for one in call.items("sections")])
    rules.check_sections(call.op, shape, axis, sizes)
    return None if min(sizes, default=0) < 0 else [Size.of(one) for one in sizes]


def _is_whole(call: Call) -> bool:
    """Tell whether a reduction is one of all axes."""
    return is_absent(call.argument("axis"))


@opening(lambda call: call.receiver.fits_all and not _is_whole(call))
def reduction(call: Call) -> Answer:
    """Return the result of a reduction with `axis` and `keepdims`."""
    x, keepdims = call.receiver, call.argument("keepdims")
    shape = x.dims
    axes = tuple(range(len(shape))) if _is_whole(call) else given_axes(call, shape)
    if keepdims is not None and known(read_literal(keepdims, bool)):
        return call.like(x, tuple(ONE if at in axes else dim for at, dim in enumerate(shape)))
    return call.like(x, tuple(dim for at, dim in enumerate(shape) if at not in axes))


@of_all_shapes
def position(call: Call) -> Answer:
    """Return the result of `argmax` and `argmin`, whose dtype is their own."""
    if _is_whole(call):
        return call.like(call.result, ())
    result, (shape, axis) = call.result, axis_of_receiver(call, None)
    return call.like(result, (*shape[:axis], *shape[axis + 1 :]))


@of_all_shapes
def topk(call: Call) -> Answer:
    """Return the results of `topk`: the elements, and the positions with a dtype of their own."""
    shape, axis = axis_of_receiver(call, -1)
    count = read_dim(known(call.argument("k")))
    if count is None:
        return None
    if is_negative(count):
        raise ArgumentValueError(f"{call.op}: k must not be negative, got {count}")
    check_count(call.op, shape, axis, count)
    dims = (*shape[:axis], count, *shape[axis + 1 :])
    return call.tuple_of([call.like(one, dims) for one in call.results])


def item(call: Call) -> Answer:
    """Refuse `item` of what cannot have one element, whatever the open dims are."""
    check_single(call.op, call.receiver.dims)
    return None


def formatted(call: Call) -> Answer:
    """Refuse ``f"{x:.2f}"`` of what cannot have one element."""
    # mypy spells it "{:{}}".format(x, ".2f").
    match call.node, call.expressions(0)[1:]:
        case _, [StrExpr(value="")]:
            pass
        case CallExpr(callee=MemberExpr(expr=StrExpr(value="{:{}}"))), [_]:
            check_single(call.op, known(read_tensor(call.types(0)[0])).dims)
    return None


def along_axis(call: Call) -> Answer:
    """Refuse an axis that is not there, of an op that keeps the shape."""
    normalize_axis(call.op, given_axis(call, -1), call.receiver.dims)
    return None
