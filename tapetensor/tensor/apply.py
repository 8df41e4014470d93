"""The one place where an op meets a tape.

Every op of the library goes through `apply`, or through one of the two functions beside it: they
take the tapes out of the operands, run the kernel, record it, and put the tape on the result.
Nothing else does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tapetensor.arrays.array import Array
from tapetensor.arrays.libraries import beside_captured
from tapetensor.arrays.stand_ins import Recorded
from tapetensor.errors import (
    DTypeError,
    HigherOrderError,
    MovedTensorError,
    TapeClosedError,
    TapeTensorError,
)
from tapetensor.tape import Kernel, OwnedTape, Pullbacks
from tapetensor.tape.gaps import Gap
from tapetensor.tape.gradients import Gradients
from tapetensor.tape.ids import next_id
from tapetensor.tape.origins import MOST_STEPS, PARTED, Origins, shortened
from tapetensor.tape.recorder import Recorder, op_name
from tapetensor.tensor.base import (
    Taker,
    TensorBase,
    check_numeric,
    check_same_dtype,
    moved_error,
    rewrap,
    take_tape,
)
from tapetensor.tensor.complaints import explained

if TYPE_CHECKING:
    from tapetensor.tensor.tensor import Tensor

_new: Any = object.__new__
_BOOL = np.dtype(np.bool_)
# What arrays nearly always are, so that nothing more is asked of them.
_NUMPYS = frozenset({np.ndarray, np.float32, np.float64})

# The outputs, the ids of the parents, for each output one pullback per parent, and the gaps inside.
Enclosed: TypeAlias = tuple[list[Array], tuple[int, ...], list[Pullbacks], dict[int, Gap]]


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
        TapeClosedError: if the tape of an operand is closed.
        DTypeError: if `keeps_dtype` and dtypes differ, or the kernel is not defined for the dtype.
        ShapeError: if the kernel does not accept the shapes.
    """
    # One operand is the common case. What it needs is checked here, in no more steps than it takes:
    # this function is most of what a small op costs.
    x = operands[0]
    data = x.array
    tape: Any = x.tape
    is_alone = len(operands) == 1 and (tape is None or tape.__class__ is OwnedTape)
    if not is_alone:
        tape = _check_operands(kernel, operands, keeps_dtype=keeps_dtype)
    try:
        if not is_alone:
            output, pullbacks = kernel(*_arrays(kernel, operands, tape), *options)
        elif not options:
            output, pullbacks = kernel(data)
        elif len(options) == 1:
            # To unpack them costs as much as two checks.
            output, pullbacks = kernel(data, options[0])
        else:
            output, pullbacks = kernel(data, *options)
    except TapeTensorError:
        raise
    except (ValueError, TypeError, IndexError, OverflowError) as error:
        raise explained(kernel, operands, error, options) from error
    if keeps_dtype and output.dtype is not data.dtype:
        _check_result_dtype(kernel, x, output)

    result: Tensor[Any, Any, Any] = _new(x.__class__)
    result.array = output
    result._id = output_id = next_id()
    result.tape = tape
    if tape is not None:
        if is_alone:
            # Another thread may have spent it while the kernel ran. As in `take_tape`, no thread
            # gets its turn between this question and the assignment.
            is_spent = x.tape is not tape
            if is_spent:
                raise _spent_meanwhile(kernel, x)
            x.tape = kernel
            try:
                tape.records[output_id] = kernel, pullbacks[0], x._id
            except TapeClosedError:
                x.tape = tape
                raise
        else:
            parents = tuple([operand._id for operand in operands])
            _merge_tapes(kernel, operands, tape)
            tape.records[output_id] = kernel, pullbacks, parents
            for operand in operands:
                if operand.origins is not None:
                    _note_unrecorded(kernel, tape, operands, pullbacks)
                    break
        result.origins = None
    elif is_alone:
        # Written out, as is the pair below: it is on the way of every small op.
        if pullbacks[0] is None:
            result.origins = None
        else:
            earlier = x.origins
            steps = 1 if earlier is None else earlier[0] + 1
            origins = steps, x._id, earlier
            result.origins = origins if steps < MOST_STEPS else shortened(origins)
    else:
        result.origins = _origins_of(operands, pullbacks)
    return result


