"""Ops on several tensors that belong to none of them in particular."""

from __future__ import annotations

import re
import string
from collections.abc import Sequence
from functools import partial
from typing import Any, Literal, TypeAlias, overload

import numpy as np

from tapetensor.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    DTypeError,
    ShapeError,
)
from tapetensor.kernels import (
    arithmetic,
    indexing,
    linear_algebra,
)
from tapetensor.kernels import (
    shape as shape_kernels,
)
from tapetensor.shapes import normalize_axis
from tapetensor.tape import Kernel, NoneTape, OwnedTape
from tapetensor.tensor.apply import apply
from tapetensor.tensor.arithmetic import as_number
from tapetensor.tensor.base import TensorBase, check_same_dtype, check_tensor
from tapetensor.tensor.tensor import Joins, Tensor
from tapetensor.typing import D, Ds, F, K, M, N, R, S, T

One: TypeAlias = Literal[1]


@overload
def maximum(lhs: Tensor[S, T, F], rhs: float, /) -> Tensor[S, T, F]: ...
@overload
def maximum(
    lhs: Tensor[S, T, R], rhs: Joins[S, T, R] | Joins[tuple[()], T, R], /
) -> Tensor[S, T, R]: ...
@overload
def maximum(
    lhs: Tensor[S, NoneTape, R],
    rhs: Tensor[S, T, R] | Tensor[tuple[()], T, R],
    /,
) -> Tensor[S, T, R]: ...
@overload
def maximum(
    lhs: Tensor[S, T, R],
    rhs: Tensor[S, OwnedTape, R] | Tensor[tuple[()], OwnedTape, R],
    /,
) -> Tensor[S, OwnedTape, R]: ...
@overload
def maximum(
    lhs: Tensor[tuple[*Ds, N], T, R],
    rhs: Joins[tuple[N], T, R] | Joins[tuple[*Ds, One], T, R],
    /,
) -> Tensor[tuple[*Ds, N], T, R]: ...
@overload
def maximum(
    lhs: Tensor[tuple[*Ds, N], NoneTape, R],
    rhs: Tensor[tuple[N], T, R] | Tensor[tuple[*Ds, One], T, R],
    /,
) -> Tensor[tuple[*Ds, N], T, R]: ...
def maximum(lhs: Any, rhs: Any, /) -> Any:
    """Return the larger of two, element by element.

    Shape: numpy's broadcasting.
    Derivative: 1 for the larger operand, 0 for the other; one half each where they are equal.
    Tape: the tapes of both merge; an operand that owned one is spent.

    >>> import tapetensor as tt
    >>> tt.maximum(tt.from_numpy([1.0, 5.0], shape=(2,)), 3.0)
    Tensor([3., 5.], shape=(2,), dtype=float32, NoneTape)
    """
    return _extreme(arithmetic.maximum, arithmetic.maximum_number, lhs, rhs)


@overload
def minimum(lhs: Tensor[S, T, F], rhs: float, /) -> Tensor[S, T, F]: ...
@overload
def minimum(
    lhs: Tensor[S, T, R], rhs: Joins[S, T, R] | Joins[tuple[()], T, R], /
) -> Tensor[S, T, R]: ...
@overload
def minimum(
    lhs: Tensor[S, NoneTape, R],
    rhs: Tensor[S, T, R] | Tensor[tuple[()], T, R],
    /,
) -> Tensor[S, T, R]: ...
@overload
def minimum(
    lhs: Tensor[S, T, R],
    rhs: Tensor[S, OwnedTape, R] | Tensor[tuple[()], OwnedTape, R],
    /,
) -> Tensor[S, OwnedTape, R]: ...
@overload
def minimum(
    lhs: Tensor[tuple[*Ds, N], T, R],
    rhs: Joins[tuple[N], T, R] | Joins[tuple[*Ds, One], T, R],
    /,
) -> Tensor[tuple[*Ds, N], T, R]: ...
@overload
def minimum(
    lhs: Tensor[tuple[*Ds, N], NoneTape, R],
    rhs: Tensor[tuple[N], T, R] | Tensor[tuple[*Ds, One], T, R],
    /,
) -> Tensor[tuple[*Ds, N], T, R]: ...
def minimum(lhs: Any, rhs: Any, /) -> Any:
    """Return the smaller of two, element by element.

    Shape: numpy's broadcasting.
    Derivative: 1 for the smaller operand, 0 for the other; one half each where they are equal.
    Tape: the tapes of both merge; an operand that owned one is spent.

    >>> import tapetensor as tt
    >>> tt.minimum(tt.from_numpy([1.0, 5.0], shape=(2,)), 3.0)
    Tensor([1., 3.], shape=(2,), dtype=float32, NoneTape)
    """
    return _extreme(arithmetic.minimum, arithmetic.minimum_number, lhs, rhs)


