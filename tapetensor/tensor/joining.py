"""Putting tensors together along an axis, an existing one or a new one."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Literal, Never, overload

from tapetensor.arguments import normalize_axis
from tapetensor.arguments.spellings import no_such_argument
from tapetensor.errors import (
    ArgumentTypeError,
)
from tapetensor.kernels import (
    shape as shape_kernels,
)
from tapetensor.tape import NoneTape
from tapetensor.tensor.apply import apply
from tapetensor.tensor.base import TensorBase, check_tensor
from tapetensor.tensor.tensor import Joins, Tensor
from tapetensor.typing import B, D, Ds, K, M, N, P, T


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
    """Return a sequence of tensors as a tuple.

    Raises:
        ArgumentTypeError: if it is empty, or holds something else.
    """
    if not isinstance(tensors, Sequence) or isinstance(tensors, str) or not tensors:
        raise ArgumentTypeError(f"{op}: expected one tensor or more in a tuple or list")
    for tensor in tensors:
        check_tensor(op, "an operand", tensor)
    return tuple(tensors)