def apply_pair(
    kernel: Kernel, lhs: TensorBase[Any, Any, Any], rhs: TensorBase[Any, Any, Any]
) -> Tensor[Any, Any, Any]:
    """Do what `apply` does for two operands of one dtype, and no masks.

    With its own few steps for the common case, in which at most one of the two owns a tape: there
    the tuples and loops for any number of operands would cost as much as a small op.
    """
    left, right = lhs.array, rhs.array
    dtype = left.dtype
    if dtype is _BOOL:
        # numpy would do logic with masks.
        check_numeric(op_name(kernel), lhs)
    tape: Any = lhs.tape
    owner = lhs
    if tape is None:
        tape = rhs.tape
        owner = rhs
    elif rhs.tape is not None:
        return apply(kernel, (lhs, rhs))
    if (
        (tape is not None and tape.__class__ is not OwnedTape)
        or right.dtype is not dtype
        or right.__class__ is not left.__class__
    ):
        return apply(kernel, (lhs, rhs))
    try:
        output, pullbacks = kernel(left, right)
    except (ValueError, TypeError) as error:
        raise explained(kernel, (lhs, rhs), error) from error
    if output.dtype is not dtype:
        _check_result_dtype(kernel, lhs, output)

    result: Tensor[Any, Any, Any] = _new(lhs.__class__)
    result.array = output
    result._id = output_id = next_id()
    result.tape = tape
    if tape is not None:
        # As in `apply`.
        is_spent = owner.tape is not tape
        if is_spent:
            raise _spent_meanwhile(kernel, owner)
        owner.tape = kernel
        try:
            tape.records[output_id] = kernel, pullbacks, (lhs._id, rhs._id)
        except TapeClosedError:
            owner.tape = tape
            raise
        result.origins = None
        if lhs.origins is not None or rhs.origins is not None:
            _note_unrecorded(kernel, tape, (lhs, rhs), pullbacks)
    else:
        of_lhs, of_rhs = lhs.origins, rhs.origins
        steps = 2
        if of_lhs is not None:
            steps += of_lhs[0]
        if of_rhs is not None:
            steps += of_rhs[0]
        origins = steps, lhs._id, of_lhs, rhs._id, of_rhs
        result.origins = origins if steps < MOST_STEPS else shortened(origins)
    return result


def apply_enclosing(
    op: Callable[..., object],
    enclosed: Callable[..., Enclosed],
    operands: tuple[TensorBase[Any, Any, Any], ...],
) -> tuple[Tensor[Any, Any, Any], ...]:
    """Run an op that encloses a function of tensors, whose other operands show as it runs.

    The results own the tapes of the operands, merged, and those are spent; each of several results
    owns the whole. If it fails, no operand is spent.

    Args:
        op: what the record and messages name.
        enclosed: the operands' arrays in; out come the outputs, the ids of the parents, for each
            output one pullback per parent, and the gaps that the tape of the results has then.
        operands: one tensor or more, of which one owns a tape.

    Raises:
        MovedTensorError: if an operand is spent, or one that owns a tape is given twice.
        TapeClosedError: if the tape of an operand is closed.
    """
    tape = _check_operands(op, operands, keeps_dtype=False)
    outputs, parents, pullbacks, gaps = enclosed(*_arrays(op, operands, tape))

    # Again, for the function may have spent an operand that it closes over.
    tape = _check_operands(op, operands, keeps_dtype=False)
    assert tape is not None
    _merge_tapes(op, operands, tape)
    tape.gaps.update(gaps)
    results = [rewrap(operands[0], output, next_id(), tape) for output in outputs]
    for result, of_result in zip(results, pullbacks, strict=True):
        tape.records[result._id] = (op, of_result, parents)  # type: ignore[assignment]  # named only
    for result in results[1:]:
        result.tape = tape.fork()
    return tuple(results)


