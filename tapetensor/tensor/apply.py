"""The one place where an op meets a tape.

Every op of the library goes through `apply`: it takes the tapes out of the operands, runs the
kernel, records it, and puts the tape on the result. Nothing else does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tapetensor.errors import DTypeError, MovedTensorError, ShapeError, TapeTensorError
from tapetensor.ids import next_id
from tapetensor.recorder import op_name
from tapetensor.tape import Kernel, OwnedTape
from tapetensor.tensor.base import (
    TensorBase,
    check_same_dtype,
    moved_error,
)

if TYPE_CHECKING:
    from tapetensor.gradients import Array
    from tapetensor.tensor.tensor import Tensor

_new: Any = object.__new__


def apply(
    kernel: Kernel,
    operands: tuple[TensorBase[Any, Any, Any], ...],
    options: tuple[Any, ...] = (),
    *,
    keeps_dtype: bool = True,
) -> Tensor[Any, Any, Any]:
    """Run `kernel` on the operands; the result owns their tapes, merged, and they are spent.

    Operands without a tape stay as they are, and when none has one nothing is recorded. If the
    kernel fails, no operand is spent.

    Args:
        kernel: the operands' arrays and `options` in, the output and one pullback per operand out.
        operands: one tensor or more.
        options: further arguments of the kernel, which are not differentiated.
        keeps_dtype: whether all operands and the result have one dtype.

    Raises:
        MovedTensorError: if an operand is spent, or one that owns a tape is given twice.
        DTypeError: if `keeps_dtype` and dtypes differ, or the kernel is not defined for the dtype.
        ShapeError: if the kernel does not accept the shapes.
    """
    # The common cases, one operand and a plain second one, are checked here; `_check_operands`
    # checks all of them, and this function is most of what a small op costs.
    x = operands[0]
    data = x._data
    tape: Any = x._tape
    count = len(operands)
    y = operands[-1]
    only_x_may_own = count <= 2 and (tape is None or tape.__class__ is OwnedTape)
    if count == 2:
        is_plain = y._tape is None and (y._data.dtype is data.dtype or not keeps_dtype)
        only_x_may_own = only_x_may_own and is_plain
    if not only_x_may_own:
        tape = _check_operands(kernel, operands, keeps_dtype=keeps_dtype)
    try:
        if options or count > 2:
            output, pullbacks = kernel(*[operand._data for operand in operands], *options)
        elif count == 1:
            output, pullbacks = kernel(data)
        else:
            output, pullbacks = kernel(data, y._data)
    except TapeTensorError:
        raise
    except (ValueError, TypeError, IndexError, OverflowError) as error:
        raise _explained(kernel, operands, error) from error
    if keeps_dtype and output.dtype is not data.dtype:
        _check_result_dtype(kernel, x, output)

    # From here on nothing can fail: the operands change all together or not at all.
    result: Tensor[Any, Any, Any] = _new(x.__class__)
    result._data = output
    result._id = output_id = next_id()
    result._tape = tape
    if tape is not None:
        if only_x_may_own:
            x._tape = kernel
        else:
            _take_tapes(kernel, operands, tape)
        tape.records[output_id] = (
            (kernel, pullbacks[0], x._id)
            if count == 1
            else (kernel, pullbacks, tuple([operand._id for operand in operands]))
        )
    return result


def _take_tapes(
    kernel: Kernel, operands: tuple[TensorBase[Any, Any, Any], ...], tape: OwnedTape
) -> None:
    """Merge the tapes of all operands into `tape`, and spend those that owned one."""
    for operand in operands:
        held = operand._tape
        if isinstance(held, OwnedTape):
            if held is not tape:
                tape.merge(held)
            operand._tape = kernel


def _check_operands(
    kernel: Kernel, operands: tuple[TensorBase[Any, Any, Any], ...], *, keeps_dtype: bool
) -> OwnedTape | None:
    """Return one of the tapes that the operands own, after checking that all may be moved."""
    tape = None
    dtype = operands[0]._data.dtype
    for operand in operands:
        held = operand._tape
        if held is not None:
            if not isinstance(held, OwnedTape):
                raise moved_error(op_name(kernel), operand, op_name(held))
            if tape is not None:
                _check_given_once(kernel, operands)
            tape = held
        if keeps_dtype and operand._data.dtype is not dtype:
            check_same_dtype(op_name(kernel), operands)
    return tape


def _check_given_once(kernel: Kernel, operands: tuple[TensorBase[Any, Any, Any], ...]) -> None:
    """Raise MovedTensorError if one tensor that owns a tape is given as two operands."""
    owners = [operand for operand in operands if operand._tape is not None]
    for position, owner in enumerate(owners):
        if any(owner is earlier for earlier in owners[:position]):
            raise MovedTensorError(
                f"{op_name(kernel)}: the tensor of shape {owner._data.shape} is given twice and "
                "owns one tape, which the first use takes; write "
                "x.with_empty_tape() for one of the two"
            )


def _check_result_dtype(kernel: Kernel, x: TensorBase[Any, Any, Any], output: Array) -> None:
    if output.dtype == x._data.dtype:
        return
    raise DTypeError(
        f"{op_name(kernel)}: not defined for dtype {x._data.dtype}, the result would be "
        f"{output.dtype}; convert first with x.astype(np.float32)"
    )


def _explained(
    kernel: Kernel, operands: tuple[TensorBase[Any, Any, Any], ...], error: Exception
) -> TapeTensorError:
    """Return numpy's complaint as an error of ours that names the op and its operands."""
    op = op_name(kernel)
    dtypes = " and ".join([str(operand._data.dtype) for operand in operands])
    if isinstance(error, OverflowError):
        return DTypeError(f"{op}: a number does not fit dtype {dtypes} ({error})")
    if isinstance(error, TypeError):
        return DTypeError(f"{op}: not defined for dtype {dtypes} ({error})")
    shapes = [operand._data.shape for operand in operands]
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


_CURES = {
    "matmul": "the leading axes must broadcast",
    "linear": "the last axis of the input must have the size in_features of the layer",
    "concat": "all axes but the concatenated one must have equal sizes",
    "stack": "all shapes must be equal",
    "max": "there is no largest element of none",
    "min": "there is no smallest element of none",
}
