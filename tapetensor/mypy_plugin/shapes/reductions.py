"""Reductions, and the ops along an axis that keep the shape."""

from __future__ import annotations

from mypy.nodes import Expression, StrExpr

from tapetensor.mypy_plugin.shapes.axes import normal_axes, normal_axis
from tapetensor.mypy_plugin.shapes.calls import (
    OPEN,
    UNSURE,
    Answer,
    Call,
    MismatchError,
    Rule,
    of_all_shapes,
)
from tapetensor.mypy_plugin.shapes.dims import ONE, Open, Size, product, written
from tapetensor.mypy_plugin.shapes.reading import (
    Operand,
    is_none,
    read_bool,
    read_int,
    read_ints,
    read_tensor,
)


def reduction(op: str) -> Rule:
    """Return the rule of a reduction with `axis` and `keepdims`."""

    def rule(call: Call) -> Answer:
        x, axis, keepdims = call.receiver, call.argument("axis"), call.argument("keepdims")
        if x is None or x.shape is None:
            is_whole = axis is None or is_none(axis)
            return OPEN if x is not None and x.fits_all and not is_whole else UNSURE
        keep = False if keepdims is None else read_bool(keepdims)
        if axis is None or is_none(axis):
            axes = set(range(len(x.shape)))
        elif (one := read_int(axis)) is not None:
            axes = {normal_axis(op, one, x.shape)}
        elif (several := read_ints(axis)) is not None:
            axes = normal_axes(op, several, x.shape)
        else:
            return UNSURE
        if keep is None:
            return UNSURE
        dims = [ONE if index in axes else dim for index, dim in enumerate(x.shape)]
        rest = [dim for index, dim in enumerate(x.shape) if index not in axes]
        return call.like(x, tuple(dims if keep else rest))

    return rule


@of_all_shapes
def argmax(call: Call) -> Answer:
    """Return the result of `argmax`, whose dtype is its own."""
    x, result, axis = call.receiver, call.result, call.argument("axis")
    number = -1 if axis is None else read_int(axis)
    # Of a 0-d tensor mypy has complained already: no overload takes it.
    if x is None or not x.shape or result is None or number is None:
        return UNSURE
    position = normal_axis("argmax", number, x.shape)
    return call.like(result, (*x.shape[:position], *x.shape[position + 1 :]))


def item(call: Call) -> Answer:
    """Refuse `item` of what cannot have one element, whatever the open dims are."""
    _check_single(call.receiver)
    return UNSURE


def formatted(call: Call) -> Answer:
    """Refuse ``f"{x:.2f}"`` of what cannot have one element."""
    # How mypy spells it: "{:{}}".format(x, ".2f").
    spec = call.expressions(0)[1:]
    if call.text == "{:{}}" and len(spec) == 1 and not _is_empty(spec[0]):
        _check_single(read_tensor(call.types(0)[0]))
    return UNSURE


def _is_empty(spec: Expression) -> bool:
    return isinstance(spec, StrExpr) and not spec.value


def _check_single(x: Operand | None) -> None:
    if x is None or x.shape is None:
        return
    known = [dim for dim in x.shape if isinstance(dim, Size) and dim.literal not in (None, 1)]
    if known:
        elements = product(x.shape)
        held = "more than one element" if isinstance(elements, Open) else f"{elements} elements"
        raise MismatchError(
            f"item: a tensor of shape {written(x.shape)} has {held}, not one; reduce it first "
            "(mean(), sum(), ...)"
        )


def along_axis(op: str) -> Rule:
    """Return the rule of an op that keeps the shape: its axis has to be there."""

    def rule(call: Call) -> Answer:
        x, axis = call.receiver, call.argument("axis")
        number = -1 if axis is None else read_int(axis)
        if x is not None and x.shape is not None and number is not None:
            normal_axis(op, number, x.shape)
        return UNSURE

    return rule
