"""Tensors put together: along an axis, by segments, and by the subscripts of `einsum`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Literal, Never, TypeAlias, overload

from tapetensor.arguments import as_size, check_kind, normalize_axis
from tapetensor.arguments.spellings import no_such_argument
from tapetensor.errors import ArgumentTypeError, refusal
from tapetensor.kernels import indexing, linear_algebra
from tapetensor.kernels import shape as shape_kernels
from tapetensor.rules import broadcasting as rules
from tapetensor.rules.dims import sized
from tapetensor.rules.indexing import check_segments
from tapetensor.tape import NoneTape
from tapetensor.tensor.apply import apply
from tapetensor.tensor.base import (
    TensorBase,
    check_numeric,
    check_plain,
    check_same_dtype,
    check_tensor,
)
from tapetensor.tensor.indexing import I
from tapetensor.tensor.operands import check_labels
from tapetensor.tensor.tensor import Joins, Tensor
from tapetensor.typing import B, D, Ds, K, M, N, P, R, T


# The sizes along the axis are open: mypy would not infer one that stands in `Joins` alone.
@overload
def concat(
    tensors: tuple[Tensor[tuple[Any, *Ds], T, D], Joins[tuple[Any, *Ds], T, D]],
    axis: Literal[0] = 0,
) -> Tensor[tuple[Any, *Ds], T, D]: ...
@overload
def concat(
    tensors: tuple[Tensor[tuple[Any, *Ds], NoneTape, D], Tensor[tuple[Any, *Ds], T, D]],
    axis: Literal[0] = 0,
) -> Tensor[tuple[Any, *Ds], T, D]: ...
@overload
def concat(
    tensors: tuple[Tensor[tuple[*Ds, Any], T, D], Joins[tuple[*Ds, Any], T, D]], axis: Literal[-1]
) -> Tensor[tuple[*Ds, Any], T, D]: ...
@overload
def concat(
    tensors: tuple[Tensor[tuple[*Ds, Any], NoneTape, D], Tensor[tuple[*Ds, Any], T, D]],
    axis: Literal[-1],
) -> Tensor[tuple[*Ds, Any], T, D]: ...
@overload
def concat(
    tensors: tuple[Tensor[tuple[K, Any, *Ds], T, D], Joins[tuple[K, Any, *Ds], T, D]],
    axis: Literal[1],
) -> Tensor[tuple[K, Any, *Ds], T, D]: ...
@overload
def concat(
    tensors: tuple[Tensor[tuple[K, Any, *Ds], NoneTape, D], Tensor[tuple[K, Any, *Ds], T, D]],
    axis: Literal[1],
) -> Tensor[tuple[K, Any, *Ds], T, D]: ...
@overload
def concat(
    tensors: tuple[Tensor[tuple[B, K, Any, *Ds], T, D], Joins[tuple[B, K, Any, *Ds], T, D]],
    axis: Literal[2],
) -> Tensor[tuple[B, K, Any, *Ds], T, D]: ...
@overload
def concat(
    tensors: tuple[Tensor[tuple[B, K, Any, *Ds], NoneTape, D], Tensor[tuple[B, K, Any, *Ds], T, D]],
    axis: Literal[2],
) -> Tensor[tuple[B, K, Any, *Ds], T, D]: ...
@overload
def concat(
    tensors: tuple[Tensor[tuple[*Ds, Any, K], T, D], Joins[tuple[*Ds, Any, K], T, D]],
    axis: Literal[-2],
) -> Tensor[tuple[*Ds, Any, K], T, D]: ...
@overload
def concat(
    tensors: tuple[Tensor[tuple[*Ds, Any, K], NoneTape, D], Tensor[tuple[*Ds, Any, K], T, D]],
    axis: Literal[-2],
) -> Tensor[tuple[*Ds, Any, K], T, D]: ...
@overload
def concat(
    tensors: tuple[Tensor[tuple[B, K, P, Any, *Ds], T, D], Joins[tuple[B, K, P, Any, *Ds], T, D]],
    axis: Literal[3],
) -> Tensor[tuple[B, K, P, Any, *Ds], T, D]: ...
@overload
def concat(
    tensors: tuple[
        Tensor[tuple[B, K, P, Any, *Ds], NoneTape, D], Tensor[tuple[B, K, P, Any, *Ds], T, D]
    ],
    axis: Literal[3],
) -> Tensor[tuple[B, K, P, Any, *Ds], T, D]: ...
@overload
def concat(
    tensors: tuple[Tensor[tuple[*Ds, Any, K, P], T, D], Joins[tuple[*Ds, Any, K, P], T, D]],
    axis: Literal[-3],
) -> Tensor[tuple[*Ds, Any, K, P], T, D]: ...
@overload
def concat(
    tensors: tuple[Tensor[tuple[*Ds, Any, K, P], NoneTape, D], Tensor[tuple[*Ds, Any, K, P], T, D]],
    axis: Literal[-3],
) -> Tensor[tuple[*Ds, Any, K, P], T, D]: ...
@overload
def concat(
    tensors: Sequence[Tensor[tuple[Any, *Ds], T, D]], axis: Literal[0] = 0
) -> Tensor[tuple[Any, *Ds], T, D]: ...
@overload
def concat(
    tensors: Sequence[Tensor[tuple[*Ds, Any], T, D]], axis: Literal[-1]
) -> Tensor[tuple[*Ds, Any], T, D]: ...
@overload
def concat(
    tensors: Sequence[Tensor[tuple[K, Any, *Ds], T, D]], axis: Literal[1]
) -> Tensor[tuple[K, Any, *Ds], T, D]: ...
@overload
def concat(
    tensors: Sequence[Tensor[tuple[B, K, Any, *Ds], T, D]], axis: Literal[2]
) -> Tensor[tuple[B, K, Any, *Ds], T, D]: ...
@overload
def concat(
    tensors: Sequence[Tensor[tuple[*Ds, Any, K], T, D]], axis: Literal[-2]
) -> Tensor[tuple[*Ds, Any, K], T, D]: ...
@overload
def concat(
    tensors: Sequence[Tensor[tuple[B, K, P, Any, *Ds], T, D]], axis: Literal[3]
) -> Tensor[tuple[B, K, P, Any, *Ds], T, D]: ...
@overload
def concat(
    tensors: Sequence[Tensor[tuple[*Ds, Any, K, P], T, D]], axis: Literal[-3]
) -> Tensor[tuple[*Ds, Any, K, P], T, D]: ...
def concat(
    tensors: Sequence[Tensor[Any, Any, Any]], axis: int = 0, **elsewhere: Never
) -> Tensor[Any, Any, Any]:
    """Return tensors one after another along an existing axis.

    Shape: ``(M, *Ds)`` and ``(N, *Ds)`` along axis 0 give ``(M + N, *Ds)``.
    Derivative: each operand's part of the cotangent.

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
    if elsewhere:
        raise no_such_argument("concat", elsewhere)
    operands = as_operands("concat", tensors)
    position = normalize_axis("concat", axis, operands[0]._array.shape)
    return apply(partial(shape_kernels.concat, axis=position), operands)


