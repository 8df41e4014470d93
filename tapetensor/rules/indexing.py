"""Shapes of what is read and written at positions: slices, None, ``...`` and integer tensors."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeAlias

from tapetensor.errors import AxisError, ShapeError
from tapetensor.rules.broadcasting import broadcast, joined_dim
from tapetensor.rules.dims import (
    ANY,
    ONE,
    Dim,
    Dims,
    Open,
    Size,
    computed,
    differ,
    is_negative,
    product,
    stepped,
    written,
)

Bounds: TypeAlias = tuple[Dim | None, Dim | None, Dim | None]
_ZERO: Final = Size.of(0)


class Kind(Enum):
    """The kinds of elements of an index, by their effect on the axes."""

    POSITION = "an int, which takes an axis away"
    SLICE = "a slice, which keeps it"
    NEW_AXIS = "None"
    REST = "..."
    TENSOR = "an integer tensor, which replaces it"


@dataclass(frozen=True)
class Index:
    """One element of an index."""

    kind: Kind
    # The position, where it is a literal; start, stop and step; the tensor's shape.
    position: int | None = None
    bounds: Bounds = (None, None, None)
    shape: Dims = ()


def getitem(op: str, indices: Sequence[Index], shape: Dims) -> Dims | None:
    """Return the shape that an index reads, by numpy's rules; None where nothing is certain."""
    each = _without_rest(op, indices, shape)
    result: list[Dim] = []
    tensors: list[Dims] = []
    places: list[int] = []
    mixed = any(one.kind is Kind.TENSOR for one in each)
    front = 0
    axis = 0
    for place, one in enumerate(each):
        if one.kind is Kind.NEW_AXIS:
            result.append(ONE)
            continue
        if one.kind is Kind.POSITION:
            _check_position(op, one, axis, shape)
        elif one.kind is Kind.SLICE:
            result.append(_length(op, one.bounds, shape[axis]))
        if one.kind is Kind.TENSOR or (mixed and one.kind is Kind.POSITION):
            if not places:
                front = len(result)
            tensors.append(one.shape)
            places.append(place)
        axis += 1
    if not tensors:
        return tuple(result)
    try:
        joined = broadcast(op, tensors)
    except ShapeError as error:
        # As numpy's own error, it is one of the index.
        raise AxisError(str(error)) from None
    if joined is None:
        return None
    # Tensors side by side put their axes where they stand, others in front.
    adjacent = places[-1] - places[0] == len(places) - 1
    start = front if adjacent else 0
    return (*result[:start], *joined, *result[start:])


def check_mask(op: str, mask: Dims, shape: Dims) -> None:
    """Refuse a mask that is the only index, and has other first axes than what it is read of.

    numpy takes some that have no elements, whatever they are read of; it is asked about those.
    """
    if any(dim.literal == 0 for dim in mask):
        return
    if len(mask) > len(shape) or any(map(differ, mask, shape)):
        raise AxisError(
            f"{op}: a mask of shape {written(mask)} does not fit the first axes of shape "
            f"{written(shape)}"
        )


def _without_rest(op: str, indices: Sequence[Index], shape: Dims) -> list[Index]:
    """Return the index with one element per axis, ``...`` and what is left out filled in."""
    used = sum(one.kind not in (Kind.NEW_AXIS, Kind.REST) for one in indices)
    if used > len(shape):
        raise AxisError(
            f"{op}: {used} indices for shape {written(shape)}, which has {len(shape)} axes"
        )
    whole = [Index(Kind.SLICE)] * (len(shape) - used)
    rests = [place for place, one in enumerate(indices) if one.kind is Kind.REST]
    if len(rests) > 1:
        raise AxisError(f"{op}: an index can only have one ...")
    place = rests[0] if rests else len(indices)
    return [*indices[:place], *whole, *indices[place + 1 :]]


def _check_position(op: str, index: Index, axis: int, shape: Dims) -> None:
    size = shape[axis].literal
    if index.position is None or size is None or -size <= index.position < size:
        return
    raise AxisError(
        f"{op}: index {index.position} is outside axis {axis} of shape {written(shape)}, which has "
        f"size {size}"
    )


