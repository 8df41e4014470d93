"""Shapes of matrices that are multiplied or solved, and of what subscripts spell."""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Sequence
from typing import TypeVar

from tapetensor.errors import ArgumentValueError, ShapeError
from tapetensor.rules.broadcasting import broadcast, joined_dim
from tapetensor.rules.dims import Dim, Dims, differ, unified, written

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