def give_tape(
    op: Callable[..., object],
    taken: tuple[OwnedTape, ...],
    carried: tuple[Gradients, ...],
    records: tuple[tuple[int, Pullbacks, tuple[int, ...]], ...],
    gaps: tuple[tuple[int, Gap, Origins], ...] = (),
) -> OwnedTape:
    """Return the tape of a result of an op that was planned beforehand.

    Args:
        op: what the records name.
        taken: the tapes of operands that go into it, checked; all but the first are spent.
        carried: the gradients that it carries beside those of the operands' tapes.
        records: for each result its id, one pullback per parent, and the parents' ids.
        gaps: the ids of the values of gaps inside, the gaps, and the origins of each value.
    """
    tape, *others = (*taken, *map(OwnedTape, carried)) or (OwnedTape(),)
    for other in others:
        tape.merge(other)
    for unique_id, pullbacks, parents in records:
        tape.records[unique_id] = (op, pullbacks, parents)  # type: ignore[assignment]  # named only
    for unique_id, gap, origins in gaps:
        tape.gaps[unique_id] = gap._replace(origins=origins)
    return tape


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
    arrays: list[Any] = [operand.array for operand in operands]
    if _NUMPYS.issuperset(map(type, arrays)) and (tape is None or tape.level is None):
        return arrays
    levels = [array.level for array in arrays if isinstance(array, Recorded)]
    owners = [(one, held.level) for one in operands if isinstance(held := one.tape, OwnedTape)]
    levels += [owned for _, owned in owners if owned is not None]
    if not levels:
        return [beside_captured(array, arrays) for array in arrays]
    level = max(levels, key=lambda one: one.depth)
    for operand, owned in owners:
        if owned is not level:
            raise HigherOrderError(
                f"{op_name(op)}: inside grad, the tensor of shape {operand.array.shape} owns a "
                "tape from outside; give it to grad as another input, or detach() it if it is a "
                "constant"
            )
    return [level.operand(operand.array, operand._id) for operand in operands]


def _note_unrecorded(
    op: Callable[..., object],
    tape: OwnedTape,
    operands: tuple[TensorBase[Any, Any, Any], ...],
    pullbacks: Pullbacks,
) -> None:
    """Note on the tape the plain operands that were computed by ops which are not recorded."""
    for operand, pullback in zip(operands, pullbacks, strict=True):
        is_computed = operand.origins is not None and operand.origins is not PARTED
        if is_computed and operand.tape is None and pullback is not None:
            tape.gaps[operand._id] = Gap.computed(op_name(op), operand)


def _origins_of(
    operands: tuple[TensorBase[Any, Any, Any], ...], pullbacks: Pullbacks
) -> Origins | None:
    """Return the origins of the result of an op on plain tensors; None if it has no derivative."""
    if len(operands) == 3 and None not in pullbacks:
        # Written out, for a layer on input, weight and bias: a loop takes three times as long.
        x, y, z = operands
        of_x, of_y, of_z = x.origins, y.origins, z.origins
        steps = 3
        if of_x is not None:
            steps += of_x[0]
        if of_y is not None:
            steps += of_y[0]
        if of_z is not None:
            steps += of_z[0]
        origins = steps, x._id, of_x, y._id, of_y, z._id, of_z
        return origins if steps < MOST_STEPS else shortened(origins)
    steps = 0
    parts: list[Any] = []
    for operand, pullback in zip(operands, pullbacks, strict=True):
        if pullback is not None:
            earlier = operand.origins
            steps += 1 if earlier is None else earlier[0] + 1
            parts += (operand._id, earlier)
    if not parts:
        return None
    return (steps, *parts) if steps < MOST_STEPS else shortened((steps, *parts))


