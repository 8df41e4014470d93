"""Axes and their ranges, by the rules of `tapetensor.arguments.shapes`."""

from __future__ import annotations

from mypy.types import Type

from tapetensor.mypy_plugin.codes import AXIS_RANGE
from tapetensor.mypy_plugin.shapes.calls import Call, MismatchError
from tapetensor.mypy_plugin.shapes.dims import Dims, written
from tapetensor.mypy_plugin.shapes.reading import UndecidedError, known, read_int, read_ints


def normal_axis(axis: int, shape: Dims, extra: int = 0) -> int:
    """Return `axis` counted from the front.

    Raises:
        MismatchError: if it lies outside the shape.
    """
    rank = len(shape) + extra
    if not -rank <= axis < rank:
        allowed = f"{-rank} to {rank - 1}" if rank else "none, a 0-d tensor has no axes"
        raise MismatchError(
            f"axis {axis} is outside the shape {written(shape)}; allowed: {allowed}", AXIS_RANGE
        )
    return axis % rank


def normal_axes(axis: Type, shape: Dims) -> set[int]:
    """Return the axis, or the axes, that an argument names, counted from the front.

    Raises:
        MismatchError: if one lies outside the shape or is named twice.
        UndecidedError: if they are not known.
    """
    one = read_int(axis)
    if one is not None:
        return {normal_axis(one, shape)}
    axes = known(read_ints(axis))
    found = [normal_axis(one, shape) for one in axes]
    if len(set(found)) != len(found):
        raise MismatchError(f"axes {axes} name one axis of {written(shape)} twice", AXIS_RANGE)
    return set(found)


def given_axis(call: Call, default: int | None) -> int:
    """Return the argument `axis` as it is given.

    Raises:
        UndecidedError: if it is not known, or not given and has no default.
    """
    axis = call.argument("axis")
    return known(default if axis is None else read_int(axis))


def axis_of_receiver(call: Call, default: int | None) -> tuple[Dims, int]:
    """Return the shape of the receiver, and the argument `axis` counted from the front of it."""
    shape, axis = call.receiver.dims, given_axis(call, default)
    # mypy has complained of a 0-d tensor already: no overload takes it.
    if not shape:
        raise UndecidedError
    return shape, normal_axis(axis, shape)
