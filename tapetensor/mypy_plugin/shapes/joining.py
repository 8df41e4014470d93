"""Tensors put together along an axis, and read along one."""

from __future__ import annotations

from mypy.types import AnyType, Instance, Type

from tapetensor.mypy_plugin.shapes.axes import normal_axis
from tapetensor.mypy_plugin.shapes.broadcasting import joined_dim
from tapetensor.mypy_plugin.shapes.calls import (
    OPEN,
    UNSURE,
    Answer,
    Call,
    MismatchError,
    of_all_shapes,
)
from tapetensor.mypy_plugin.shapes.dims import Dims, Size, differ, total, unified, written
from tapetensor.mypy_plugin.shapes.dtypes import check_same
from tapetensor.mypy_plugin.shapes.reading import (
    Operand,
    common_dtype,
    is_plain,
    may_have_any_shape,
    merged_tape,
    read_int,
    read_tensor,
)


def concat(call: Call) -> Answer:
    """Return the result of `concat` of a tuple or of what is listed."""
    joined = _operands("concat", call)
    axis = _axis(call)
    if joined is None or axis is None:
        return _undecided(call)
    shapes, tape, dtype = joined
    position = normal_axis("concat", axis, shapes[0])
    result = list(shapes[0])
    for shape in shapes[1:]:
        if len(shape) != len(result):
            raise MismatchError(f"concat: the ranks of shapes {_named(shapes)} differ")
        for index, dim in enumerate(shape):
            if index != position and differ(result[index], dim):
                raise MismatchError(
                    f"concat: shapes {_named(shapes)} differ along axis {index}, "
                    f"{result[index]} != {dim}"
                )
            result[index] = unified(result[index], dim)
    result[position] = total(shape[position] for shape in shapes)
    return call.tensor(tuple(result), tape, dtype)


def stack(call: Call) -> Answer:
    """Return the result of `stack` of a tuple or of what is listed."""
    joined = _operands("stack", call)
    axis = _axis(call)
    if joined is None or axis is None:
        return _undecided(call)
    shapes, tape, dtype = joined
    position = normal_axis("stack", axis, shapes[0], extra=1)
    result = list(shapes[0])
    for shape in shapes[1:]:
        if len(shape) != len(result):
            raise MismatchError(f"stack: the ranks of shapes {_named(shapes)} differ")
        for index, dim in enumerate(shape):
            if differ(result[index], dim):
                raise MismatchError(
                    f"stack: shapes {_named(shapes)} differ along axis {index}, "
                    f"{result[index]} != {dim}"
                )
            result[index] = unified(result[index], dim)
    result.insert(position, Size.of(len(shapes)))
    return call.tensor(tuple(result), tape, dtype)


@of_all_shapes
def take(call: Call) -> Answer:
    """Return the result of `take`."""
    read = _read_along("take", call, default=0)
    if read is None:
        return UNSURE
    operand, x, indices, position = read
    return call.like(operand, (*x[:position], *indices, *x[position + 1 :]))


@of_all_shapes
def take_along_axis(call: Call) -> Answer:
    """Return the result of `take_along_axis`: the other axes broadcast."""
    read = _read_along("take_along_axis", call, default=-1)
    if read is None:
        return UNSURE
    operand, x, indices, position = read
    if len(indices) != len(x):
        raise MismatchError(
            f"take_along_axis: indices of shape {written(indices)} must have as many axes as the "
            f"shape {written(x)}; expand_dims() them"
        )
    result = list(indices)
    for axis, (mine, its) in enumerate(zip(x, indices, strict=True)):
        joined = its if axis == position else joined_dim(mine, its)
        if joined is None:
            if differ(mine, its):
                raise MismatchError(
                    f"take_along_axis: shape {written(x)} and indices {written(indices)} do not "
                    f"broadcast along axis {axis}, {mine} != {its}"
                )
            return UNSURE
        result[axis] = joined
    return call.like(operand, tuple(result))


def _read_along(op: str, call: Call, default: int) -> tuple[Operand, Dims, Dims, int] | None:
    """Return a tensor, its shape and that of plain positions in it, the axis from the front."""
    x, indices = call.receiver, read_tensor(call.argument("indices"))
    axis = _axis(call, default)
    # Of a 0-d tensor mypy has complained already: no overload takes it.
    if x is None or not x.shape or indices is None or indices.shape is None or axis is None:
        return None
    if not is_plain(indices.tape):
        return None
    if not is_integer(indices.dtype) and not isinstance(indices.dtype, AnyType):
        return None
    return x, x.shape, indices.shape, normal_axis(op, axis, x.shape)


def is_integer(dtype: Type) -> bool:
    """Tell whether a dtype holds integers."""
    return isinstance(dtype, Instance) and dtype.type.has_base("numpy.integer")


def _undecided(call: Call) -> Answer:
    """Return what is left where not all shapes are known: what plain typing has from the others."""
    tensors = call.items("tensors")
    return OPEN if tensors and all(map(may_have_any_shape, tensors)) else UNSURE


def _operands(op: str, call: Call) -> tuple[list[Dims], Type, Type] | None:
    """Return the shapes of the tensors, and the tape state and dtype of the result."""
    tensors = call.items("tensors")
    if not tensors:
        return None
    operands = [read_tensor(item) for item in tensors]
    known = [one for one in operands if one is not None and one.shape is not None]
    if len(known) < len(operands):
        return None
    check_same(op, known)
    return _merged(known)


def _merged(operands: list[Operand]) -> tuple[list[Dims], Type, Type] | None:
    tape: Type | None = operands[0].tape
    dtype: Type | None = operands[0].dtype
    for one in operands[1:]:
        tape = merged_tape(tape, one.tape) if tape is not None else None
        dtype = common_dtype(dtype, one.dtype) if dtype is not None else None
    if tape is None or dtype is None:
        return None
    return [one.shape for one in operands if one.shape is not None], tape, dtype


def _axis(call: Call, default: int = 0) -> int | None:
    axis = call.argument("axis")
    return default if axis is None else read_int(axis)


def _named(shapes: list[Dims]) -> str:
    return " and ".join(map(written, shapes))
