"""Shapes that are put together along an axis."""

from __future__ import annotations

from collections.abc import Sequence

from tapetensor.errors import ShapeError
from tapetensor.rules.dims import Dim, Dims, differ, total, unified, written


def concat(op: str, shapes: Sequence[Dims], axis: int) -> Dims:
    """Return the shape of operands one after another along an axis, counted from the front."""
    result = _common(op, shapes, axis, "all axes but the concatenated one must have equal sizes")
    result[axis] = total(shape[axis] for shape in shapes)
    return tuple(result)


def stack(op: str, shapes: Sequence[Dims], axis: int, count: Dim) -> Dims:
    """Return the shape of `count` operands along a new axis, counted from the front."""
    result = _common(op, shapes, None, "all shapes must be equal")
    result.insert(axis, count)
    return tuple(result)


def _common(op: str, shapes: Sequence[Dims], apart_from: int | None, cure: str) -> list[Dim]:
    """Return the shape that shapes have in common, apart from an axis."""
    named = " and ".join(map(written, shapes))
    result = list(shapes[0])
    for shape in shapes[1:]:
        if len(shape) != len(result):
            raise ShapeError(f"{op}: the ranks of shapes {named} differ; {cure}")
        for index, dim in enumerate(shape):
            if index != apart_from and differ(result[index], dim):
                raise ShapeError(
                    f"{op}: shapes {named} differ along axis {index}, {result[index]} != {dim}; "
                    f"{cure}"
                )
            result[index] = unified(result[index], dim)
    return result
