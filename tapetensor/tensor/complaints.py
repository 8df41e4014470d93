"""numpy's complaints about the operands of an op, in words that say what to write instead."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapetensor.arrays.libraries import check_one_library
from tapetensor.arrays.stand_ins import UnrecordedError
from tapetensor.errors import (
    ArgumentValueError,
    DTypeError,
    HigherOrderError,
    ShapeError,
    TapeTensorError,
)
from tapetensor.tape import Kernel
from tapetensor.tape.recorder import op_name
from tapetensor.tensor.base import TensorBase

_CURES = {
    "matmul": "the leading axes must broadcast",
    "linear": "the last axis of the input must have the size in_features of the layer",
    "concat": "all axes but the concatenated one must have equal sizes",
    "stack": "all shapes must be equal",
    "max": "there is no largest element of none",
    "min": "there is no smallest element of none",
    "median": "there is no middle element of none",
    "quantile": "there is no element of none",
}


def explained(
    kernel: Kernel,
    operands: tuple[TensorBase[Any, Any, Any], ...],
    error: Exception,
    options: tuple[Any, ...] = (),
) -> TapeTensorError:
    """Return numpy's complaint as an error of ours that names the op and its operands."""
    op = op_name(kernel)
    if isinstance(error, UnrecordedError):
        return HigherOrderError(no_higher_order(op, error))
    check_one_library(op, [*[operand.array for operand in operands], *options])
    dtypes = " and ".join([str(operand.array.dtype) for operand in operands])
    if isinstance(error, OverflowError):
        return DTypeError(f"{op}: a number does not fit dtype {dtypes} ({error})")
    if isinstance(error, TypeError):
        return DTypeError(f"{op}: not defined for dtype {dtypes} ({error})")
    shapes = [operand.array.shape for operand in operands]
    if isinstance(error, np.linalg.LinAlgError):
        return ArgumentValueError(f"{op}: no answer for {' and '.join(map(str, shapes))} ({error})")
    if op == "matmul" and len(shapes[0]) >= 1 and len(shapes[1]) >= 1:
        lhs, rhs = shapes
        inner = rhs[-2] if len(rhs) > 1 else rhs[0]
        if lhs[-1] != inner:
            return ShapeError(
                f"matmul: inner dims differ: {lhs} @ {rhs}, {lhs[-1]} != {inner}; "
                "transpose() swaps the last two axes"
            )
    cure = _CURES.get(op)
    if cure is None:
        is_broadcast = "broadcast" in str(error)
        cure = "reshape or broadcast_to one of them" if is_broadcast else str(error)
    return ShapeError(f"{op}: shapes {' and '.join(map(str, shapes))} do not fit; {cure}")


def no_higher_order(op: str, error: UnrecordedError) -> str:
    """Return the message that an op cannot be differentiated twice."""
    return (
        f"{op}: no derivative of higher order, for it {error}; write it by other ops, or detach() "
        "what counts as a constant"
    )
