"""Products and sums of tensors by their subscripts."""

from __future__ import annotations

from functools import partial
from typing import Any, Literal, TypeAlias, overload

from tapetensor.arguments import check_kind
from tapetensor.kernels import (
    linear_algebra,
)
from tapetensor.rules import products
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
def einsum(subscripts: str, /, *operands: Tensor[Any, Any, Any]) -> Tensor[Any, Any, Any]:
    """Return the sum of products that subscripts spell, as `numpy.einsum`.

        "bij,bjk->bik" is a batch of matrix products, "ii->" a trace

    Shape: that of the subscripts; a repeated letter has one size, ``...`` broadcasts.
    Derivative: the einsum of the cotangent with the other operands.

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
    check_kind("einsum", "subscripts", subscripts, str, "a string")
    inputs, output, sizes = products.einsum(
        "einsum", subscripts, [x._array.shape for x in tensors], _shared
    )
    check_same_dtype("einsum", tensors)
    check_numeric("einsum", tensors[0])
    shapes = [tuple([sizes[letter] for letter in letters]) for letters in inputs]
    # Broadcast inside the kernel: as ops of their own they would take tapes before all is checked.
    return apply(
        partial(linear_algebra.einsum, inputs=inputs, output=output, shapes=shapes), tensors
    )


def _shared(known: int, size: int, broadcasts: bool) -> int | None:
    if known == size or (broadcasts and size == 1):
        return known
    return size if broadcasts and known == 1 else None
