"""Matrix products and einsum."""

from __future__ import annotations

import re
import string

from tapetensor.mypy_plugin.shapes.broadcasting import broadcast, joined_dim
from tapetensor.mypy_plugin.shapes.calls import Answer, Call, MismatchError, of_all_shapes, opening
from tapetensor.mypy_plugin.shapes.dims import Dim, Dims, differ, unified, written
from tapetensor.mypy_plugin.shapes.reading import known, merged, read_literal, read_tensor

_GROUP = re.compile(r"[A-Za-z]*(\.\.\.)?[A-Za-z]*")


def _is_open(call: Call) -> bool:
    # Plain typing knows the columns of what a matrix gives, and nothing else of an open shape.
    rhs = read_tensor(call.argument(0))
    by_matrix = rhs is not None and rhs.shape is not None and len(rhs.shape) == 2
    return call.fits_all and not by_matrix


@opening(_is_open)
def matmul(call: Call) -> Answer:
    """Return the result of ``@`` for operands of all ranks."""
    operands = [call.receiver, call.operand(0)]
    lhs, rhs = [one.dims for one in operands]
    tape, dtype = merged(operands)
    return call.tensor(_product(lhs, rhs), tape, dtype)


def rmatmul(call: Call) -> Answer:
    """Explain a product whose left operand has no axes, which no overload takes."""
    if call.operand(0).shape == ():
        _product((), call.receiver.dims)
    return None


def _product(lhs: Dims, rhs: Dims) -> Dims:
    both = f"{written(lhs)} @ {written(rhs)}"
    if not lhs or not rhs:
        raise MismatchError(f"{both}: a 0-d tensor has no axis to contract; multiply with *")
    inner = rhs[-2] if len(rhs) > 1 else rhs[0]
    if differ(lhs[-1], inner):
        raise MismatchError(f"inner dims differ: {both}, {lhs[-1]} != {inner}")
    rows, columns = lhs[-2:-1], rhs[-1:] if len(rhs) > 1 else ()
    leading = known(broadcast([lhs[:-2], rhs[:-2]], of=f"the leading axes of {both}: "))
    return (*leading, *rows, *columns)


def einsum(call: Call) -> Answer:
    """Return the result of `einsum` with literal subscripts."""
    subscripts = known(read_literal(call.argument(0), str))
    given = [read_tensor(one) for index in range(1, call.formals) for one in call.types(index)]
    operands = [known(one) for one in given]
    shapes = [one.dims for one in operands]
    tape, dtype = merged(operands)
    return call.tensor(_contracted(subscripts, shapes), tape, dtype)


def _contracted(subscripts: str, shapes: list[Dims]) -> Dims:
    """Return the shape that subscripts spell, by the rules of `tapetensor.tensor.einsum`."""
    left, arrow, output = subscripts.replace(" ", "").partition("->")
    groups = left.split(",")
    if any(_GROUP.fullmatch(group) is None for group in (*groups, output)):
        raise MismatchError(f"cannot read '{subscripts}'; write groups of letters, 'ij,jk->ik'")
    if len(groups) != len(shapes):
        raise MismatchError(
            f"'{subscripts}' names {len(groups)} operands, {len(shapes)} were given"
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
            raise MismatchError(f"'{group}' in '{subscripts}' does not fit shape {written(shape)}")
        for letter, dim in zip(expanded, shape, strict=True):
            dims[letter] = _shared(letter, dims.get(letter, dim), dim, subscripts, shapes, spare)
    output = output.replace("...", "".join(spare[: max(extra, 0)]))
    if len(set(output)) != len(output) or not set(output) <= set(dims):
        raise MismatchError(
            f"the output of '{subscripts}' must name letters of the operands, each once"
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
        raise MismatchError(f"'{name}' in '{subscripts}' has {sizes}")
    return unified(known, dim)


@of_all_shapes
def inverse(call: Call) -> Answer:
    """Return the result of `inv` and `cholesky`, whose matrices are square."""
    shape, size = call.receiver.dims, side_of(call)
    return call.like(call.receiver, (*shape[:-2], size, size))


@of_all_shapes
def det(call: Call) -> Answer:
    """Return the result of `det`: a number for each matrix."""
    side_of(call)
    return call.like(call.receiver, call.receiver.dims[:-2])


@of_all_shapes
def solve(call: Call) -> Answer:
    """Refuse matrices that are not square, and right-hand sides that do not fit them."""
    shape, size = call.receiver.dims, side_of(call)
    other = call.operand(0).dims
    is_vector = len(shape) == 2 and len(other) == 1
    if len(other) < 2 - is_vector or differ(size, other[-1 if is_vector else -2]):
        raise MismatchError(
            f"matrices of shape {written(shape)} need right-hand sides of shape (N,) or "
            f"(*Ds, N, K) with N = {size}, not {written(other)}"
        )
    return None


def side_of(call: Call) -> Dim:
    """Return the size of square matrices."""
    shape = call.receiver.dims
    if len(shape) < 2 or differ(shape[-1], shape[-2]):
        raise MismatchError(f"needs square matrices (*Ds, N, N), the shape is {written(shape)}")
    return unified(shape[-1], shape[-2])