def _length(op: str, bounds: Bounds, dim: Dim) -> Dim:
    """Return how many elements a slice reads."""
    start, stop, step = bounds
    if step is not None and step.literal == 0:
        raise ShapeError(f"{op}: the step of a slice cannot be 0")
    turns = start is None and step is not None and step.literal == -1
    if stop is None and (turns or (start in (None, _ZERO) and step in (None, ONE))):
        return dim
    if dim.literal is not None and all(one is None or one.literal is not None for one in bounds):
        literal = slice(*[None if one is None else one.literal for one in bounds])
        first, last, stride = literal.indices(dim.literal)
        # The length of a range would have to fit a machine's word.
        return Size.of(max(0, -((first - last) // stride)))
    end = dim if stop is None else computed(operator.add, dim, stop) if is_negative(stop) else stop
    begin = _ZERO if start is None else start
    return computed(_read_between, dim, begin, end, ONE if step is None else step)


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


def take_along_axis(op: str, shape: Dims, indices: Dims, axis: int) -> Dims | None:
    """Return the shape of what is read at positions of their own along an axis."""
    if len(indices) != len(shape):
        raise ShapeError(
            f"{op}: indices of shape {written(indices)} must have as many axes as the shape "
            f"{written(shape)}; expand_dims() them"
        )
    result = list(indices)
    for place, (mine, its) in enumerate(zip(shape, indices, strict=True)):
        joined = its if place == axis else joined_dim(mine, its)
        if joined is None:
            if differ(mine, its):
                raise ShapeError(
                    f"{op}: shape {written(shape)} and indices {written(indices)} do not broadcast "
                    f"along axis {place}, {mine} != {its}"
                )
            return None
        result[place] = joined
    return tuple(result)


def check_places(op: str, shape: Dims, indices: Dims, values: Dims, axis: int) -> None:
    """Raise ShapeError if places along an axis, or values for them, do not fit."""
    beside = [pair for place, pair in enumerate(zip(shape, indices, strict=False)) if place != axis]
    if (
        len(indices) != len(shape)
        or any(differ(*pair) for pair in beside)
        or len(values) != len(indices)
        or any(map(differ, values, indices))
    ):
        raise ShapeError(
            f"{op}: indices and values have one shape, that of {written(shape)} but for axis "
            f"{axis}; got {written(indices)} and {written(values)}"
        )


def check_segments(op: str, shape: Dims, segments: Dims) -> None:
    """Raise ShapeError if there is not a segment for each slice."""
    if shape == () or len(segments) != 1 or differ(shape[0], segments[0]):
        raise ShapeError(
            f"{op}: operands of shape {written(shape)} need segments of shape "
            f"{written(shape[:1]) if shape else '(M,)'}, not {written(segments)}"
        )


def check_count(op: str, shape: Dims, axis: int, count: Dim) -> None:
    """Raise ShapeError if so many elements are more than surely are along an axis."""
    size = shape[axis].literal
    if count.literal is not None and size is not None and count.literal > size:
        raise ShapeError(
            f"{op}: k={count} is more than axis {axis} of shape {written(shape)} has elements"
        )


def check_single(op: str, shape: Dims) -> None:
    """Raise ShapeError if a shape has not one element, whatever its open dims are.

    A name is taken for more than one: nobody gives a single element a name for how many there are.
    """
    if has_several(shape):
        elements = product(shape)
        held = "more than one element" if isinstance(elements, Open) else f"{elements} elements"
        raise ShapeError(
            f"{op}: a tensor of shape {written(shape)} has {held}, not one; reduce it first "
            "(mean(), sum(), ...), or read numpy()"
        )


def check_truth(op: str, shape: Dims, cure: str = "") -> None:
    """Raise ShapeError if a shape has not one element, of which the truth is asked.

    Args:
        op: what asks for it: "bool" at run time, and what was written where that is known ("if").
        shape: of what is asked.
        cure: what to write instead, if there is something better.
    """
    if has_several(shape):
        cure = cure or (
            "ask for all() or any() of them, or choose by element with tt.where(mask, x, y)"
        )
        raise ShapeError(
            f"{op}: a tensor of shape {written(shape)} has a truth for each element, not one; "
            f"{cure}"
        )


def has_several(shape: Dims) -> bool:
    """Tell whether a shape has more elements than one, or none: a dim that is not 1."""
    return any(isinstance(dim, Size) and dim != ONE for dim in shape)
