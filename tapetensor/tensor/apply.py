"""The one place where an op meets a tape.

Every op of the library goes through `apply`: it takes the tapes out of the operands, runs the
kernel, records it, and puts the tape on the result. Nothing else does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tapetensor.errors import DTypeError, MovedTensorError, ShapeError, TapeTensorError
from tapetensor.ids import next_id
from tapetensor.tape import Kernel, OwnedTape
from tapetensor.tensor.base import (
    TensorBase,
    check_not_spent,
    check_same_dtype,
    moved_error,
    op_name,
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
    x = operands[0]
    tape: Any = x._tape
    if len(operands) == 1:
        if tape is not None and tape.__class__ is not OwnedTape:
            raise moved_error(op_name(kernel), x, op_name(tape))
        owners: tuple[TensorBase[Any, Any, Any], ...] = operands
        parents: tuple[int, ...] = (x._id,)
    else:
        owners = _owners(kernel, operands)
        parents = tuple([operand._id for operand in operands])
        if keeps_dtype:
            check_same_dtype(op_name(kernel), operands)
    try:
        if len(operands) == 1:
            output, pullbacks = kernel(x._data, *options) if options else kernel(x._data)
        else:
            output, pullbacks = kernel(*[operand._data for operand in operands], *options)
    except TapeTensorError:
        raise
    except (ValueError, TypeError, IndexError) as error:
        raise _explained(kernel, operands, error) from error
    if keeps_dtype and output.dtype is not x._data.dtype:
        _check_result_dtype(kernel, x, output)

    # From here on nothing can fail: the operands change all together or not at all.
    result: Tensor[Any, Any, Any] = _new(x.__class__)
    result._data = output
    result._id = output_id = next_id()
    result._tape = None
    if tape is not None or owners is not operands:
        for owner in owners:
            if result._tape is None:
                result._tape = tape = owner._tape
            else:
                tape.merge(owner._tape)
            owner._tape = kernel
        if tape is not None:
            tape.records[output_id] = (kernel, pullbacks, parents)
    return result


def _owners(
    kernel: Kernel, operands: tuple[TensorBase[Any, Any, Any], ...]
) -> tuple[TensorBase[Any, Any, Any], ...]:
    """Return the operands that own a tape, after checking that each may be moved, once."""
    owners = [operand for operand in operands if operand._tape is not None]
    for position, owner in enumerate(owners):
        if owner._tape.__class__ is not OwnedTape:
            check_not_spent(op_name(kernel), owner)
        if any(owner is earlier for earlier in owners[:position]):
            raise MovedTensorError(
                f"{op_name(kernel)}: the tensor of shape {owner._data.shape} is given twice and "
                "owns one tape, which the first use takes; write "
                "x.with_empty_tape() for one of the two"
            )
    return tuple(owners)


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
    shapes = " and ".join(str(operand._data.shape) for operand in operands)
    dtypes = " and ".join(str(operand._data.dtype) for operand in operands)
    op = op_name(kernel)
    if isinstance(error, TypeError):
        return DTypeError(f"{op}: not defined for dtype {dtypes} ({error})")
    cure = _CURES.get(op, "reshape or broadcast_to one of them")
    return ShapeError(f"{op}: shapes {shapes} do not fit ({error}); {cure}")


_CURES = {
    "matmul": "the last axis of the left operand must have the size of the second-last of the "
    "right one: (..., M, K) @ (..., K, N); transpose() swaps the last two",
    "concat": "all axes but the concatenated one must have equal sizes",
    "stack": "all shapes must be equal",
    "max": "there is no largest element of none",
    "min": "there is no smallest element of none",
}