@overload
def where(
    mask: Tensor[S, NoneTape, np.bool_], lhs: Tensor[S, T, F], rhs: float, /
) -> Tensor[S, T, F]: ...
@overload
def where(
    mask: Tensor[S, NoneTape, np.bool_], lhs: float, rhs: Tensor[S, T, F], /
) -> Tensor[S, T, F]: ...
@overload
def where(
    mask: Tensor[S, NoneTape, np.bool_], lhs: Tensor[S, T, D], rhs: Joins[S, T, D], /
) -> Tensor[S, T, D]: ...
@overload
def where(
    mask: Tensor[S, NoneTape, np.bool_],
    lhs: Tensor[S, NoneTape, D],
    rhs: Tensor[S, T, D],
    /,
) -> Tensor[S, T, D]: ...
@overload
def where(
    mask: Tensor[S, NoneTape, np.bool_],
    lhs: Tensor[S, T, D],
    rhs: Tensor[S, OwnedTape, D],
    /,
) -> Tensor[S, OwnedTape, D]: ...
@overload
def where(
    mask: Tensor[tuple[M, N], NoneTape, np.bool_],
    lhs: Tensor[tuple[*Ds, M, N], T, F],
    rhs: float,
    /,
) -> Tensor[tuple[*Ds, M, N], T, F]: ...
def where(mask: Any, lhs: Any, rhs: Any, /) -> Any:
    """Return `lhs` where a mask holds and `rhs` elsewhere.

    Shape: numpy's broadcasting of all three.
    Derivative: 1 for the operand that was chosen, 0 for the other.
    Tape: the tapes of both operands merge; one that owned a tape is spent. The mask is plain.

    Raises:
        DTypeError: if `mask` is not bool, or the dtypes of the operands differ.
        ArgumentTypeError: if neither operand is a tensor.

    >>> import tapetensor as tt
    >>> x = tt.from_numpy([-1.0, 5.0], shape=(2,))
    >>> tt.where(x > 0.0, x, 0.0)
    Tensor([0., 5.], shape=(2,), dtype=float32, NoneTape)
    """
    check_tensor("where", mask, "the mask")
    if mask._data.dtype != np.bool_:
        raise DTypeError(f"where: the mask must be bool, got {mask._data.dtype}; compare (x > 0)")
    if isinstance(lhs, TensorBase) and isinstance(rhs, TensorBase):
        check_same_dtype("where", (lhs, rhs))
        return apply(indexing.where, (lhs, rhs, mask), keeps_dtype=False)
    if isinstance(lhs, TensorBase):
        value = _number_like(lhs, rhs)
        return apply(indexing.where_number, (lhs, mask), (value,), keeps_dtype=False)
    if isinstance(rhs, TensorBase):
        value = _number_like(rhs, lhs)
        return apply(indexing.where_number, (rhs, ~mask), (value,), keeps_dtype=False)
    raise ArgumentTypeError("where: at least one of the two values must be a tensor")


