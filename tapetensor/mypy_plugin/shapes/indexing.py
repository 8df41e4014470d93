"""Reading elements: positions, slices, None, ``...`` and integer tensors."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from mypy.nodes import Expression, SliceExpr, TupleExpr
from mypy.types import Instance, Type, get_proper_type

from tapetensor.mypy_plugin.codes import AXIS_RANGE
from tapetensor.mypy_plugin.kinds import is_int
from tapetensor.mypy_plugin.shapes.broadcasting import broadcast
from tapetensor.mypy_plugin.shapes.calls import Answer, Call, MismatchError, of_all_shapes, type_of
from tapetensor.mypy_plugin.shapes.dims import ANY, ONE, Dim, Dims, Size, written
from tapetensor.mypy_plugin.shapes.joining import is_integer
from tapetensor.mypy_plugin.shapes.reading import (
    UndecidedError,
    is_none,
    is_plain,
    known,
    read_int,
    read_tensor,
)


class _Kind(Enum):
    POSITION = "an int, which takes an axis away"
    SLICE = "a slice, which keeps it"
    NEW_AXIS = "None"
    REST = "..."
    TENSOR = "an integer tensor, which replaces it"


@dataclass(frozen=True)
class _Index:
    """One element of an index."""

    kind: _Kind
    # The position, where it is a literal; the bounds, where all are literals; the tensor's shape.
    position: int | None = None
    bounds: slice | None = None
    shape: Dims = ()


@of_all_shapes
def getitem(call: Call) -> Answer:
    """Return the result of ``x[index]``."""
    x, expression = call.receiver, known(call.expression(0))
    # Read, so that the signature takes it.
    call.argument(0)
    items = expression.items if isinstance(expression, TupleExpr) else [expression]
    shape = x.dims
    indices = [_read(call, item) for item in items]
    return call.like(x, _read_shape(_without_rest(indices, shape), shape))


def _read(call: Call, expression: Expression) -> _Index:
    if isinstance(expression, SliceExpr):
        parts = (expression.begin_index, expression.end_index, expression.stride)
        return _Index(_Kind.SLICE, bounds=_bounds(call, parts))
    found = get_proper_type(type_of(expression, call.api))
    if is_none(found):
        return _Index(_Kind.NEW_AXIS)
    if read_int(found) is not None or is_int(found):
        return _Index(_Kind.POSITION, position=read_int(found))
    if isinstance(found, Instance):
        if found.type.fullname in ("types.EllipsisType", "builtins.ellipsis"):
            return _Index(_Kind.REST)
        if found.type.fullname == "builtins.slice":
            return _Index(_Kind.SLICE)
    tensor = known(read_tensor(found))
    if not is_plain(tensor.tape) or not is_integer(tensor.dtype):
        raise UndecidedError
    return _Index(_Kind.TENSOR, shape=tensor.dims)


def _bounds(call: Call, parts: tuple[Expression | None, ...]) -> slice | None:
    values: list[int | None] = []
    for part in parts:
        found: Type | None = None if part is None else type_of(part, call.api)
        value = read_int(found)
        if found is not None and not is_none(found) and value is None:
            return None
        values.append(value)
    return slice(*values)


def _without_rest(indices: list[_Index], shape: Dims) -> list[_Index]:
    """Return the index with one element per axis, ``...`` and what is left out filled in."""
    used = sum(one.kind not in (_Kind.NEW_AXIS, _Kind.REST) for one in indices)
    if used > len(shape):
        raise MismatchError(
            f"{used} indices for shape {written(shape)}, which has {len(shape)} axes", AXIS_RANGE
        )
    whole = [_Index(_Kind.SLICE, bounds=slice(None))] * (len(shape) - used)
    rests = [place for place, one in enumerate(indices) if one.kind is _Kind.REST]
    if len(rests) > 1:
        raise MismatchError("an index can only have one ...", AXIS_RANGE)
    place = rests[0] if rests else len(indices)
    return [*indices[:place], *whole, *indices[place + 1 :]]


def _read_shape(indices: list[_Index], shape: Dims) -> Dims:
    """Return the shape that an index reads, by numpy's rules."""
    result: list[Dim] = []
    tensors: list[Dims] = []
    places: list[int] = []
    mixed = any(one.kind is _Kind.TENSOR for one in indices)
    front = 0
    axis = 0
    for place, one in enumerate(indices):
        if one.kind is _Kind.NEW_AXIS:
            result.append(ONE)
            continue
        if one.kind is _Kind.POSITION:
            _check_position(one, axis, shape)
        elif one.kind is _Kind.SLICE:
            result.append(_length(one.bounds, shape[axis]))
        if one.kind is _Kind.TENSOR or (mixed and one.kind is _Kind.POSITION):
            if not places:
                front = len(result)
            tensors.append(one.shape)
            places.append(place)
        axis += 1
    if not tensors:
        return tuple(result)
    joined = known(broadcast(tensors))
    # Tensors side by side put their axes where they stand, others in front.
    adjacent = places[-1] - places[0] == len(places) - 1
    start = front if adjacent else 0
    return (*result[:start], *joined, *result[start:])


def _check_position(index: _Index, axis: int, shape: Dims) -> None:
    size = shape[axis].literal
    if index.position is None or size is None or -size <= index.position < size:
        return
    raise MismatchError(
        f"index {index.position} is outside axis {axis} of shape {written(shape)}, which has size "
        f"{size}",
        AXIS_RANGE,
    )


def _length(bounds: slice | None, dim: Dim) -> Dim:
    """Return how many elements a slice reads."""
    if bounds is None:
        return ANY
    if bounds.step == 0:
        raise MismatchError("the step of a slice cannot be 0")
    if bounds in (slice(None), slice(0, None), slice(None, None, 1), slice(None, None, -1)):
        return dim
    if dim.literal is None:
        return ANY
    start, stop, step = bounds.indices(dim.literal)
    # The length of a range would have to fit a machine's word.
    return Size.of(max(0, -((start - stop) // step)))
