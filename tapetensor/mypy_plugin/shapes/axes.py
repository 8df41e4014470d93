"""Axes and their ranges, by the rules of `tapetensor.arrays.shapes`."""

from __future__ import annotations

from tapetensor.mypy_plugin.shapes.calls import OutOfRangeError
from tapetensor.mypy_plugin.shapes.dims import Dims, written


def normal_axis(op: str, axis: int, shape: Dims, extra: int = 0) -> int:
    """Return `axis` counted from the front.

    Raises:
        OutOfRangeError: if it lies outside the shape.
    """
    rank = len(shape) + extra
    if not -rank <= axis < rank:
        allowed = f"{-rank} to {rank - 1}" if rank else "none, a 0-d tensor has no axes"
        raise OutOfRangeError(
            f"{op}: axis {axis} is outside the shape {written(shape)}; allowed: {allowed}"
        )
    return axis % rank


def normal_axes(op: str, axes: tuple[int, ...], shape: Dims) -> set[int]:
    """Return the axes counted from the front.

    Raises:
        OutOfRangeError: if one lies outside the shape or is named twice.
    """
    found = [normal_axis(op, one, shape) for one in axes]
    if len(set(found)) != len(found):
        raise OutOfRangeError(f"{op}: axes {axes} name one axis of {written(shape)} twice")
    return set(found)