@overload
def concat(
    tensors: tuple[Tensor[tuple[M, *Ds], T, D], Tensor[tuple[N, *Ds], T, D]],
    axis: Literal[0] = 0,
) -> Tensor[tuple[Any, *Ds], T, D]: ...
@overload
def concat(
    tensors: tuple[Tensor[tuple[M, *Ds], T, D], Tensor[tuple[N, *Ds], NoneTape, D]],
    axis: Literal[0] = 0,
) -> Tensor[tuple[Any, *Ds], T, D]: ...
@overload
def concat(
    tensors: tuple[Tensor[tuple[M, *Ds], NoneTape, D], Tensor[tuple[N, *Ds], T, D]],
    axis: Literal[0] = 0,
) -> Tensor[tuple[Any, *Ds], T, D]: ...
@overload
def concat(
    tensors: tuple[Tensor[tuple[*Ds, M], T, D], Tensor[tuple[*Ds, N], T, D]],
    axis: Literal[-1],
) -> Tensor[tuple[*Ds, Any], T, D]: ...
@overload
def concat(
    tensors: tuple[Tensor[tuple[*Ds, M], T, D], Tensor[tuple[*Ds, N], NoneTape, D]],
    axis: Literal[-1],
) -> Tensor[tuple[*Ds, Any], T, D]: ...
@overload
def concat(
    tensors: tuple[Tensor[tuple[*Ds, M], NoneTape, D], Tensor[tuple[*Ds, N], T, D]],
    axis: Literal[-1],
) -> Tensor[tuple[*Ds, Any], T, D]: ...
@overload
def concat(
    tensors: tuple[Tensor[tuple[K, M, *Ds], T, D], Tensor[tuple[K, N, *Ds], T, D]],
    axis: Literal[1],
) -> Tensor[tuple[K, Any, *Ds], T, D]: ...
@overload
def concat(
    tensors: tuple[Tensor[tuple[K, M, *Ds], T, D], Tensor[tuple[K, N, *Ds], NoneTape, D]],
    axis: Literal[1],
) -> Tensor[tuple[K, Any, *Ds], T, D]: ...
@overload
def concat(
    tensors: tuple[Tensor[tuple[K, M, *Ds], NoneTape, D], Tensor[tuple[K, N, *Ds], T, D]],
    axis: Literal[1],
) -> Tensor[tuple[K, Any, *Ds], T, D]: ...
@overload
def concat(
    tensors: tuple[
        Tensor[tuple[M, *Ds], T, D],
        Tensor[tuple[N, *Ds], T, D],
        Tensor[tuple[K, *Ds], T, D],
    ],
    axis: Literal[0] = 0,
) -> Tensor[tuple[Any, *Ds], T, D]: ...
@overload
def concat(
    tensors: tuple[
        Tensor[tuple[*Ds, M], T, D],
        Tensor[tuple[*Ds, N], T, D],
        Tensor[tuple[*Ds, K], T, D],
    ],
    axis: Literal[-1],
) -> Tensor[tuple[*Ds, Any], T, D]: ...
@overload
def concat(
    tensors: Sequence[Tensor[tuple[N, *Ds], T, D]], axis: Literal[0] = 0
) -> Tensor[tuple[Any, *Ds], T, D]: ...
@overload
def concat(
    tensors: Sequence[Tensor[tuple[*Ds, N], T, D]], axis: Literal[-1]
) -> Tensor[tuple[*Ds, Any], T, D]: ...
@overload
def concat(
    tensors: Sequence[Tensor[tuple[K, N, *Ds], T, D]], axis: Literal[1]
) -> Tensor[tuple[K, Any, *Ds], T, D]: ...
def concat(tensors: Sequence[Any], axis: int = 0) -> Any:
    """Return tensors one after another along an existing axis.

    Shape: ``(M, *Ds)`` and ``(N, *Ds)`` along axis 0 give ``(M + N, *Ds)``.
    Derivative: each operand's part of the cotangent.
    Tape: the tapes of all merge; an operand that owned one is spent.

    Args:
        tensors: one or more, with equal sizes along all other axes.
        axis: the axis to lengthen.

    Raises:
        ShapeError: if the other sizes differ.
        AxisError: if there is no such axis.
        DTypeError: if the dtypes differ.

    >>> import tapetensor as tt
    >>> tt.concat((tt.zeros((1, 2)), tt.ones((2, 2)))).shape
    (3, 2)
    """
    operands = _operands("concat", tensors)
    position = normalize_axis("concat", axis, operands[0]._data.shape)
    return apply(partial(shape_kernels.concat, axis=position), operands)


