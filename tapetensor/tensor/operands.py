"""The right operands of binary operators, and how the operators are run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from typing_extensions import TypeVar

from tapetensor.arrays.stand_ins import Captured
from tapetensor.errors import ArgumentTypeError, DTypeError, TapeTensorError, cut_traceback
from tapetensor.tape import Kernel, Tape
from tapetensor.tensor.apply import apply, apply_pair
from tapetensor.tensor.base import TensorBase

if TYPE_CHECKING:
    from tapetensor.tensor.tensor import Tensor

# Beside a plain left operand the right one gives the tape state; else the left one does, and the
# right one is plain or in the same state. That covers all four combinations, and type variables.
TapeOfRhs = TypeVar("TapeOfRhs", bound=Tape)

# The name of what stands beside a tensor, and might be one too.
OPERAND = "the other operand"


def as_scalar(op: str, name: str, value: object) -> float:
    """Return `value` as a plain Python number, which takes the dtype of the tensor beside it.

    Args:
        op: the name of the op for the message.
        name: the argument's, or `OPERAND`.
        value: any real number, infinite ones and those that a recorded program computes too.

    Raises:
        ArgumentTypeError: if it is not a real number.
    """
    kind = type(value)
    if kind is float or kind is int:
        return value  # type: ignore[return-value]  # its exact class was just looked at
    if isinstance(value, Captured) and isinstance(value, int | float | np.integer | np.floating):
        # A number that a program will compute.
        # As below, one of numpy's would impose its own dtype.
        scalar: Any = value
        number: float = scalar.item() if isinstance(value, np.generic) else scalar
        return number
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        # A numpy scalar would impose its own dtype.
        return float(value)
    wanted, cure = "a number", ""
    if name == OPERAND:
        wanted = "a tensor or a number"
        cure = "; wrap numpy arrays and lists with tt.from_numpy(...)"
    raise ArgumentTypeError(f"{op}: {name} must be {wanted}, got {value.__class__.__name__}{cure}")


def binary(
    kernel: Kernel, number_kernel: Kernel, lhs: TensorBase[Any, Any, Any], rhs: object
) -> Tensor[Any, Any, Any]:
    """Run the kernel for two tensors, or the one for a tensor and a number."""
    try:
        if rhs.__class__ is float:
            return apply(number_kernel, (lhs,), (rhs,))
        if isinstance(rhs, TensorBase):
            return apply_pair(kernel, lhs, rhs)
        return apply(number_kernel, (lhs,), (as_scalar(kernel.__name__, OPERAND, rhs),))
    except TapeTensorError as error:
        cut_traceback(error)
        raise


def number_like(op: str, name: str, tensor: TensorBase[Any, Any, Any], value: object) -> float:
    """Return `value` as a plain number that the dtype of `tensor` can hold.

    Raises:
        ArgumentTypeError: if it is not a real number.
        DTypeError: if it does not fit.
    """
    number = as_scalar(op, name, value)
    dtype = tensor._array.dtype
    if dtype.kind == "f":
        return number
    # numpy would wrap a number that is too large, and promote a mask to integers.
    if isinstance(number, int) and dtype.kind in "iu":
        limits = np.iinfo(dtype)
        if limits.min <= number <= limits.max:
            return number
    raise DTypeError(f"{op}: the number {value!r} does not fit dtype {dtype}")
