"""Shapes and axes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet

from tapetensor.arguments.numbers import as_int, as_size
from tapetensor.errors import ArgumentTypeError, AxisError, TapeTensorError, cut_traceback
from tapetensor.rules.dims import Dim, sized, written
from tapetensor.rules.rearranging import reshape
from tapetensor.rules.refusals import refusal


def as_shape(op: str, shape: object) -> tuple[int, ...]:
    """Return `shape` as a tuple of non-negative ints.

    Raises:
        ArgumentTypeError: if it is not a tuple of integers.
        ArgumentValueError: if a dim is negative.
    """
    try:
        return tuple(as_size(op, "a dim", dim) for dim in _as_tuple(op, shape))
    except TapeTensorError as error:
        cut_traceback(error)
        raise


def as_target_shape(op: str, shape: object, size: int, source: tuple[int, ...]) -> tuple[int, ...]:
    """Return `shape`, which may hold one ``-1``, with the ``-1`` worked out for `size` elements.

    Raises:
        ShapeError: if `size` elements do not fill it.
    """
    dims = tuple(as_int(op, "a dim", dim) for dim in _as_tuple(op, shape))
    known = math.prod([dim for dim in dims if dim >= 0])
    if dims.count(-1) == 1 and min(dims) == -1 and known > 0 and size % known == 0:
        return tuple(size // known if dim == -1 else dim for dim in dims)
    if min(dims, default=0) >= 0 and known == size:
        return dims
    raise refusal(lambda: reshape(op, sized(source), sized(dims)))


def broadcasts_to(source: tuple[int, ...], target: tuple[int, ...]) -> bool:
    """Tell whether numpy repeats an array of shape `source` to `target`."""
    aligned = target[len(target) - len(source) :] if len(source) <= len(target) else ()
    return len(aligned) == len(source) and all(
        have in (want, 1) for have, want in zip(source, aligned, strict=True)
    )


def normalize_axis(op: str, axis: object, shape: Sequence[Dim | int], extra: int = 0) -> int:
    """Return `axis` counted from the front.

    Args:
        op: the name for the message.
        axis: an int; negative counts from the back.
        shape: the shape that it indexes.
        extra: how many axes the result has more than `shape` (1 for a new axis).

    Raises:
        ArgumentTypeError: if it is not an integer.
        AxisError: if it lies outside the shape.
    """
    index = as_int(op, "axis", axis)
    rank = len(shape) + extra
    if not -rank <= index < rank:
        allowed = f"{-rank} to {rank - 1}" if rank else "none, a 0-d tensor has no axes"
        raise AxisError(
            f"{op}: axis {index} is outside the shape {written(shape)}; allowed: {allowed}"
        )
    return index % rank


def normalize_axes(op: str, axis: object, shape: Sequence[Dim | int]) -> tuple[int, ...]:
    """Return the axes that `axis` names (None names all), counted from the front, in order.

    Raises:
        ArgumentTypeError: if it is not None, an int or a tuple of ints.
        AxisError: if one lies outside the shape or is named twice.
    """
    if axis is None:
        return tuple(range(len(shape)))
    if not isinstance(axis, tuple):
        return (normalize_axis(op, axis, shape),)
    axes = tuple(normalize_axis(op, one, shape) for one in axis)
    if len(set(axes)) != len(axes):
        raise AxisError(f"{op}: axes {axis} name one axis of {written(shape)} twice")
    return tuple(sorted(axes))


# What can be iterated, and is no row of sizes: some have no order.
_NO_SHAPES = (str, bytes, bytearray, memoryview, AbstractSet, Mapping)


def _as_tuple(op: str, shape: object) -> tuple[object, ...]:
    # What is usual first, which is found in a fraction of the time.
    if isinstance(shape, tuple | list | Iterable) and not isinstance(shape, _NO_SHAPES):
        return tuple(shape)
    raise ArgumentTypeError(f"{op}: a shape is a tuple of ints, got {shape!r}; write (5, 3), say")
