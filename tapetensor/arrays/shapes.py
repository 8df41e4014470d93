"""Shapes as types (`Rank0` to `Rank6`) and as values: axes and sizes, checked."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import SupportsIndex

from typing_extensions import TypeAliasType, TypeVar

from tapetensor.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    AxisError,
    ShapeError,
)

_A = TypeVar("_A", bound=int)
_B = TypeVar("_B", bound=int)
_C = TypeVar("_C", bound=int)
_D = TypeVar("_D", bound=int)
_E = TypeVar("_E", bound=int)
_F = TypeVar("_F", bound=int)

Rank0 = TypeAliasType("Rank0", tuple[()])
Rank1 = TypeAliasType("Rank1", tuple[_A], type_params=(_A,))
Rank2 = TypeAliasType("Rank2", tuple[_A, _B], type_params=(_A, _B))
Rank3 = TypeAliasType("Rank3", tuple[_A, _B, _C], type_params=(_A, _B, _C))
Rank4 = TypeAliasType("Rank4", tuple[_A, _B, _C, _D], type_params=(_A, _B, _C, _D))
Rank5 = TypeAliasType("Rank5", tuple[_A, _B, _C, _D, _E], type_params=(_A, _B, _C, _D, _E))
Rank6 = TypeAliasType("Rank6", tuple[_A, _B, _C, _D, _E, _F], type_params=(_A, _B, _C, _D, _E, _F))


def as_int(op: str, name: str, value: object) -> int:
    """Return `value` as a plain int.

    Raises:
        ArgumentTypeError: if it is not an integer.
    """
    if isinstance(value, SupportsIndex) and not isinstance(value, bool):
        try:
            return operator.index(value)
        except TypeError:
            pass
    raise ArgumentTypeError(f"{op}: {name} must be an int, got {value!r}")


def as_size(op: str, name: str, value: object) -> int:
    """Return `value` as a non-negative int.

    Raises:
        ArgumentTypeError: if it is not an integer.
        ArgumentValueError: if it is negative.
    """
    size = as_int(op, name, value)
    if size < 0:
        raise ArgumentValueError(f"{op}: {name} must not be negative, got {size}")
    return size


def as_shape(op: str, shape: object) -> tuple[int, ...]:
    """Return `shape` as a tuple of non-negative ints.

    Raises:
        ArgumentTypeError: if it is not a tuple of integers.
        ArgumentValueError: if a dim is negative.
    """
    return tuple(as_size(op, "a dim", dim) for dim in _as_tuple(op, shape))


def as_target_shape(op: str, shape: object, size: int, source: tuple[int, ...]) -> tuple[int, ...]:
    """Return `shape`, which may hold one ``-1``, with the ``-1`` worked out for `size` elements.

    Raises:
        ShapeError: if `size` elements do not fill it.
    """
    dims = tuple(as_int(op, "a dim", dim) for dim in _as_tuple(op, shape))
    known = 1
    for dim in dims:
        known *= dim if dim >= 0 else 1
    if dims.count(-1) == 1 and min(dims) == -1 and known > 0 and size % known == 0:
        return tuple(size // known if dim == -1 else dim for dim in dims)
    if min(dims, default=0) >= 0 and known == size:
        return dims
    raise ShapeError(
        f"{op}: {source} holds {size} elements, which do not fill {dims}; "
        "the product of the dims must stay the same, and at most one of them may be -1"
    )


def broadcasts_to(source: tuple[int, ...], target: tuple[int, ...]) -> bool:
    """Tell whether numpy repeats an array of shape `source` to `target`."""
    aligned = target[len(target) - len(source) :] if len(source) <= len(target) else ()
    return len(aligned) == len(source) and all(
        have in (want, 1) for have, want in zip(source, aligned, strict=True)
    )


def normalize_axis(op: str, axis: object, shape: tuple[int, ...], extra: int = 0) -> int:
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
        raise AxisError(f"{op}: axis {index} is outside the shape {shape}; allowed: {allowed}")
    return index % rank


def normalize_axes(op: str, axis: object, shape: tuple[int, ...]) -> tuple[int, ...]:
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
        raise AxisError(f"{op}: axes {axis} name one axis of {shape} twice")
    return tuple(sorted(axes))


def _as_tuple(op: str, shape: object) -> tuple[object, ...]:
    if isinstance(shape, tuple | list):
        return tuple(shape)
    if isinstance(shape, Iterable) and not isinstance(shape, str):
        return tuple(shape)
    raise ArgumentTypeError(f"{op}: a shape is a tuple of ints, got {shape!r}; write (5, 3), say")
