"""Choosing elements: the larger, the smaller, or by a mask."""

# Where an operand fits in more than one way (a dim may be 1, or Any) the overloads overlap; they
# give the same shape there, and the first that fits is taken.
# mypy: disable-error-code="overload-overlap"

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, overload

import numpy as np
from typing_extensions import TypeVar

from tapetensor.errors import ArgumentTypeError, DTypeError, TapeTensorError, cut_traceback
from tapetensor.kernels import arithmetic, indexing
from tapetensor.tape import Kernel, NoneTape, OwnedTape
from tapetensor.tensor.apply import apply
from tapetensor.tensor.base import TensorBase, check_same_dtype, check_tensor
from tapetensor.tensor.operands import OPERAND, as_scalar, number_like
from tapetensor.tensor.signatures import binary_operator, same_signature
from tapetensor.typing import D, Ds, F, M, N, R, S, T

if TYPE_CHECKING:
    from tapetensor.tensor.tensor import Joins, Tensor

_ShapeOfMask = TypeVar("_ShapeOfMask", contravariant=True)


class Mask(Protocol[_ShapeOfMask]):
    """A plain bool tensor of a shape.

    Contravariant, so that mypy takes the shape from the operands and compares. From an invariant
    mask it would take it too, and join a name there and a literal of the operands to `Any`.
    """

    @property
    def tape_type(self) -> type[NoneTape]:
        """The state of the tape: there is none."""

    def _takes_part(self, shape: _ShapeOfMask, dtype: np.bool_, /) -> None: ...


@same_signature(binary_operator)
def maximum(
    lhs: Tensor[Any, Any, Any], rhs: Tensor[Any, Any, Any] | float, /
) -> Tensor[Any, Any, Any]:
    """Return the larger of two, element by element.

    Shape: numpy's broadcasting.
    Derivative: 1 for the larger operand, 0 for the other; one half each where they are equal; 1
        for both where one is NaN, and so the result.

    >>> import tapetensor as tt
    >>> tt.maximum(tt.from_numpy([1.0, 5.0], shape=(2,)), 3.0)
    Tensor([3., 5.], shape=(2,), dtype=float32, NoneTape)
    """
    return _extreme(arithmetic.maximum, arithmetic.maximum_number, lhs, rhs)


@same_signature(binary_operator)
def minimum(
    lhs: Tensor[Any, Any, Any], rhs: Tensor[Any, Any, Any] | float, /
) -> Tensor[Any, Any, Any]:
    """Return the smaller of two, element by element.

    Shape: numpy's broadcasting.
    Derivative: 1 for the smaller operand, 0 for the other; one half each where they are equal; 1
        for both where one is NaN, and so the result.

    >>> import tapetensor as tt
    >>> tt.minimum(tt.from_numpy([1.0, 5.0], shape=(2,)), 3.0)
    Tensor([1., 3.], shape=(2,), dtype=float32, NoneTape)
    """
    return _extreme(arithmetic.minimum, arithmetic.minimum_number, lhs, rhs)


@overload
def where(mask: Mask[S], lhs: Tensor[S, T, F], rhs: float, /) -> Tensor[S, T, F]: ...
@overload
def where(mask: Mask[S], lhs: float, rhs: Tensor[S, T, F], /) -> Tensor[S, T, F]: ...
@overload
def where(mask: Mask[S], lhs: Tensor[S, T, R], rhs: int, /) -> Tensor[S, T, R]: ...
@overload
def where(mask: Mask[S], lhs: int, rhs: Tensor[S, T, R], /) -> Tensor[S, T, R]: ...
@overload
def where(mask: Mask[S], lhs: Tensor[S, T, D], rhs: Joins[S, T, D], /) -> Tensor[S, T, D]: ...
@overload
def where(
    mask: Mask[S], lhs: Tensor[S, NoneTape, D], rhs: Tensor[S, T, D], /
) -> Tensor[S, T, D]: ...
@overload
def where(
    mask: Mask[S], lhs: Tensor[S, T, D], rhs: Tensor[S, OwnedTape, D], /
) -> Tensor[S, OwnedTape, D]: ...
@overload
def where(
    mask: Mask[tuple[M, N]], lhs: Tensor[tuple[*Ds, M, N], T, F], rhs: float, /
) -> Tensor[tuple[*Ds, M, N], T, F]: ...
@overload
def where(
    mask: Mask[tuple[M, N]], lhs: Tensor[tuple[*Ds, M, N], T, R], rhs: int, /
) -> Tensor[tuple[*Ds, M, N], T, R]: ...
def where(
    mask: Mask[Any], lhs: Tensor[Any, Any, Any] | float, rhs: Tensor[Any, Any, Any] | float, /
) -> Tensor[Any, Any, Any]:
    """Return `lhs` where a mask holds and `rhs` elsewhere.

    Shape: numpy's broadcasting of all three.
    Derivative: 1 for the operand that was chosen, 0 for the other. Both are computed, and 0 times
        an infinite derivative is NaN: of ``where(x > 0, x.sqrt(), 0)`` at 0. Choose before the op:
        ``where(x > 0, where(x > 0, x, 1).sqrt(), 0)``.

    Raises:
        DTypeError: if `mask` is not bool, or the dtypes of the operands differ.
        ArgumentTypeError: if neither operand is a tensor.

    >>> import tapetensor as tt
    >>> x = tt.from_numpy([-1.0, 5.0], shape=(2,))
    >>> tt.where(x > 0.0, x, 0.0)
    Tensor([0., 5.], shape=(2,), dtype=float32, NoneTape)
    """
    check_tensor("where", "the mask", mask)
    chosen: Any = mask
    if chosen._array.dtype != np.bool_:
        raise DTypeError(
            f"where: the mask must be bool, got {chosen._array.dtype}; compare (x > 0)"
        )
    if isinstance(lhs, TensorBase) and isinstance(rhs, TensorBase):
        check_same_dtype("where", (lhs, rhs))
        return apply(indexing.where, (lhs, rhs, chosen), keeps_dtype=False)
    if isinstance(lhs, TensorBase):
        value = number_like("where", OPERAND, lhs, rhs)
        return apply(indexing.where_number, (lhs, chosen), (value,), keeps_dtype=False)
    if isinstance(rhs, TensorBase):
        value = number_like("where", OPERAND, rhs, lhs)
        return apply(indexing.where_number, (rhs, ~chosen), (value,), keeps_dtype=False)
    raise ArgumentTypeError("where: at least one of the two values must be a tensor")


def _extreme(
    kernel: Kernel, number_kernel: Kernel, lhs: TensorBase[Any, Any, Any], rhs: object
) -> Tensor[Any, Any, Any]:
    try:
        op = kernel.__name__
        check_tensor(op, "the left operand", lhs)
        if isinstance(rhs, TensorBase):
            return apply(kernel, (lhs, rhs))
        return apply(number_kernel, (lhs,), (as_scalar(op, OPERAND, rhs),))
    except TapeTensorError as error:
        cut_traceback(error)
        raise
