"""Reading elements: positions, slices, None, ``...`` and integer tensors."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeAlias

from mypy.nodes import Expression, ListExpr, SliceExpr, TupleExpr
from mypy.types import Instance, Type, get_proper_type

from tapetensor.mypy_plugin.codes import AXIS_RANGE
from tapetensor.mypy_plugin.kinds import is_int
from tapetensor.mypy_plugin.shapes.calls import Answer, Call, MismatchError, of_all_shapes, type_of
from tapetensor.mypy_plugin.shapes.joining import is_integer
from tapetensor.mypy_plugin.shapes.own_names import settled_dims
from tapetensor.mypy_plugin.shapes.reading import (
    UndecidedError,
    all_known,
    is_absent,
    is_plain,
    known,
    read_dim,
    read_int,
    read_tensor,
)
from tapetensor.rules.broadcasting import broadcast
from tapetensor.rules.dims import (
    ANY,
    ONE,
    Dim,
    Dims,
    Size,
    computed,
    is_negative,
    stepped,
    written,
)

_Bounds: TypeAlias = tuple[Dim | None, Dim | None, Dim | None]
_ZERO: Final = Size.of(0)


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
    # The position, where it is a literal; start, stop and step; the tensor's shape.
    position: int | None = None
    bounds: _Bounds = (None, None, None)
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
    read = _read_shape(_without_rest(indices, shape), shape)
    given = [dim for one in indices for dim in one.shape]
    return call.like(x, settled_dims(read, (*shape, *given), call.api))


def _read(call: Call, expression: Expression) -> _Index:
    if isinstance(expression, SliceExpr):
        parts = (expression.begin_index, expression.end_index, expression.stride)
        return _Index(_Kind.SLICE, bounds=_bounds(call, parts))
    found = get_proper_type(type_of(expression, call.api))
    if is_absent(found):
        return _Index(_Kind.NEW_AXIS)
    if read_int(found) is not None or is_int(found):
        return _Index(_Kind.POSITION, position=read_int(found))
    if isinstance(found, Instance):
        if found.type.fullname in ("types.EllipsisType", "builtins.ellipsis"):
            return _Index(_Kind.REST)
        if found.type.fullname == "builtins.slice":
            return _Index(_Kind.SLICE, bounds=(ANY, ANY, ANY))
    if isinstance(expression, ListExpr):
        # A list of truth values is a mask.
        if not all(is_int(type_of(one, call.api)) for one in expression.items):
            raise UndecidedError
        return _Index(_Kind.TENSOR, shape=(Size.of(len(expression.items)),))
    tensor = known(read_tensor(found))
    if not is_plain(tensor.tape) or not is_integer(tensor.dtype):
        raise UndecidedError
    return _Index(_Kind.TENSOR, shape=tensor.dims)


def _bounds(call: Call, parts: tuple[Expression | None, ...]) -> _Bounds:
    values: list[Dim | None] = []
    for part in parts:
        found: Type | None = None if part is None else type_of(part, call.api)
        values.append(None if found is None or is_absent(found) else _bound(found))
    start, stop, step = values
    return start, stop, step


def _bound(found: Type) -> Dim:
    dim = read_dim(found)
    return ANY if dim is None else dim


def _without_rest(indices: list[_Index], shape: Dims) -> list[_Index]:
    """Return the index with one element per axis, ``...`` and what is left out filled in."""
    used = sum(one.kind not in (_Kind.NEW_AXIS, _Kind.REST) for one in indices)
    if used > len(shape):
        raise MismatchError(
            f"{used} indices for shape {written(shape)}, which has {len(shape)} axes", AXIS_RANGE
        )
    whole = [_Index(_Kind.SLICE)] * (len(shape) - used)
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
    joined = known(broadcast("getitem", tensors))
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


def _length(bounds: _Bounds, dim: Dim) -> Dim:
    """Return how many elements a slice reads."""
    start, stop, step = bounds
    if step is not None and step.literal == 0:
        raise MismatchError("the step of a slice cannot be 0")
    if stop is None and ((start in (None, _ZERO) and step in (None, ONE)) or _turns(bounds)):
        return dim
    numbers = all_known([None if one is None else one.literal for one in bounds if one is not None])
    if dim.literal is not None and numbers is not None:
        literal = slice(*[None if one is None else one.literal for one in bounds])
        first, last, stride = literal.indices(dim.literal)
        # The length of a range would have to fit a machine's word.
        return Size.of(max(0, -((first - last) // stride)))
    end = dim if stop is None else computed(operator.add, dim, stop) if is_negative(stop) else stop
    begin = _ZERO if start is None else start
    return computed(_read_between, dim, begin, end, ONE if step is None else step)


def _turns(bounds: _Bounds) -> bool:
    return bounds[0] is None and bounds[2] is not None and bounds[2].literal == -1


def _read_between(dim: Size, start: Size, stop: Size, step: Size) -> Dim:
    """Return how many elements a slice of an axis reads, of which something has a name.

    It is taken for granted that the axis is as long as what is left out at its ends. A stop that
    is counted from the front may lie behind the axis.
    """
    if is_negative(start) or not (dim - stop).is_sum:
        return ANY
    rest = step.literal
    if rest is None or rest < 1:
        return ANY
    if rest == 1:
        return stop - start
    return ANY if start.literal is None else stepped(stop, Size.of(rest - 1) - start, step)
