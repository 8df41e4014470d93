"""numpy's complaints about the operands of an op, in words that say what to write instead."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from traceback import walk_tb
from typing import Any, Final

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
from tapetensor.pictures.places import is_users_module
from tapetensor.rules.broadcasting import broadcast
from tapetensor.rules.dims import ONE, Dims, sized
from tapetensor.rules.joining import concat, stack
from tapetensor.rules.products import matmul, solve
from tapetensor.tape import Kernel
from tapetensor.tape.history import op_name
from tapetensor.tensor.base import TensorBase

_CURES = {
    "linear": "the last axis of the input must have the size in_features of the layer",
    "max": "there is no largest element of none",
    "min": "there is no smallest element of none",
    "median": "there is no middle element of none",
    "quantile": "there is no element of none",
}


_OF_TWO: Final[dict[str, Callable[[str, Dims, Dims], object]]] = {"matmul": matmul, "solve": solve}


def complaint(
    kernel: Kernel,
    operands: tuple[TensorBase[Any, Any, Any], ...],
    error: Exception,
    options: tuple[Any, ...] = (),
) -> TapeTensorError:
    """Return numpy's complaint as an error of ours that names the op and its operands.

    What a rule says replaces numpy's words; other errors quote them.
    """
    return _said(kernel, operands, error, options).with_traceback(None)


def shown_cause(error: Exception) -> Exception | None:
    """Return an error if it leads to a line of the user's, in a kernel of their own."""
    frames = [frame for frame, _ in walk_tb(error.__traceback__)]
    return error if any(is_users_module(one.f_globals.get("__name__")) for one in frames) else None


def _said(
    kernel: Kernel,
    operands: tuple[TensorBase[Any, Any, Any], ...],
    error: Exception,
    options: tuple[Any, ...],
) -> TapeTensorError:
    op = op_name(kernel)
    if isinstance(error, UnrecordedError):
        return HigherOrderError(no_higher_order(op, error))
    try:
        check_one_library(op, [*[operand._array for operand in operands], *options])
    except TapeTensorError as refused:
        return refused
    dtypes = " and ".join([str(operand._array.dtype) for operand in operands])
    if isinstance(error, OverflowError):
        return DTypeError(f"{op}: a number does not fit dtype {dtypes} ({error})")
    if isinstance(error, TypeError):
        return DTypeError(f"{op}: not defined for dtype {dtypes} ({error})")
    shapes = [operand._array.shape for operand in operands]
    shown = " and ".join(map(str, shapes))
    if isinstance(error, np.linalg.LinAlgError):
        return ArgumentValueError(f"{op}: no answer for {shown} ({error})")
    is_broadcast = "broadcast" in str(error)
    try:
        _ask_rule(kernel, [sized(shape) for shape in shapes], broadcasts=is_broadcast)
    except ShapeError as refused:
        return refused
    other = "reshape or broadcast_to one of them" if is_broadcast else str(error)
    return ShapeError(f"{op}: shapes {shown} do not fit; {_CURES.get(op, other)}")


def _ask_rule(kernel: Kernel, shapes: list[Dims], *, broadcasts: bool) -> None:
    """Raise ShapeError if the rule of an op that numpy has refused says why."""
    op = op_name(kernel)
    if op in _OF_TWO:
        _OF_TWO[op](op, *shapes)
    elif op in ("concat", "stack") and isinstance(kernel, partial):
        axis: int = kernel.keywords["axis"]
        _ = concat(op, shapes, axis) if op == "concat" else stack(op, shapes, axis, ONE)
    elif broadcasts:
        broadcast(op, shapes)


def no_higher_order(op: str, error: UnrecordedError) -> str:
    """Return the message that an op cannot be differentiated twice."""
    return (
        f"{op}: no derivative of higher order, for it {error}; write it by other ops, or detach() "
        "what counts as a constant"
    )
