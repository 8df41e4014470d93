"""Ops that keep the elements and change the axes."""

from __future__ import annotations

from mypy.types import TupleType, get_proper_type

from tapetensor.arguments.shapes import normalize_axis
from tapetensor.errors import ArgumentValueError
from tapetensor.mypy_plugin.shapes.axes import (
    axis_of_receiver,
    given_axes,
    given_axis,
)
from tapetensor.mypy_plugin.shapes.calls import Answer, Call, of_all_shapes
from tapetensor.mypy_plugin.shapes.own_names import settled_dims
from tapetensor.mypy_plugin.shapes.reading import known, read_dim, read_int, read_ints, read_shape
from tapetensor.mypy_plugin.shapes.sizes import sharpened
from tapetensor.rules import broadcasting
from tapetensor.rules import rearranging as rules
from tapetensor.rules.dims import (
    ANY,
    ONE,
    Dims,
    Size,
    computed,
    product,
    total,
)

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
    sizes = [total((dim, *map(Size.of, pair))) for dim, pair in zip(x.dims, widths, strict=True)]
    return call.like(x, tuple(sizes))


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


@of_all_shapes
def share(call: Call) -> Answer:
    """Return the result of `share`: as many handles as it says."""
    x, count = call.receiver, read_int(call.argument("n"))
    if count is not None and count < 1:
        raise ArgumentValueError(f"{call.op}: n must be > 0, got {count}")
    if count is None or count > _PARTS:
        return None
    return call.tuple_of([call.like(x, x.dims)] * count)


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
