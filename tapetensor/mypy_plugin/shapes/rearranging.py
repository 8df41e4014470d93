"""Ops that keep the elements and change the axes."""

from __future__ import annotations

from mypy.types import TupleType, get_proper_type

from tapetensor.mypy_plugin.codes import AXIS_RANGE
from tapetensor.mypy_plugin.shapes.axes import (
    axis_of_receiver,
    given_axis,
    normal_axes,
    normal_axis,
)
from tapetensor.mypy_plugin.shapes.calls import Answer, Call, MismatchError, of_all_shapes
from tapetensor.mypy_plugin.shapes.dims import (
    ANY,
    ONE,
    Dim,
    Dims,
    Open,
    Size,
    cannot_be_equal,
    computed,
    differ,
    is_negative,
    product,
    total,
    written,
)
from tapetensor.mypy_plugin.shapes.own_names import settled_dims
from tapetensor.mypy_plugin.shapes.reading import known, read_dim, read_int, read_ints, read_shape
from tapetensor.mypy_plugin.shapes.sizes import sharpened

_HIDDEN = Size.of(-1)
# Nobody names more parts than that one by one.
_PARTS = 64


def reshape(call: Call) -> Answer:
    """Return the result of `reshape`, a ``-1`` worked out."""
    x, target = call.receiver, _asked(call)
    elements, filled = product(x.dims), product(dim for dim in target if dim != _HIDDEN)
    unfilled = MismatchError(
        f"{written(x.dims)} holds {elements} elements, which do not fill {written(target)}"
    )
    hidden = target.count(_HIDDEN)
    if hidden > 1 or any(is_negative(dim) and dim != _HIDDEN for dim in target):
        raise unfilled
    if not hidden:
        if cannot_be_equal(elements, filled):
            raise unfilled
        return call.like(x, target)
    rest = _quotient(elements, filled)
    if rest is None:
        raise unfilled
    return call.like(x, tuple(rest if dim == _HIDDEN else dim for dim in target))


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
    order = [normal_axis(axis, x.dims) for axis in axes]
    if sorted(order) != list(range(len(x.dims))):
        raise MismatchError(
            f"axes {axes} must name every axis of shape {written(x.dims)} exactly once", AXIS_RANGE
        )
    return call.like(x, tuple(x.dims[axis] for axis in order))


@of_all_shapes
def transpose(call: Call) -> Answer:
    """Return the result of `transpose`."""
    x = call.receiver
    return call.like(x, (*x.dims[:-2], x.dims[-1], x.dims[-2])) if len(x.dims) > 1 else None


def broadcast_to(call: Call) -> Answer:
    """Return the result of `broadcast_to`, which is the shape that was asked for."""
    x, target = call.receiver, _asked(call)
    added = len(target) - len(x.dims)
    aligned = zip(x.dims, target[added:], strict=False)
    if added < 0 or any(have != ONE and differ(have, want) for have, want in aligned):
        raise MismatchError(f"shape {written(x.dims)} does not broadcast to {written(target)}")
    return call.like(x, target)


@of_all_shapes
def squeeze(call: Call) -> Answer:
    """Return the result of `squeeze`."""
    x = call.receiver
    shape, axes = x.dims, normal_axes(known(call.argument("axis")), x.dims)
    for index in sorted(axes):
        if differ(shape[index], ONE):
            raise MismatchError(
                f"axis {index} of shape {written(shape)} has size {shape[index]}, not 1"
            )
    return call.like(x, tuple(dim for index, dim in enumerate(shape) if index not in axes))


@of_all_shapes
def expand_dims(call: Call) -> Answer:
    """Return the result of `expand_dims`."""
    x = call.receiver
    position = normal_axis(given_axis(call, None), x.dims, extra=1)
    return call.like(x, (*x.dims[:position], ONE, *x.dims[position:]))


@of_all_shapes
def pad(call: Call) -> Answer:
    """Return the result of `pad`: the axes, longer by two widths each."""
    x, pairs = call.receiver, get_proper_type(call.argument("widths"))
    if not isinstance(pairs, TupleType):
        return None
    widths = [known(read_ints(pair)) for pair in pairs.items]
    if len(widths) != len(x.dims):
        raise MismatchError(
            f"{len(widths)} pairs of widths for the axes of shape {written(x.dims)}"
        )
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
        raise MismatchError(f"n must be > 0, got {count}")
    if count is None or count > _PARTS:
        return None
    return call.tuple_of([call.like(x, x.dims)] * count)


def _sections(call: Call, shape: Dims, axis: int) -> list[Size] | None:
    """Return the sizes of the parts; None where they are open."""
    whole, count = shape[axis], read_int(call.argument("sections"))
    if count is not None and count < 1:
        raise MismatchError(f"sections must be > 0, got {count}")
    if count is not None and isinstance(whole, Size):
        if whole.literal is not None and whole.literal % count:
            raise MismatchError(
                f"axis {axis} of shape {written(shape)} does not divide into {count} equal parts"
            )
        part = whole / Size.of(count)
        return [part] * count if part is not None and count <= _PARTS else None
    sizes = tuple([known(read_int(one)) for one in call.items("sections")])
    if whole.literal is not None and sum(sizes) != whole.literal:
        raise MismatchError(
            f"sections {sizes} add up to {sum(sizes)}, axis {axis} of shape {written(shape)} has "
            f"size {whole}"
        )
    return None if min(sizes, default=0) < 0 else [Size.of(one) for one in sizes]


def _quotient(elements: Dim, filled: Dim) -> Dim | None:
    """Return the size that a ``-1`` stands for; None if there is none."""
    if isinstance(elements, Open) or isinstance(filled, Open):
        return ANY
    quotient = elements / filled
    if elements.literal is not None and filled.literal is not None:
        return None if quotient is None or quotient.literal is None else quotient
    # Nothing is certain where dims have names: B * 3 elements fill (2, -1) if B is even.
    return ANY if quotient is None else quotient
