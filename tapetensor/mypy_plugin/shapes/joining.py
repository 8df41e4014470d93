"""Tensors put together along an axis, and read along one."""

from __future__ import annotations

from mypy.types import AnyType, Instance, Type

from tapetensor.mypy_plugin.shapes.axes import axis_of_receiver, given_axis, normal_axis
from tapetensor.mypy_plugin.shapes.broadcasting import joined_dim
from tapetensor.mypy_plugin.shapes.calls import Answer, Call, MismatchError, of_all_shapes, opening
from tapetensor.mypy_plugin.shapes.dims import Dim, Dims, Size, differ, total, unified, written
from tapetensor.mypy_plugin.shapes.dtypes import check_same
from tapetensor.mypy_plugin.shapes.reading import (
    UndecidedError,
    is_plain,
    known,
    may_have_any_shape,
    merged,
    read_dim,
    read_tensor,
)


def _is_open(call: Call) -> bool:
    """Tell whether not even one of the tensors has a shape, which plain typing would take."""
    tensors = call.items("tensors")
    return bool(tensors) and all(map(may_have_any_shape, tensors))


@opening(_is_open)
def concat(call: Call) -> Answer:
    """Return the result of `concat` of a tuple or of what is listed."""
    shapes, tape, dtype = _operands(call)
    position = normal_axis(given_axis(call, 0), shapes[0])
    result = _joined(shapes, position)
    result[position] = total(shape[position] for shape in shapes)
    return call.tensor(tuple(result), tape, dtype)


@opening(_is_open)
def stack(call: Call) -> Answer:
    """Return the result of `stack` of a tuple or of what is listed."""
    shapes, tape, dtype = _operands(call)
    position = normal_axis(given_axis(call, 0), shapes[0], extra=1)
    result = _joined(shapes, None)
    result.insert(position, Size.of(len(shapes)))
    return call.tensor(tuple(result), tape, dtype)


def _operands(call: Call) -> tuple[list[Dims], Type, Type]:
    """Return the shapes of the tensors, and the tape state and dtype of the result."""
    operands = [known(read_tensor(item)) for item in call.items("tensors")]
    shapes = [one.dims for one in operands]
    check_same(operands)
    return (shapes, *merged(operands))


def _joined(shapes: list[Dims], apart_from: int | None) -> list[Dim]:
    """Return the shape that shapes must have in common, apart from an axis."""
    named = " and ".join(map(written, shapes))
    result = list(shapes[0])
    for shape in shapes[1:]:
        if len(shape) != len(result):
            raise MismatchError(f"the ranks of shapes {named} differ")
        for index, dim in enumerate(shape):
            if index != apart_from and differ(result[index], dim):
                raise MismatchError(
                    f"shapes {named} differ along axis {index}, {result[index]} != {dim}"
                )
            result[index] = unified(result[index], dim)
    return result


@of_all_shapes
def take(call: Call) -> Answer:
    """Return the result of `take`."""
    indices, x, axis = _read_along(call, default=0)
    return call.like(call.receiver, (*x[:axis], *indices, *x[axis + 1 :]))


@of_all_shapes
def segment_sum(call: Call) -> Answer:
    """Return the result of `segment_sum`: as many slices as it says."""
    x, segments = call.operand(0), call.operand("segments")
    if x.dims == () or len(segments.dims) != 1 or differ(x.dims[0], segments.dims[0]):
        raise MismatchError(
            f"operands of shape {written(x.dims)} need segments of shape "
            f"{written(x.dims[:1])}, not {written(segments.dims)}"
        )
    count = call.argument("count")
    slices = None if count is None else read_dim(count)
    return None if slices is None else call.like(x, (slices, *x.dims[1:]))


@of_all_shapes
def take_along_axis(call: Call) -> Answer:
    """Return the result of `take_along_axis`: the other axes broadcast."""
    indices, x, along = _read_along(call, default=-1)
    if len(indices) != len(x):
        raise MismatchError(
            f"indices of shape {written(indices)} must have as many axes as the shape "
            f"{written(x)}; expand_dims() them"
        )
    result = list(indices)
    for axis, (mine, its) in enumerate(zip(x, indices, strict=True)):
        joined = its if axis == along else joined_dim(mine, its)
        if joined is None:
            if differ(mine, its):
                raise MismatchError(
                    f"shape {written(x)} and indices {written(indices)} do not broadcast along "
                    f"axis {axis}, {mine} != {its}"
                )
            return None
        result[axis] = joined
    return call.like(call.receiver, tuple(result))


def _read_along(call: Call, default: int) -> tuple[Dims, Dims, int]:
    """Return the shape of plain positions, that of the receiver, and the axis from the front."""
    indices = call.operand("indices")
    is_open = isinstance(indices.dtype, AnyType)
    if not is_plain(indices.tape) or not (is_open or is_integer(indices.dtype)):
        raise UndecidedError
    return (indices.dims, *axis_of_receiver(call, default))


def is_integer(dtype: Type) -> bool:
    """Tell whether a dtype holds integers."""
    return isinstance(dtype, Instance) and dtype.type.has_base("numpy.integer")
