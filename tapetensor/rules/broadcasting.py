"""Shapes that broadcast by numpy's rule."""

from __future__ import annotations

from collections.abc import Sequence

from tapetensor.errors import ShapeError
from tapetensor.rules.dims import ANY, INT, ONE, Dim, Dims, Size, differ, written


def broadcast(op: str, shapes: Sequence[Dims], of: str = "") -> Dims | None:
    """Return the shape to which shapes broadcast; None where nothing is certain.

    Args:
        shapes: one or more.
        of: what a message says before it names the shapes.
    """
    rank = max(len(shape) for shape in shapes)
    result: list[Dim] = [ONE] * rank
    for shape in shapes:
        for axis, dim in enumerate(shape, rank - len(shape)):
            joined = joined_dim(result[axis], dim)
            if joined is None:
                if differ(result[axis], dim):
                    raise ShapeError(
                        f"{op}: {of}shapes {' and '.join(map(written, shapes))} do not broadcast, "
                        f"{result[axis]} != {dim}; reshape or broadcast_to one of them"
                    )
                return None
            result[axis] = joined
    return tuple(result)


def check_ranks(op: str, shapes: Sequence[Dims]) -> None:
    """Raise ShapeError if operands of different rank meet each of a dim with each by accident.

    numpy aligns the last axes, so ``(B, 1) - (B,)`` is ``(B, B)``: a dim of the longer shape stands
    where the shorter one is repeated, and once more where an axis of 1 of the longer shape meets
    it. A bias ``(B, K) + (K,)`` repeats no dim, and neither do operands of one rank, by which a
    program says that it means every pair: ``(B, 1) - (1, B)``.
    """
    for longer in shapes:
        for shorter in shapes:
            axis = _met_by_accident(longer, shorter)
            if axis is not None:
                raise ShapeError(
                    f"{op}: shapes {' and '.join(map(written, shapes))} broadcast to "
                    f"{written(broadcast(op, shapes) or ())}, each of {longer[axis]} with each; "
                    f"drop the axis of 1 of {written(longer)} with squeeze(), or give "
                    f"{written(shorter)} one with expand_dims(-1); expand_dims(0) says that every "
                    "pair is meant"
                )


def _met_by_accident(longer: Dims, shorter: Dims) -> int | None:
    """Return the axis of the longer shape whose dim the shorter one has beside it; None if none."""
    ahead = len(longer) - len(shorter)
    if ahead <= 0:
        return None
    met = [dim for dim, one in zip(shorter, longer[ahead:], strict=True) if one == ONE != dim]
    repeated: Dims = (*[ONE] * ahead, *shorter)
    for axis, dim in enumerate(longer):
        if dim != ONE and repeated[axis] == ONE and isinstance(dim, Size) and dim in met:
            return axis
    return None


def joined_dim(lhs: Dim, rhs: Dim) -> Dim | None:
    """Return the dim to which two broadcast; None if they do not, or nothing is certain."""
    if lhs == rhs or rhs == ONE:
        return lhs
    if lhs == ONE:
        return rhs
    if isinstance(lhs, Size) and isinstance(rhs, Size):
        return None
    if ANY in (lhs, rhs) and INT in (lhs, rhs):
        return ANY
    # An open dim is 1 or that of the other operand: where the other is a literal, it is that.
    known, unknown = (lhs, rhs) if isinstance(lhs, Size) else (rhs, lhs)
    assert isinstance(known, Size)
    if known.literal is not None:
        return known
    return ANY if unknown is ANY else None


def broadcast_to(op: str, shape: Dims, target: Dims) -> Dims:
    """Return the shape that was asked for."""
    if stays_apart(shape, target):
        raise ShapeError(
            f"{op}: shape {written(shape)} does not broadcast to {written(target)}; aligned at the "
            "last axis every dim must be equal or 1"
        )
    return target


def check_scanned(op: str, x: Sequence[Dim | int]) -> None:
    """Raise ShapeError if what is scanned has no axes of steps and channels."""
    if len(x) < 2:
        raise ShapeError(
            f"{op}: x must have shape (..., length, channels), got {written(x)}; expand_dims() "
            "adds an axis"
        )


def check_coefficient(op: str, name: str, shape: Dims, x: Dims) -> None:
    """Raise ShapeError if a coefficient of a scan surely does not broadcast to `x`."""
    if stays_apart(shape, x):
        raise ShapeError(
            f"{op}: {name} of shape {written(shape)} does not broadcast to the shape {written(x)} "
            "of x; give it that shape, or (channels,)"
        )


def stays_apart(shape: Dims, target: Dims) -> bool:
    """Tell whether a shape is surely not repeated to another one."""
    aligned = zip(reversed(shape), reversed(target), strict=False)
    return len(shape) > len(target) or any(one != ONE and differ(one, to) for one, to in aligned)