def _merge_tapes(
    kernel: Callable[..., object], operands: tuple[TensorBase[Any, Any, Any], ...], tape: OwnedTape
) -> None:
    """Merge the tapes of all operands into `tape`, and spend those that owned one."""
    owner = None
    for operand in operands:
        if operand.tape is not None:
            if owner is not None or tape.records.__class__ is not Recorder:
                # Several, or a tape that may be closed.
                owners = [(one, kernel) for one in operands if one.tape is not None]
                for held in take_tapes(owners):
                    if held is not tape:
                        tape.merge(held)
                return
            owner = operand
    # The common case, in no more steps than it takes; as in `apply`.
    assert owner is not None
    is_spent = owner.tape is not tape
    if is_spent:
        raise _spent_meanwhile(kernel, owner)
    owner.tape = kernel


def take_tapes(owners: list[tuple[TensorBase[Any, Any, Any], Taker]]) -> list[OwnedTape]:
    """Spend tensors that own tapes, and return those; of several threads one gets them.

    Args:
        owners: each with what takes its tape. If one cannot be spent, none is.

    Raises:
        MovedTensorError: if one is spent.
        TapeClosedError: if the tape of one is closed.
    """
    taken: list[OwnedTape] = []
    try:
        for owner, taker in owners:
            tape = take_tape(owner, taker)
            taken.append(tape)
            if tape.records.__class__ is not Recorder:
                # Closed, perhaps.
                tape.check_usable(op_name(taker))
    except TapeTensorError:
        # Not strict: the last of those that were taken need not be that of the last owner.
        for (owner, _), tape in zip(owners, taken):  # noqa: B905
            owner.tape = tape
        raise
    return taken


def _spent_meanwhile(op: Callable[..., object], x: TensorBase[Any, Any, Any]) -> MovedTensorError:
    """Return the error for a tensor that another thread has spent since it was checked."""
    tape: Any = x.tape
    return moved_error(op_name(op), x, op_name(tape))


def _check_operands(
    kernel: Callable[..., object],
    operands: tuple[TensorBase[Any, Any, Any], ...],
    *,
    keeps_dtype: bool,
) -> OwnedTape | None:
    """Return one of the tapes that the operands own, after checking that all may be moved."""
    tape = None
    are_several = False
    dtype = operands[0].array.dtype
    for operand in operands:
        held = operand.tape
        if held is not None:
            if not isinstance(held, OwnedTape):
                raise moved_error(op_name(kernel), operand, op_name(held))
            if held.records.__class__ is not Recorder:
                # Closed or spent, perhaps.
                held.check_usable(op_name(kernel))
            if tape is not None and not are_several:
                are_several = True
                _check_given_once(kernel, operands)
            tape = held
        if keeps_dtype and operand.array.dtype is not dtype:
            check_same_dtype(op_name(kernel), operands)
    return tape


def _check_given_once(
    kernel: Callable[..., object], operands: tuple[TensorBase[Any, Any, Any], ...]
) -> None:
    """Raise MovedTensorError if one tensor that owns a tape is given as two operands."""
    seen: set[int] = set()
    for owner in [operand for operand in operands if operand.tape is not None]:
        if id(owner) in seen:
            raise MovedTensorError(
                f"{op_name(kernel)}: the tensor of shape {owner.array.shape} is given twice and "
                "owns one tape, which the first use takes; write "
                "x.share() for one of the two"
            )
        seen.add(id(owner))


def _check_result_dtype(kernel: Kernel, x: TensorBase[Any, Any, Any], output: Array) -> None:
    if output.dtype == x.array.dtype:
        return
    raise DTypeError(
        f"{op_name(kernel)}: not defined for dtype {x.array.dtype}, the result would be "
        f"{output.dtype}; convert first with x.astype(np.float32)"
    )
