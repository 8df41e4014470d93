"""What may stand on the right of a binary operator, and how the operator is run."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np
from typing_extensions import TypeVar

from tapetensor.errors import ArgumentTypeError, ArgumentValueError
from tapetensor.tape import Kernel, Tape
from tapetensor.tensor.apply import apply, apply_pair
from tapetensor.tensor.base import TensorBase

if TYPE_CHECKING:
    from tapetensor.tensor.tensor import Tensor

# Beside a plain left operand the right one gives the tape state; else the left one does, and the
# right one is plain or in the same state. That covers all four combinations, and type variables.
TapeOfRhs = TypeVar("TapeOfRhs", bound=Tape)

_LARGEST = sys.float_info.max


def as_number(op: str, value: object, name: str = "") -> float:
    """Return `value` as a plain Python number, which takes the dtype of the tensor beside it.

    Args:
        op: the name of the op for the message.
        value: what is to be a number.
        name: the argument's; empty for an operand, which might be a tensor too.

    Raises:
        ArgumentTypeError: if it is not a real number.
    """
    kind = type(value)
    if kind is float or kind is int:
        return value  # type: ignore[return-value]  # its exact class was just looked at
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        # A numpy scalar would impose its own dtype.
        return float(value)
    if hasattr(value, "record_number"):
        # A number that a recorded program computes.
        number: Any = value
        return number  # type: ignore[no-any-return]  # it stands for one
    if name:
        raise ArgumentTypeError(f"{op}: {name} must be a number, got {type(value).__name__}")
    raise ArgumentTypeError(
        f"{op}: the other operand must be a tensor or a number, got {type(value).__name__}; "
        "wrap numpy arrays and lists with tt.from_numpy(...)"
    )


def as_finite(op: str, name: str, value: object) -> float:
    """Return `value` as a plain Python number.

    Raises:
        ArgumentTypeError: if it is not a real number.
        ArgumentValueError: if it is not finite.
    """
    number = as_number(op, value, name)
    # Not by isfinite, which an int beyond every float does not reach.
    if not -_LARGEST <= number <= _LARGEST:
        raise ArgumentValueError(f"{op}: {name} must be finite, got {value!r}")
    return number


def binary(
    kernel: Kernel, number_kernel: Kernel, lhs: TensorBase[Any, Any, Any], rhs: object
) -> Tensor[Any, Any, Any]:
    """Run the kernel for two tensors, or the one for a tensor and a number."""
    if rhs.__class__ is float:
        return apply(number_kernel, (lhs,), (rhs,))
    if isinstance(rhs, TensorBase):
        return apply_pair(kernel, lhs, rhs)
    return apply(number_kernel, (lhs,), (as_number(kernel.__name__, rhs),))
