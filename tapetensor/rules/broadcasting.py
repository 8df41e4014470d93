"""Shapes that broadcast, of products of matrices and of solutions, and of what subscripts spell."""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Sequence
from typing import TypeVar

from tapetensor.errors import ArgumentValueError, ShapeError
from tapetensor.rules.dims import ANY, INT, ONE, Dim, Dims, Size, differ, unified, written

AnyDim = TypeVar("AnyDim", bound=Dim | int)

_GROUP = re.compile(r"[A-Za-z]*(\.\.\.)?[A-Za-z]*")


def matmul(op: str, lhs: Dims, rhs: Dims) -> Dims | None:
    """Return the shape of a product; None where that of the leading axes is not certain."""
    both = f"{written(lhs)} @ {written(rhs)}"
    if not lhs or not rhs:
        raise ShapeError(f"{op}: {both}: a 0-d tensor has no axis to contract; multiply with *")
    inner = rhs[-2] if len(rhs) > 1 else rhs[0]
    if differ(lhs[-1], inner):
        raise ShapeError(
            f"{op}: inner dims differ: {both}, {lhs[-1]} != {inner}; transpose() swaps the last "
            "two axes"
        )
    rows, columns = lhs[-2:-1], rhs[-1:] if len(rhs) > 1 else ()
    leading = broadcast(op, [lhs[:-2], rhs[:-2]], of=f"the leading axes of {both}: ")
    return None if leading is None else (*leading, *rows, *columns)


def einsum(
    op: str,
    subscripts: str,
    shapes: Sequence[tuple[AnyDim, ...]],
    shared: Callable[[AnyDim, AnyDim, bool], AnyDim | None],
) -> tuple[list[str], str, dict[str, AnyDim]]:
    """Return one string of letters per operand, that of the output, and the dim of each letter.

    Args:
        subscripts: a group of letters per operand.
        shapes: those of the operands.
        shared: the dim of a letter that occurs twice, by both and by whether they broadcast; None
            if there is no such one. The run time, which has numbers alone, asks at every call.
    """
    left, arrow, output = subscripts.replace(" ", "").partition("->")
    groups = left.split(",")
    if any(_GROUP.fullmatch(group) is None for group in (*groups, output)):
        raise ArgumentValueError(
            f"{op}: cannot read {subscripts!r}; write groups of letters, 'ij,jk->ik'"
        )
    if len(groups) != len(shapes):
        raise ShapeError(
            f"{op}: {subscripts!r} names {len(groups)} operands, {len(shapes)} were given"
        )
    letters = [one for one in subscripts if one.isalpha()]
    spare = [letter for letter in string.ascii_letters if letter not in letters]
    named = [len(group.replace("...", "")) for group in groups]
    operands = list(zip(groups, shapes, named, strict=True))
    over = [len(shape) - count for group, shape, count in operands if "..." in group]
    extra = max(over, default=0)
    if not arrow:
        once = sorted(letter for letter in set(letters) if letters.count(letter) == 1)
        output = ("..." if extra else "") + "".join(once)
    inputs: list[str] = []
    dims: dict[str, AnyDim] = {}
    for group, shape, count in operands:
        own = len(shape) - count if "..." in group else 0
        expanded = group.replace("...", "".join(spare[max(extra - own, 0) : max(extra, 0)]))
        if own < 0 or len(expanded) != len(shape):
            raise ShapeError(
                f"{op}: {group!r} in {subscripts!r} does not fit shape {written(shape)}"
            )
        for letter, dim in zip(expanded, shape, strict=True):
            joined = shared(dims.get(letter, dim), dim, letter in spare)
            if joined is None:
                name = "..." if letter in spare else letter
                raise ShapeError(
                    f"{op}: {name!r} in {subscripts!r} has sizes {dims[letter]} and {dim} in "
                    f"shapes {' and '.join(map(written, shapes))}"
                )
            dims[letter] = joined
        inputs.append(expanded)
    output = output.replace("...", "".join(spare[: max(extra, 0)]))
    if len(set(output)) != len(output) or not set(output) <= set(dims):
        raise ArgumentValueError(
            f"{op}: the output of {subscripts!r} must name letters of the operands, each once"
        )
    return inputs, output, dims


def shared_dim(known: Dim, dim: Dim, broadcasts: bool) -> Dim | None:
    """Return the dim of a letter that occurs twice; None if it cannot have both."""
    joined = joined_dim(known, dim) if broadcasts else None
    if joined is not None:
        return joined
    return None if differ(known, dim) else unified(known, dim)


def side_of_squares(op: str, shape: Dims) -> Dim:
    """Return the size of square matrices."""
    if len(shape) < 2 or differ(shape[-1], shape[-2]):
        raise ShapeError(f"{op}: needs square matrices (*Ds, N, N), the shape is {written(shape)}")
    return unified(shape[-1], shape[-2])


def check_matrices(op: str, shape: Sequence[Dim | int]) -> None:
    """Raise ShapeError if there are no two axes."""
    if len(shape) < 2:
        raise ShapeError(f"{op}: needs matrices (*Ds, M, N), the shape is {written(shape)}")


def solve(op: str, shape: Dims, other: Dims) -> None:
    """Refuse matrices that are not square, and right-hand sides that do not fit them."""
    size = side_of_squares(op, shape)
    is_vector = len(shape) == 2 and len(other) == 1
    if len(other) < 2 - is_vector or differ(size, other[-1 if is_vector else -2]):
        raise ShapeError(
            f"{op}: matrices of shape {written(shape)} need right-hand sides of shape (N,) or "
            f"(*Ds, N, K) with N = {size}, not {written(other)}"
        )
    if not is_vector:
        both = f"{written(shape)} and {written(other)}"
        broadcast(op, [shape[:-2], other[:-2]], of=f"the leading axes of {both}: ")


def broadcast(op: str, shapes: Sequence[Dims], of: str = "") -> Dims | None:
    """Return the shape to which shapes broadcast; None where nothing is certain.

    A message says `of` before it names the shapes.
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
