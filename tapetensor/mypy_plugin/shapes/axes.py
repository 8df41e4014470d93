"""The axes that calls name."""

from __future__ import annotations

from tapetensor.arguments.shapes import normalize_axes, normalize_axis
from tapetensor.mypy_plugin.shapes.calls import Call
from tapetensor.mypy_plugin.shapes.reading import UndecidedError, known, read_int, read_ints
from tapetensor.rules.dims import Dims


def given_axes(call: Call, shape: Dims) -> tuple[int, ...]:
    """Return the axis, or the axes, that the argument `axis` names, counted from the front.

    Raises:
        AxisError: if one lies outside the shape or is named twice.
        UndecidedError: if they are not known.
    """
    axis = known(call.argument("axis"))
    one = read_int(axis)
    return normalize_axes(call.op, known(read_ints(axis)) if one is None else one, shape)


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
    return shape, normalize_axis(call.op, axis, shape)
