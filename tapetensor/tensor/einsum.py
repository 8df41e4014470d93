"""Products and sums of tensors by their subscripts."""

from __future__ import annotations

import re
import string
from functools import partial
from typing import Any, Literal, TypeAlias, overload

from tapetensor.arguments import check_kind
from tapetensor.errors import (
    ArgumentValueError,
    ShapeError,
)
from tapetensor.kernels import (
    linear_algebra,
)
from tapetensor.tape import NoneTape
from tapetensor.tensor.apply import apply
from tapetensor.tensor.base import check_numeric, check_same_dtype
from tapetensor.tensor.joining import as_operands
from tapetensor.tensor.tensor import Joins, Tensor
from tapetensor.typing import R, T

One: TypeAlias = Literal[1]


@overload
def einsum(subscripts: str, x: Tensor[Any, T, R], /) -> Tensor[Any, T, R]: ...
@overload
def einsum(
    subscripts: str, lhs: Tensor[Any, T, R], rhs: Joins[Any, T, R], /
) -> Tensor[Any, T, R]: ...
@overload
def einsum(
    subscripts: str, lhs: Tensor[Any, NoneTape, R], rhs: Tensor[Any, T, R], /
) -> Tensor[Any, T, R]: ...
@overload
def einsum(subscripts: str, /, *operands: Tensor[Any, T, R]) -> Tensor[Any, T, R]: ...
def einsum(subscripts: str, /, *operands: Any) -> Any:
    """Return the sum of products that subscripts spell, as `numpy.einsum`.

        "bij,bjk->bik" is a batch of matrix products, "ii->" a trace

    Shape: what the subscripts say; a repeated letter has one size, ``...`` broadcasts.
    Derivative: the einsum of the cotangent with the other operands.
    Tape: the tapes of all merge; an operand that owned one is spent.

    Args:
        subscripts: one group of letters per operand; without ``->`` the letters that occur once
            are kept in alphabetical order.
        operands: one or more tensors.

    Raises:
        ShapeError: if the subscripts do not fit the shapes.
        ArgumentValueError: if the subscripts cannot be read.
        DTypeError: if the dtypes differ, or are bool.

    >>> import tapetensor as tt
    >>> tt.einsum("ij,jk->ik", tt.ones((2, 3)), tt.ones((3, 4))).shape
    (2, 4)
    """
    tensors = as_operands("einsum", operands)
    inputs, output, sizes = _explicit_subscripts(subscripts, [x.array.shape for x in tensors])
    check_same_dtype("einsum", tensors)
    check_numeric("einsum", tensors[0])
    shapes = [tuple([sizes[letter] for letter in letters]) for letters in inputs]
    # Broadcast inside the kernel: as ops of their own they would take tapes before all is checked.
    return apply(
        partial(linear_algebra.einsum, inputs=inputs, output=output, shapes=shapes), tensors
    )


def _explicit_subscripts(
    subscripts: str, shapes: list[tuple[int, ...]]
) -> tuple[list[str], str, dict[str, int]]:
    """Return one string of letters per operand, that of the output, and the size of each letter."""
    check_kind("einsum", "subscripts", subscripts, str, "a string")
    left, arrow, output = subscripts.replace(" ", "").partition("->")
    groups = left.split(",")
    letters = [character for character in subscripts if character.isalpha()]
    if re.fullmatch(r"[A-Za-z]*(\.\.\.)?[A-Za-z]*", output) is None or any(
        re.fullmatch(r"[A-Za-z]*(\.\.\.)?[A-Za-z]*", group) is None for group in groups
    ):
        raise ArgumentValueError(
            f"einsum: cannot read {subscripts!r}; write groups of letters, 'ij,jk->ik'"
        )
    if len(groups) != len(shapes):
        raise ShapeError(
            f"einsum: {subscripts!r} names {len(groups)} operands, {len(shapes)} were given"
        )
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
    inputs: list[str] = []
    sizes: dict[str, int] = {}
    for group, shape, count in zip(groups, shapes, named, strict=True):
        own = len(shape) - count if "..." in group else 0
        expanded = group.replace("...", "".join(spare[max(extra - own, 0) : extra]))
        if own < 0 or len(expanded) != len(shape):
            raise ShapeError(f"einsum: {group!r} in {subscripts!r} does not fit shape {shape}")
        for letter, size in zip(expanded, shape, strict=True):
            known = sizes.setdefault(letter, size)
            if known != size and letter in spare and 1 in (known, size):
                sizes[letter] = max(known, size)
            elif known != size:
                raise ShapeError(
                    f"einsum: {letter!r} in {subscripts!r} has sizes {known} and {size} "
                    f"in shapes {' and '.join(map(str, shapes))}"
                )
        inputs.append(expanded)
    output = output.replace("...", "".join(spare[:extra]))
    if len(set(output)) != len(output) or not set(output) <= set(sizes):
        raise ArgumentValueError(
            f"einsum: the output of {subscripts!r} must name letters of the operands, each once"
        )
    return inputs, output, sizes
