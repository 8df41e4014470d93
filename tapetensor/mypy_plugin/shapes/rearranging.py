"""The same elements under other axes."""

from __future__ import annotations

from mypy.nodes import ListExpr
from mypy.types import TupleType

from tapetensor.mypy_plugin.shapes.axes import normal_axes, normal_axis
from tapetensor.mypy_plugin.shapes.calls import (
    UNSURE,
    Answer,
    Call,
    MismatchError,
    OutOfRangeError,
    of_all_shapes,
)
from tapetensor.mypy_plugin.shapes.dims import (
    ANY,
    ONE,
    Dim,
    Dims,
    Open,
    Size,
    cannot_be_equal,
    differ,
    is_negative,
    product,
    written,
)
from tapetensor.mypy_plugin.shapes.reading import read_int, read_ints, read_shape
from tapetensor.mypy_plugin.shapes.sizes import sharpened

_HIDDEN = Size.of(-1)
# Nobody names more parts than that one by one.
_PARTS = 64


def reshape(call: Call) -> Answer:
    """Return the result of `reshape`, a ``-1`` worked out."""
    x, asked = call.receiver, call.argument("shape")
    target = None if asked is None else read_shape(asked)
    if target is not None:
        target = sharpened(target, call.argument_expression("shape"), call.api)
    if x is None or x.shape is None or target is None:
        return UNSURE
    elements, known = product(x.shape), product(dim for dim in target if dim != _HIDDEN)
    hidden = target.count(_HIDDEN)
    if hidden > 1 or any(is_negative(dim) and dim != _HIDDEN for dim in target):
        raise _unfilled(x.shape, elements, target)
    if not hidden:
        if _differ(elements, known):
            raise _unfilled(x.shape, elements, target)
        return call.like(x, target)
    rest = _quotient(elements, known)
    if rest is None:
        raise _unfilled(x.shape, elements, target)
    return call.like(x, tuple(rest if dim == _HIDDEN else dim for dim in target))


def flatten(call: Call) -> Answer:
    """Return the result of `flatten`."""
    x = call.receiver
    return UNSURE if x is None or x.shape is None else call.like(x, (product(x.shape),))


@of_all_shapes
def permute_dims(call: Call) -> Answer:
    """Return the result of `permute_dims`."""
    x, axes = call.receiver, read_ints(call.argument("axes"))
    if x is None or x.shape is None or axes is None:
        return UNSURE
    order = [normal_axis("permute_dims", axis, x.shape) for axis in axes]
    if sorted(order) != list(range(len(x.shape))):
        raise OutOfRangeError(
            f"permute_dims: axes {axes} must name every axis of shape {written(x.shape)} "
            "exactly once"
        )
    return call.like(x, tuple(x.shape[axis] for axis in order))


@of_all_shapes
def transpose(call: Call) -> Answer:
    """Return the result of `transpose`."""
    x = call.receiver
    if x is None or x.shape is None or len(x.shape) < 2:
        return UNSURE
    return call.like(x, (*x.shape[:-2], x.shape[-1], x.shape[-2]))


def broadcast_to(call: Call) -> Answer:
    """Return the result of `broadcast_to`, which is the shape that was asked for."""
    x, asked = call.receiver, call.argument("shape")
    target = None if asked is None else read_shape(asked)
    if target is not None:
        target = sharpened(target, call.argument_expression("shape"), call.api)
    if x is None or x.shape is None or target is None:
        return UNSURE
    added = len(target) - len(x.shape)
    refused = MismatchError(
        f"broadcast_to: shape {written(x.shape)} does not broadcast to {written(target)}"
    )
    if added < 0:
        raise refused
    for have, want in zip(x.shape, target[added:], strict=True):
        if have != ONE and differ(have, want):
            raise refused
    return call.like(x, target)


@of_all_shapes
def squeeze(call: Call) -> Answer:
    """Return the result of `squeeze`."""
    x, axis = call.receiver, call.argument("axis")
    if x is None or x.shape is None or axis is None:
        return UNSURE
    one, several = read_int(axis), read_ints(axis)
    if one is not None:
        axes = {normal_axis("squeeze", one, x.shape)}
    elif several is not None:
        axes = normal_axes("squeeze", several, x.shape)
    else:
        return UNSURE
    for index in sorted(axes):
        dim = x.shape[index]
        if not isinstance(dim, Open) and dim != ONE:
            raise MismatchError(
                f"squeeze: axis {index} of shape {written(x.shape)} has size {dim}, not 1"
            )
    return call.like(x, tuple(dim for index, dim in enumerate(x.shape) if index not in axes))