@overload
def stack(
    tensors: tuple[Tensor[tuple[*Ds], T, D], Joins[tuple[*Ds], T, D]], axis: Literal[0] = 0
) -> Tensor[tuple[Literal[2], *Ds], T, D]: ...
@overload
def stack(
    tensors: tuple[Tensor[tuple[*Ds], NoneTape, D], Tensor[tuple[*Ds], T, D]], axis: Literal[0] = 0
) -> Tensor[tuple[Literal[2], *Ds], T, D]: ...
@overload
def stack(
    tensors: tuple[Tensor[tuple[*Ds], T, D], Joins[tuple[*Ds], T, D]], axis: Literal[-1]
) -> Tensor[tuple[*Ds, Literal[2]], T, D]: ...
@overload
def stack(
    tensors: tuple[Tensor[tuple[*Ds], NoneTape, D], Tensor[tuple[*Ds], T, D]], axis: Literal[-1]
) -> Tensor[tuple[*Ds, Literal[2]], T, D]: ...
@overload
def stack(
    tensors: tuple[Tensor[tuple[N, *Ds], T, D], Joins[tuple[N, *Ds], T, D]], axis: Literal[1]
) -> Tensor[tuple[N, Literal[2], *Ds], T, D]: ...
@overload
def stack(
    tensors: tuple[Tensor[tuple[N, *Ds], NoneTape, D], Tensor[tuple[N, *Ds], T, D]],
    axis: Literal[1],
) -> Tensor[tuple[N, Literal[2], *Ds], T, D]: ...
@overload
def stack(
    tensors: tuple[Tensor[tuple[M, N, *Ds], T, D], Joins[tuple[M, N, *Ds], T, D]], axis: Literal[2]
) -> Tensor[tuple[M, N, Literal[2], *Ds], T, D]: ...
@overload
def stack(
    tensors: tuple[Tensor[tuple[M, N, *Ds], NoneTape, D], Tensor[tuple[M, N, *Ds], T, D]],
    axis: Literal[2],
) -> Tensor[tuple[M, N, Literal[2], *Ds], T, D]: ...
@overload
def stack(
    tensors: tuple[Tensor[tuple[*Ds, N], T, D], Joins[tuple[*Ds, N], T, D]], axis: Literal[-2]
) -> Tensor[tuple[*Ds, Literal[2], N], T, D]: ...
@overload
def stack(
    tensors: tuple[Tensor[tuple[*Ds, N], NoneTape, D], Tensor[tuple[*Ds, N], T, D]],
    axis: Literal[-2],
) -> Tensor[tuple[*Ds, Literal[2], N], T, D]: ...
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
@overload
def stack(
    tensors: Sequence[Tensor[tuple[M, N, *Ds], T, D]], axis: Literal[2]
) -> Tensor[tuple[M, N, Any, *Ds], T, D]: ...
@overload
def stack(
    tensors: Sequence[Tensor[tuple[*Ds, N], T, D]], axis: Literal[-2]
) -> Tensor[tuple[*Ds, Any, N], T, D]: ...
def stack(
    tensors: Sequence[Tensor[Any, Any, Any]], axis: int = 0, **elsewhere: Never
) -> Tensor[Any, Any, Any]:
    """Return tensors of one shape side by side along a new axis.

    Shape: ``k`` tensors ``(*Ds)`` along axis 0 give ``(k, *Ds)``.
    Derivative: each operand's slice of the cotangent.

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
    if elsewhere:
        raise no_such_argument("stack", elsewhere)
    operands = as_operands("stack", tensors)
    position = normalize_axis("stack", axis, operands[0]._array.shape, extra=1)
    return apply(partial(shape_kernels.stack, axis=position), operands)


def as_operands(op: str, tensors: object) -> tuple[TensorBase[Any, Any, Any], ...]:
    """Return a sequence of one tensor or more as a tuple."""
    if not isinstance(tensors, Sequence) or isinstance(tensors, str) or not tensors:
        raise ArgumentTypeError(f"{op}: expected one tensor or more in a tuple or list")
    for tensor in tensors:
        check_tensor(op, "an operand", tensor)
    return tuple(tensors)


def segment_sum(
    x: Tensor[tuple[M, *Ds], T, R], segments: Tensor[tuple[M], NoneTape, I], count: N
) -> Tensor[tuple[N, *Ds], T, R]:
    """Return the sums of the slices along the first axis that name the same segment.

        y[s] = sum of x[i] over all i with segments[i] == s;  0 where there is none

    The reverse of ``table.take(segments)``; ``segment_sum(x, segments, n)`` is added to a tensor
    with ``+``, as index_add and scatter_add do elsewhere.

    Shape: ``(M, *Ds), (M) -> (N, *Ds)`` for ``count: N``.
    Derivative: each slice gets the cotangent of its segment.

    Args:
        x: what is added up.
        segments: the number of the segment of each slice, from 0 to ``count - 1``.
        count: how many segments there are.

    Raises:
        ShapeError: if there are not as many segments as slices.
        DTypeError: if `segments` are not integers, or `x` is bool.
        AxisError: if a number is none of a segment.
        ArgumentTypeError: if an argument is of the wrong kind.
        ArgumentValueError: if `count` is negative.
        UntracedTensorError: if `segments` own a tape.

    >>> import numpy as np
    >>> import tapetensor as tt
    >>> words = tt.from_numpy([1.0, 2.0, 4.0], shape=(3,))
    >>> segment_sum(words, tt.from_numpy([0, 0, 2], shape=(3,), dtype=np.int64), 3)
    Tensor([3., 0., 4.], shape=(3,), dtype=float32, NoneTape)
    """
    check_tensor("segment_sum", "the first operand", x)
    check_numeric("segment_sum", x)
    check_plain("segment_sum", "segments", segments, "they are positions: write them as integers")
    number = as_size("segment_sum", "count", count)
    if x._array.ndim == 0 or segments._array.shape != x._array.shape[:1]:
        shapes = sized(x._array.shape), sized(segments._array.shape)
        raise refusal(lambda: check_segments("segment_sum", *shapes))
    check_labels("segment_sum", segments, number, names=("segments", "segments"))
    return apply(indexing.segment_sum, (x, segments), (number,), keeps_dtype=False)


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
    inputs, output, sizes = rules.einsum(
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
