"""Layers that keep the size of their input, or nearly so, and refuse others.

Plain typing says so too, but of overloads by the tape mypy explains the first, which is about the
tape, and it says so once for each.
"""

from __future__ import annotations

from collections.abc import Callable

from mypy.types import Instance

from tapetensor.mypy_plugin.shapes.calls import Answer, Call
from tapetensor.mypy_plugin.shapes.reading import common_dtype, is_plain, read_dim
from tapetensor.rules.dims import ANY, Dim, Dims
from tapetensor.rules.layers import check_features, check_variance


def taking(rule: Callable[[str, Dims, Dim], None], call: Call) -> Answer:
    """Refuse an input of which a rule says that it does not fit the size of the layer."""
    size = read_dim(call.layer[0])
    rule(call.op, call.operand("x").dims, ANY if size is None else size)
    return None


def normalizing(rule: Callable[[str, Dims, Dim], None], call: Call) -> Answer:
    """Refuse an input of the wrong size, and a training input of one value per channel."""
    taking(rule, call)
    x, size = call.operand("x"), read_dim(call.layer[0])
    if not is_plain(x.tape) and isinstance(x.tape, Instance) and size is not None:
        check_variance(call.op, x.dims, size)
    return None


def over_the_last_axis(call: Call) -> Answer:
    """Return the result of a layer of features, which leaves the axes before the last as they are.

    Plain typing says the same, but where a result does not fit its place mypy takes those axes from
    there, and calls the input wrong.
    """
    taking(check_features, call)
    x, (features, own_dtype) = call.operand("x"), call.layer[-2:]
    made = read_dim(features)
    if made is None:
        return None
    return call.tensor((*x.dims[:-1], made), x.tape, common_dtype(x.dtype, own_dtype))
