"""Users' own ops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, overload

from typing_extensions import TypeVar

from tapetensor.arguments import as_shape, check_function
from tapetensor.arrays.array import Array, as_array, read_only
from tapetensor.arrays.stand_ins import StandIn
from tapetensor.errors import ArgumentTypeError, ArgumentValueError, DTypeError, ShapeError
from tapetensor.tape import Kernel, NoneTape, Pullback, Pullbacks
from tapetensor.tape.history import op_name
from tapetensor.tensor.apply import apply
from tapetensor.tensor.base import check_tensor
from tapetensor.tensor.operands import TapeOfRhs
from tapetensor.tensor.tensor import Joins, Tensor
from tapetensor.typing import R, T

NewShape = TypeVar("NewShape", bound=tuple[Any, ...])

_PROMOTED = "a number from numpy imposes its own dtype, write float(...) around it"


@overload
def custom_op(
    kernel: Kernel, x: Tensor[Any, T, R], /, *others: Joins[Any, T, R], shape: NewShape
) -> Tensor[NewShape, T, R]: ...
@overload
def custom_op(
    kernel: Kernel,
    x: Tensor[Any, NoneTape, R],
    y: Tensor[Any, TapeOfRhs, R],
    /,
    *others: Joins[Any, TapeOfRhs, R],
    shape: NewShape,
) -> Tensor[NewShape, TapeOfRhs, R]: ...
@overload
def custom_op(
    kernel: Kernel,
    x: Tensor[Any, NoneTape, R],
    y: Tensor[Any, NoneTape, R],
    z: Tensor[Any, TapeOfRhs, R],
    /,
    *others: Joins[Any, TapeOfRhs, R],
    shape: NewShape,
) -> Tensor[NewShape, TapeOfRhs, R]: ...
def custom_op(
    kernel: Callable[..., Any], *operands: Tensor[Any, Any, Any], shape: tuple[int, ...]
) -> Tensor[Any, Any, Any]:
    """Return the output of your own kernel, as an op like any other.

        output, pullbacks = kernel(*arrays)

    Shape: ``shape``, which types the result, and which the output is held to.
    Derivative: that of the pullbacks; `tapetensor.testing.check_grad` tells whether they are
        right.

    Args:
        kernel: takes one array per operand, read-only, and returns the output and a tuple of one
            pullback per operand: a function from the cotangent of the output to that of the
            operand, or None for an operand that has no derivative. What it returns is copied, so
            a buffer may serve several. Give settings to it with
            `functools.partial`. The output must be an array that nobody writes to any more: not a
            buffer that the next call fills again. Its name, less an ending "_kernel", is that of
            the op in messages.
        *operands: one tensor or more, of one dtype, which is that of the output too.
        shape: the shape of the output: ``x.shape`` for an op that acts element by element, ``()``
            for a total, ``(rows, columns)`` from the dims of the operands.

    Raises:
        ArgumentTypeError: if `kernel` is not callable, an operand is not a tensor, or the kernel
            does not return an array and a tuple of pullbacks.
        ArgumentValueError: if there are no operands, there is not one pullback per operand, or the
            kernel (or, in the backward pass, a pullback) writes to an array that it was given.
        ShapeError: if the output does not have `shape`, or, in the backward pass, a pullback
            returns another shape than that of its operand.
        DTypeError: if the dtypes of the operands and of the output differ, or, in the backward
            pass, a pullback returns another dtype.

    Source: `tapetensor.kernels`, which is written in the same form.

    >>> import numpy as np
    >>> import tapetensor as tt
    >>> def softsign_kernel(x):
    ...     scale = 1 + np.abs(x)
    ...     return x / scale, (lambda g: g / scale**2,)
    >>> def softsign(x):
    ...     return tt.custom_op(softsign_kernel, x, shape=x.shape)
    >>> softsign(tt.from_numpy([1.0, -3.0], shape=(2,)))
    Tensor([ 0.5 , -0.75], shape=(2,), dtype=float32, NoneTape)
    """
    check_function("custom_op", "the kernel", kernel)
    op = _op_of(kernel)
    if not operands:
        raise ArgumentValueError(f"{op}: give at least one tensor to compute from")
    for position, operand in enumerate(operands):
        check_tensor(op, f"operand {position}", operand)
    return apply(_held(kernel, as_shape(op, shape)), operands)


def _held(kernel: Kernel, shape: tuple[int, ...]) -> Kernel:
    """Return a user's kernel, held to what the kernels of the library keep by themselves."""
    op = _op_of(kernel)

    def held(*arrays: Array) -> tuple[Array, Pullbacks]:
        returned = _unwritten(op, "the kernel", kernel, arrays)
        if not isinstance(returned, tuple) or len(returned) != 2:
            raise ArgumentTypeError(
                f"{op}: the kernel must return (output, pullbacks), "
                f"got {type(returned).__name__}; write return y, (lambda g: ...,)"
            )
        output = as_array(op, "the output of the kernel", returned[0])
        if output.shape != shape:
            raise ShapeError(
                f"{op}: the kernel returned shape {output.shape}, not the declared shape={shape}"
            )
        if output.dtype != arrays[0].dtype:
            raise DTypeError(
                f"{op}: the kernel returned dtype {output.dtype}, the operands have "
                f"dtype {arrays[0].dtype}; {_PROMOTED}"
            )
        return output, _pullbacks(op, returned[1], arrays)

    held.__name__ = op
    return held


