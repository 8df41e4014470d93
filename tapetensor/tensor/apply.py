"""The one place where an op meets a tape.

Every op of the library goes through `apply`, or through one of the two functions beside it: they
run the kernel and give the result its tape and its history. Nothing else does. What numpy complains
of the operands is said again in words that say what to write instead.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from traceback import walk_tb
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from tapetensor.arrays.array import Array
from tapetensor.arrays.libraries import beside_captured, check_one_library
from tapetensor.arrays.stand_ins import Recorded, UnrecordedError
from tapetensor.errors import (
    ArgumentValueError,
    DTypeError,
    HigherOrderError,
    ShapeError,
    TapeTensorError,
    cut_traceback,
)
from tapetensor.pictures.places import is_users_module
from tapetensor.rules.broadcasting import broadcast, matmul, solve
from tapetensor.rules.dims import ONE, Dims, sized
from tapetensor.rules.rearranging import concat, stack
from tapetensor.tape import Kernel, OwnedTape, Pullbacks
from tapetensor.tape.history import (
    MOST_IDS,
    OWN,
    History,
    next_id,
    op_name,
    plain_step,
    recorded_step,
    together,
)
from tapetensor.tape.pullbacks import Zero
from tapetensor.tensor.base import TensorBase, check_numeric, check_same_dtype, rewrap

if TYPE_CHECKING:
    from tapetensor.tensor.tensor import Tensor


_new: Any = object.__new__
_BOOL = np.dtype(np.bool_)
# What arrays nearly always are, so that nothing more is asked of them.
_NUMPYS = frozenset({np.ndarray, np.float32, np.float64})

# The outputs, the ids of the parents, for each output one pullback per parent, and the histories of
# those that are no operands.
Enclosed: TypeAlias = tuple[list[Array], tuple[int, ...], list[Pullbacks], list[History]]


def apply(
    kernel: Kernel,
    operands: tuple[TensorBase[Any, Any, Any], ...],
    options: tuple[Any, ...] = (),
    *,
    keeps_dtype: bool = True,
) -> Tensor[Any, Any, Any]:
    """Run `kernel` on the operands, and give the result its tape and its history.

    The operands stay as they are. The result has a tape if one of them has, and what came before
    all of them is before it.

    Args:
        kernel: the operands' arrays and `options` in, the output and one pullback per operand out.
        operands: one tensor or more.
        options: further arguments of the kernel, which are not differentiated.
        keeps_dtype: whether all operands and the result have one dtype.

    Raises:
        TapeClosedError: if the tape of an operand is closed.
        DTypeError: if `keeps_dtype` and dtypes differ, or the kernel is not defined for the dtype.
        ShapeError: if the kernel does not accept the shapes.
    """
    # One operand is the common case. What it needs is checked here, in no more steps than it takes:
    # this function is most of what a small op costs.
    x = operands[0]
    data = x._array
    tape: Any = x.tape
    is_alone = len(operands) == 1 and (tape is None or tape.__class__ is OwnedTape)
    try:
        if not is_alone:
            tape = _common_tape(kernel, operands, keeps_dtype=keeps_dtype)
            output, pullbacks = kernel(*_arrays(kernel, operands, tape), *options)
        elif not options:
            output, pullbacks = kernel(data)
        elif len(options) == 1:
            # To unpack them costs as much as two checks.
            output, pullbacks = kernel(data, options[0])
        else:
            output, pullbacks = kernel(data, *options)
    except TapeTensorError as error:
        cut_traceback(error)
        raise
    except (ValueError, TypeError, IndexError, OverflowError) as error:
        raise complaint(kernel, operands, error, options) from shown_cause(error)
    if keeps_dtype and output.dtype is not data.dtype:
        _check_result_dtype(kernel, x, output)

    result: Tensor[Any, Any, Any] = _new(x.__class__)
    result._array = output
    result._id = output_id = next_id()
    result.tape = tape
    if is_alone and pullbacks[0] is not None:
        # Written out, as is the pair below: it is on the way of every small op.
        history: Any = x.history
        if tape is not None:
            result.history = [output_id, kernel, pullbacks[0], x._id, history, 0]
        elif pullbacks[0].__class__ is Zero:
            result.history = plain_step(output_id, kernel, pullbacks, operands, options)
        elif history is None:
            result.history = [output_id, kernel, None, (x._id,), None, 1]
        elif history[2] is None and history[5] < MOST_IDS:
            origins = x._id, history
            result.history = [output_id, kernel, None, origins, None, history[5] + 1]
        else:
            result.history = plain_step(output_id, kernel, pullbacks, operands, options)
    elif tape is None:
        result.history = plain_step(output_id, kernel, pullbacks, operands, options)
    else:
        step = recorded_step(output_id, kernel, pullbacks, operands)
        result.history = step if tape.__class__ is OwnedTape else tape.noted(step)
    return result


def apply_pair(
    kernel: Kernel, lhs: TensorBase[Any, Any, Any], rhs: TensorBase[Any, Any, Any]
) -> Tensor[Any, Any, Any]:
    """Do what `apply` does for two operands of one dtype, and no masks.

    With its own few steps for the common case, in which at most one of the two has a tape or both
    have the same: there the tuples and loops for any number of operands would cost as much as a
    small op.
    """
    left, right = lhs._array, rhs._array
    dtype = left.dtype
    tape: Any = lhs.tape
    other = rhs.tape
    try:
        if dtype is _BOOL:
            # numpy would do logic with masks.
            check_numeric(op_name(kernel), lhs)
        if tape is None:
            tape = other
        elif other is not None and other is not tape:
            return apply(kernel, (lhs, rhs))
        if (
            (tape is not None and tape.__class__ is not OwnedTape)
            or right.dtype is not dtype
            or right.__class__ is not left.__class__
        ):
            return apply(kernel, (lhs, rhs))
        output, pullbacks = kernel(left, right)
    except TapeTensorError as error:
        cut_traceback(error)
        raise
    except (ValueError, TypeError) as error:
        raise complaint(kernel, (lhs, rhs), error) from shown_cause(error)
    if output.dtype is not dtype:
        _check_result_dtype(kernel, lhs, output)

    result: Tensor[Any, Any, Any] = _new(lhs.__class__)
    result._array = output
    result._id = output_id = next_id()
    result.tape = tape
    history: Any = lhs.history
    second: Any = rhs.history
    if tape is not None:
        if history is None or history is OWN:
            history = None if second is OWN else second
        elif second is not None and second is not OWN and second is not history:
            history = history, second
        result.history = [output_id, kernel, pullbacks, (lhs._id, rhs._id), history, 0]
    elif second is not None and second is not OWN:
        result.history = plain_step(output_id, kernel, pullbacks, (lhs, rhs))
    elif history is None:
        result.history = [output_id, kernel, None, (lhs._id, rhs._id), None, 2]
    elif history[2] is None and history[5] < MOST_IDS:
        origins = lhs._id, rhs._id, history
        result.history = [output_id, kernel, None, origins, None, history[5] + 2]
    else:
        result.history = plain_step(output_id, kernel, pullbacks, (lhs, rhs))
    return result


def apply_enclosing(
    op: Callable[..., object],
    enclosed: Callable[..., Enclosed],
    operands: tuple[TensorBase[Any, Any, Any], ...],
) -> tuple[Tensor[Any, Any, Any], ...]:
    """Run an op that encloses a function of tensors, whose other operands show as it runs.

    Args:
        op: what the record and messages name.
        enclosed: the operands' arrays in; out come the outputs, the ids of the parents, for each
            output one pullback per parent, and what gradients have to be able to flow on to: the
            histories of what the function closes over.
        operands: one tensor or more, of which one has a tape.

    Raises:
        TapeClosedError: if the tape of an operand is closed.
    """
    tape = _common_tape(op, operands, keeps_dtype=False)
    assert tape is not None
    outputs, parents, pullbacks, histories = enclosed(*_arrays(op, operands, tape))
    histories = [one.history for one in operands] + histories
    results = [rewrap(operands[0], output, next_id(), tape) for output in outputs]
    for result, of_result in zip(results, pullbacks, strict=True):
        step = [result._id, op, of_result, parents, together(histories), 0]
        result.history = step if tape.__class__ is OwnedTape else tape.noted(step)
    return tuple(results)


def _arrays(
    op: Callable[..., object],
    operands: tuple[TensorBase[Any, Any, Any], ...],
    tape: OwnedTape | None,
) -> list[Array]:
    """Return the arrays of the operands.

    Where one is of a derivative of higher order, or has a tape that is, the others become constants
    in it that are known by the ids of their tensors: leafs, to which gradients of the outer order
    flow.
    """
    arrays: list[Any] = [operand._array for operand in operands]
    if _NUMPYS.issuperset(map(type, arrays)) and (tape is None or tape.level is None):
        return arrays
    levels = [array.level for array in arrays if isinstance(array, Recorded)]
    owners = [(one, held.level) for one in operands if (held := one.tape) is not None]
    levels += [owned for _, owned in owners if owned is not None]
    if not levels:
        return [beside_captured(array, arrays) for array in arrays]
    level = max(levels, key=lambda one: one.depth)
    for operand, owned in owners:
        if owned is not level:
            raise HigherOrderError(
                f"{op_name(op)}: inside grad, the tensor of shape {operand._array.shape} has a "
                "tape from outside; give it to grad as another input, or detach() it if it is a "
                "constant"
            )
    return [level.operand(operand._array, operand._id) for operand in operands]


def _common_tape(
    op: Callable[..., object],
    operands: tuple[TensorBase[Any, Any, Any], ...],
    *,
    keeps_dtype: bool,
) -> OwnedTape | None:
    """Return the tape of the result, after a check of the operands' tapes and dtypes."""
    tape = None
    dtype = operands[0]._array.dtype
    for operand in operands:
        held: Any = operand.tape
        if held is not None:
            if held.__class__ is not OwnedTape:
                # Closed, perhaps.
                held.check_usable(op_name(op))
            tape = held if tape is None else tape.common(held)
        if keeps_dtype and operand._array.dtype is not dtype:
            check_same_dtype(op_name(op), operands)
    return tape


def _check_result_dtype(kernel: Kernel, x: TensorBase[Any, Any, Any], output: Array) -> None:
    if output.dtype == x._array.dtype:
        return
    raise DTypeError(
        f"{op_name(kernel)}: not defined for dtype {x._array.dtype}, the result would be "
        f"{output.dtype}; convert first with x.astype(np.float32)"
    )


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
