"""Reductions, and the ops along an axis that keep the shape."""

from __future__ import annotations

from mypy.nodes import StrExpr

from tapetensor.arguments.shapes import normalize_axis
from tapetensor.errors import ArgumentValueError
from tapetensor.mypy_plugin.shapes.axes import (
    axis_of_receiver,
    given_axes,
    given_axis,
)
from tapetensor.mypy_plugin.shapes.calls import Answer, Call, of_all_shapes, opening
from tapetensor.mypy_plugin.shapes.reading import (
    is_absent,
    known,
    read_dim,
    read_literal,
    read_tensor,
)
from tapetensor.rules.dims import ONE, is_negative
from tapetensor.rules.indexing import check_count, check_single


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
    match call.expressions(0)[1:]:
        case [StrExpr(value="")]:
            pass
        case [_] if call.text == "{:{}}":
            check_single(call.op, known(read_tensor(call.types(0)[0])).dims)
    return None


def along_axis(call: Call) -> Answer:
    """Refuse an axis that is not there, of an op that keeps the shape."""
    normalize_axis(call.op, given_axis(call, -1), call.receiver.dims)
    return None