@of_all_shapes
def expand_dims(call: Call) -> Answer:
    """Return the result of `expand_dims`."""
    x, axis = call.receiver, read_int(call.argument("axis"))
    if x is None or x.shape is None or axis is None:
        return UNSURE
    position = normal_axis("expand_dims", axis, x.shape, extra=1)
    return call.like(x, (*x.shape[:position], ONE, *x.shape[position:]))


def roll(call: Call) -> Answer:
    """Return the result of `roll`, whose axis has to be there."""
    x, axis = call.receiver, read_int(call.argument("axis"))
    # Of a 0-d tensor mypy has complained already: no overload takes it.
    if x is None or not x.shape or axis is None:
        return UNSURE
    normal_axis("roll", axis, x.shape)
    return call.like(x, x.shape)


def split(call: Call) -> Answer:
    """Return the result of `split`: as many parts as there are."""
    x, sections, axis = call.receiver, call.argument("sections"), call.argument("axis")
    number = 0 if axis is None else read_int(axis)
    # Of a 0-d tensor mypy has complained already: no overload takes it.
    if x is None or not x.shape or number is None:
        return UNSURE
    position = normal_axis("split", number, x.shape)
    whole = x.shape[position]
    sizes = _sections(read_int(sections), _listed(call), whole, position, x.shape)
    if not sizes:
        return UNSURE
    parts = [call.like(x, (*x.shape[:position], size, *x.shape[position + 1 :])) for size in sizes]
    return TupleType(parts, call.api.named_generic_type("builtins.tuple", [parts[0]]))


def _listed(call: Call) -> tuple[int, ...] | None:
    """Return the sizes of the parts that are given in a list or a tuple."""
    expression = call.expression(0)
    if not isinstance(expression, ListExpr):
        return read_ints(call.argument("sections"))
    sizes = [read_int(call.type_of(item)) for item in expression.items]
    return None if None in sizes else tuple(size for size in sizes if size is not None)


def _sections(
    count: int | None, sizes: tuple[int, ...] | None, whole: Dim, position: int, shape: Dims
) -> list[Size] | None:
    """Return the sizes of the parts; None where they are open."""
    size = None if isinstance(whole, Open) else whole.literal
    if count is not None and count < 1:
        raise MismatchError(f"split: sections must be > 0, got {count}")
    if count is not None and not isinstance(whole, Open):
        if size is not None and size % count:
            raise MismatchError(
                f"split: axis {position} of shape {written(shape)} does not divide into {count} "
                "equal parts"
            )
        part = whole / Size.of(count)
        return [part] * count if part is not None and count <= _PARTS else None
    if sizes is not None and size is not None and sum(sizes) != size:
        raise MismatchError(
            f"split: sections {sizes} add up to {sum(sizes)}, axis {position} of shape "
            f"{written(shape)} has size {size}"
        )
    if sizes is None or min(sizes, default=0) < 0:
        return None
    return [Size.of(one) for one in sizes]


def _differ(elements: Dim, known: Dim) -> bool:
    if isinstance(elements, Open) or isinstance(known, Open):
        return False
    return cannot_be_equal(elements, known)


def _quotient(elements: Dim, known: Dim) -> Dim | None:
    """Return the size that a ``-1`` stands for; None if there is none."""
    if isinstance(elements, Open) or isinstance(known, Open):
        return ANY
    quotient = elements / known
    if elements.literal is not None and known.literal is not None:
        return None if quotient is None or quotient.literal is None else quotient
    # Of named dims nothing is certain: B * 3 elements fill (2, -1) where B is even.
    return ANY if quotient is None else quotient


def _unfilled(shape: Dims, elements: Dim, target: Dims) -> MismatchError:
    return MismatchError(
        f"reshape: {written(shape)} holds {elements} elements, which do not fill {written(target)}"
    )
