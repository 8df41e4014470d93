"""Tensors that are made: the sizes that are computed where their shape is given."""

from __future__ import annotations

from typing import Final

from tapetensor.mypy_plugin.shapes.arrays import check_values
from tapetensor.mypy_plugin.shapes.calls import UNSURE, Answer, Call, MismatchError, Rule
from tapetensor.mypy_plugin.shapes.computed import mentions
from tapetensor.mypy_plugin.shapes.dims import INT, Size, is_negative
from tapetensor.mypy_plugin.shapes.reading import read_shape
from tapetensor.mypy_plugin.shapes.sizes import sharpened

NAMES: Final = ("zeros", "ones", "full", "normal", "uniform", "from_array")


def from_numpy(call: Call) -> Answer:
    """Return what `from_numpy` makes; the array has to have the shape, where both are known."""
    check_values("from_numpy", call)
    return _made("from_numpy", call)


def made(op: str) -> Rule:
    """Return the rule of a creation function."""
    return lambda call: _made(op, call)


def _made(op: str, call: Call) -> Answer:
    """Return what is made, with the sizes that are computed from names."""
    asked, result, wanted = call.argument("shape"), call.result, call.wanted
    dims = None if asked is None else read_shape(asked)
    negative = [dim for dim in dims or () if is_negative(dim)]
    if negative:
        raise MismatchError(f"{op}: a dim must not be negative, got {negative[0]}")
    if result is None or dims is None or INT not in dims:
        return UNSURE
    sizes = sharpened(dims, call.argument_expression("shape"), call.api)
    named = [
        size if isinstance(size, Size) and size.atoms else dim
        for dim, size in zip(dims, sizes, strict=True)
    ]
    if tuple(named) == dims and (wanted is None or not mentions(wanted)):
        return UNSURE
    return call.tensor(tuple(named), result.tape, result.dtype)
