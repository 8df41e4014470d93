"""Matrix products and einsum."""

from __future__ import annotations

import re
import string

from mypy.types import Type

from tapetensor.mypy_plugin.shapes.broadcasting import broadcast, joined_dim
from tapetensor.mypy_plugin.shapes.calls import OPEN, UNSURE, Answer, Call, MismatchError
from tapetensor.mypy_plugin.shapes.dims import Dim, Dims, differ, unified, written
from tapetensor.mypy_plugin.shapes.reading import (
    common_dtype,
    merged_tape,
    read_str,
    read_tensor,
)

_GROUP = re.compile(r"[A-Za-z]*(\.\.\.)?[A-Za-z]*")


def matmul(call: Call) -> Answer:
    """Return the result of ``@`` for operands of all ranks."""
    lhs, rhs = call.receiver, read_tensor(call.position(0))
    if lhs is None or rhs is None or lhs.shape is None or rhs.shape is None:
        # Plain typing knows the columns of what a matrix gives, and nothing else of an open shape.
        by_matrix = rhs is not None and rhs.shape is not None and len(rhs.shape) == 2
        return OPEN if call.fits_all and not by_matrix else UNSURE
    tape, dtype = merged_tape(lhs.tape, rhs.tape), common_dtype(lhs.dtype, rhs.dtype)
    if tape is None or dtype is None:
        return UNSURE
    shape = _product(lhs.shape, rhs.shape)
    return UNSURE if shape is None else call.tensor(shape, tape, dtype)


def rmatmul(call: Call) -> Answer:
    """Explain a product whose left operand has no axes, which no overload takes."""
    lhs, rhs = read_tensor(call.position(0)), call.receiver
    if lhs is not None and rhs is not None and lhs.shape == () and rhs.shape is not None:
        _product(lhs.shape, rhs.shape)
    return UNSURE


def _product(lhs: Dims, rhs: Dims) -> Dims | None:
    written_both = f"{written(lhs)} @ {written(rhs)}"
    if not lhs or not rhs:
        raise MismatchError(
            f"matmul: {written_both}: a 0-d tensor has no axis to contract; multiply with *"
        )
    inner = rhs[-2] if len(rhs) > 1 else rhs[0]
    if differ(lhs[-1], inner):
        raise MismatchError(f"matmul: inner dims differ: {written_both}, {lhs[-1]} != {inner}")
    rows, columns = lhs[-2:-1], rhs[-1:] if len(rhs) > 1 else ()
    leading = broadcast(f"matmul: the leading axes of {written_both}", [lhs[:-2], rhs[:-2]])
    return None if leading is None else (*leading, *rows, *columns)


def einsum(call: Call) -> Answer:
    """Return the result of `einsum` with literal subscripts."""
    subscripts = read_str(call.position(0))
    if subscripts is None:
        return UNSURE
    operands = [read_tensor(one) for index in range(1, call.formals) for one in call.types(index)]
    tape: Type | None = None
    dtype: Type | None = None
    shapes: list[Dims] = []
    for one in operands:
        if one is None or one.shape is None:
            return UNSURE
        tape = one.tape if tape is None else merged_tape(tape, one.tape)
        dtype = one.dtype if dtype is None else common_dtype(dtype, one.dtype)
        if tape is None or dtype is None:
            return UNSURE
        shapes.append(one.shape)
    if tape is None or dtype is None:
        return UNSURE
    return call.tensor(_contracted(subscripts, shapes), tape, dtype)


def _contracted(subscripts: str, shapes: list[Dims]) -> Dims:
    """Return the shape that subscripts spell, by the rules of `tapetensor.tensor.einsum`."""
    left, arrow, output = subscripts.replace(" ", "").partition("->")
    groups = left.split(",")
    if any(_GROUP.fullmatch(group) is None for group in (*groups, output)):
        raise MismatchError(
            f"einsum: cannot read '{subscripts}'; write groups of letters, 'ij,jk->ik'"
        )
    if len(groups) != len(shapes):
        raise MismatchError(
            f"einsum: '{subscripts}' names {len(groups)} operands, {len(shapes)} were given"
        )
    letters = [one for one in subscripts if one.isalpha()]
    spare = [letter for letter in string.ascii_letters if letter not in letters]
    named = [len(group.replace("...", "")) for group in groups]
    extra = max(
        [
            len(shape) - count
            for shape, count, group in zip(shapes, named, groups, strict=True)
            if "..." in group
        ],
        default=0,
    )
    if not arrow:
        once = sorted(letter for letter in set(letters) if letters.count(letter) == 1)
        output = ("..." if extra else "") + "".join(once)
    dims: dict[str, Dim] = {}
    for group, shape, count in zip(groups, shapes, named, strict=True):
        own = len(shape) - count if "..." in group else 0
        expanded = group.replace("...", "".join(spare[max(extra - own, 0) : max(extra, 0)]))
        if own < 0 or len(expanded) != len(shape):
            raise MismatchError(
                f"einsum: '{group}' in '{subscripts}' does not fit shape {written(shape)}"
            )
        for letter, dim in zip(expanded, shape, strict=True):
            dims[letter] = _shared(letter, dims.get(letter, dim), dim, subscripts, shapes, spare)
    output = output.replace("...", "".join(spare[: max(extra, 0)]))
    if len(set(output)) != len(output) or not set(output) <= set(dims):
        raise MismatchError(
            f"einsum: the output of '{subscripts}' must name letters of the operands, each once"
        )
    return tuple(dims[letter] for letter in output)


def _shared(
    letter: str, known: Dim, dim: Dim, subscripts: str, shapes: list[Dims], spare: list[str]
) -> Dim:
    """Return the dim of a letter that occurs again."""
    if letter in spare:
        joined = joined_dim(known, dim)
        if joined is not None:
            return joined
    if differ(known, dim):
        sizes = f"sizes {known} and {dim} in shapes {' and '.join(map(written, shapes))}"
        name = "..." if letter in spare else letter
        raise MismatchError(f"einsum: '{name}' in '{subscripts}' has {sizes}")
    return unified(known, dim)