@overload
def stack(
    tensors: tuple[Tensor[tuple[*Ds], T, D], Joins[tuple[*Ds], T, D]],
    axis: Literal[0] = 0,
) -> Tensor[tuple[Literal[2], *Ds], T, D]: ...
@overload
def stack(
    tensors: tuple[Tensor[tuple[*Ds], NoneTape, D], Tensor[tuple[*Ds], T, D]],
    axis: Literal[0] = 0,
) -> Tensor[tuple[Literal[2], *Ds], T, D]: ...
@overload
def stack(
    tensors: tuple[Tensor[tuple[*Ds], T, D], Joins[tuple[*Ds], T, D]], axis: Literal[-1]
) -> Tensor[tuple[*Ds, Literal[2]], T, D]: ...
@overload
def stack(
    tensors: tuple[Tensor[tuple[*Ds], NoneTape, D], Tensor[tuple[*Ds], T, D]],
    axis: Literal[-1],
) -> Tensor[tuple[*Ds, Literal[2]], T, D]: ...
@overload
def stack(
    tensors: tuple[Tensor[tuple[*Ds], T, D], Tensor[tuple[*Ds], T, D], Tensor[tuple[*Ds], T, D]],
    axis: Literal[0] = 0,
) -> Tensor[tuple[Literal[3], *Ds], T, D]: ...
@overload
def stack(
    tensors: Sequence[Tensor[tuple[*Ds], T, D]], axis: Literal[0] = 0
) -> Tensor[tuple[Any, *Ds], T, D]: ...
@overload
def stack(
    tensors: Sequence[Tensor[tuple[*Ds], T, D]], axis: Literal[-1]
) -> Tensor[tuple[*Ds, Any], T, D]: ...
@overload
def stack(
    tensors: Sequence[Tensor[tuple[N, *Ds], T, D]], axis: Literal[1]
) -> Tensor[tuple[N, Any, *Ds], T, D]: ...
def stack(tensors: Sequence[Any], axis: int = 0) -> Any:
    """Return tensors of one shape side by side along a new axis.

    Shape: ``k`` tensors ``(*Ds)`` along axis 0 give ``(k, *Ds)``.
    Derivative: each operand's slice of the cotangent.
    Tape: the tapes of all merge; an operand that owned one is spent.

    Args:
        tensors: one or more, of equal shape.
        axis: where the new axis is in the result.

    Raises:
        ShapeError: if the shapes differ.
        AxisError: if the result has no such axis.
        DTypeError: if the dtypes differ.

    >>> import tapetensor as tt
    >>> tt.stack((tt.zeros((2,)), tt.ones((2,)))).shape
    (2, 2)
    """
    operands = _operands("stack", tensors)
    position = normalize_axis("stack", axis, operands[0]._data.shape, extra=1)
    return apply(partial(shape_kernels.stack, axis=position), operands)


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

    >>> import tapetensor as tt
    >>> tt.einsum("ij,jk->ik", tt.ones((2, 3)), tt.ones((3, 4))).shape
    (2, 4)
    """
    tensors = _operands("einsum", operands)
    inputs, output, sizes = _explicit_subscripts(subscripts, [x._data.shape for x in tensors])
    check_same_dtype("einsum", tensors)
    shapes = [tuple([sizes[letter] for letter in letters]) for letters in inputs]
    # Broadcast inside the kernel: as ops of their own they would take tapes before all is checked.
    return apply(
        partial(linear_algebra.einsum, inputs=inputs, output=output, shapes=shapes), tensors
    )


def _operands(op: str, tensors: object) -> tuple[TensorBase[Any, Any, Any], ...]:
    if not isinstance(tensors, Sequence) or isinstance(tensors, str) or not tensors:
        raise ArgumentTypeError(f"{op}: expected one tensor or more in a tuple or list")
    for tensor in tensors:
        check_tensor(op, tensor)
    return tuple(tensors)


def _extreme(
    kernel: Kernel, number_kernel: Kernel, lhs: object, rhs: object
) -> Tensor[Any, Any, Any]:
    op = kernel.__name__
    check_tensor(op, lhs, "the left operand")
    assert isinstance(lhs, TensorBase)
    if isinstance(rhs, TensorBase):
        return apply(kernel, (lhs, rhs))
    return apply(number_kernel, (lhs,), (as_number(op, rhs),))


def _explicit_subscripts(
    subscripts: object, shapes: list[tuple[int, ...]]
) -> tuple[list[str], str, dict[str, int]]:
    """Return one string of letters per operand, that of the output, and the size of each letter."""
    if not isinstance(subscripts, str):
        raise ArgumentTypeError(f"einsum: subscripts are a string, got {subscripts!r}")
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


def _number_like(tensor: TensorBase[Any, Any, Any], value: object) -> float:
    """Return `value` as a number that the dtype of `tensor` can hold."""
    number = as_number("where", value)
    dtype = tensor._data.dtype
    if dtype.kind == "f":
        return number
    # np.where would wrap a number that is too large, and promote a mask to integers.
    if isinstance(number, int) and dtype.kind in "iu":
        limits = np.iinfo(dtype)
        if limits.min <= number <= limits.max:
            return number
    raise DTypeError(f"where: the number {value!r} does not fit dtype {dtype}")