def _pullbacks(op: str, pullbacks: object, arrays: tuple[Array, ...]) -> Pullbacks:
    if not isinstance(pullbacks, tuple):
        raise ArgumentTypeError(
            f"{op}: the pullbacks must be a tuple, one per operand, "
            f"got {type(pullbacks).__name__}; write return y, (lambda g: ...,)"
        )
    if len(pullbacks) != len(arrays):
        raise ArgumentValueError(
            f"{op}: {len(arrays)} operands need {len(arrays)} pullbacks, the kernel "
            f"returned {len(pullbacks)}; None stands for an operand without a derivative"
        )
    for position, pullback in enumerate(pullbacks):
        if pullback is not None and not callable(pullback):
            raise ArgumentTypeError(
                f"{op}: the pullback of operand {position} must be a function or "
                f"None, got {type(pullback).__name__}"
            )
    return tuple(
        [
            None if pullback is None else _checked(op, position, pullback, operand)
            for position, (pullback, operand) in enumerate(zip(pullbacks, arrays, strict=True))
        ]
    )


def _op_of(kernel: Kernel) -> str:
    return op_name(kernel).removesuffix("_kernel") or op_name(kernel)


def _checked(op: str, position: int, pullback: Pullback, operand: Array) -> Pullback:
    """Return the pullback with its result held to the shape and the dtype of the operand."""
    name = f"the pullback of operand {position}"
    shape, dtype = operand.shape, operand.dtype

    def checked(g: Array) -> Array:
        cotangent: Any = as_array(op, f"the result of {name}", _unwritten(op, name, pullback, (g,)))
        if cotangent.shape != shape:
            raise ShapeError(
                f"{op}: {name} returned shape {cotangent.shape}, the operand has shape {shape}; "
                "sum over the axes that were broadcast"
            )
        if cotangent.dtype != dtype:
            raise DTypeError(
                f"{op}: {name} returned dtype {cotangent.dtype}, the operand has dtype {dtype}; "
                f"{_PROMOTED}"
            )
        # A copy, for the pullback may fill the same buffer again: for another operand, or at the
        # next call. What is recorded or captured has its own rules for writes.
        if not isinstance(cotangent, StandIn):
            cotangent = cotangent.copy()
        result: Array = cotangent
        return result

    return checked


def _unwritten(
    op: str, name: str, function: Callable[..., Any], arrays: tuple[Array, ...]
) -> object:
    """Call a function of arrays with views that it cannot write to."""
    try:
        return function(*map(read_only, arrays))
    except ValueError as error:
        if "read-only" in str(error):
            raise ArgumentValueError(
                f"{op}: {name} writes to an array that it was given ({error}); others read it too, "
                "so make a new one: y = x * 2, not x *= 2"
            ) from error
        raise
