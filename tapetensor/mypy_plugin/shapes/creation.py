"""Tensors that are made: the sizes that are computed where their shape is given."""

from __future__ import annotations

from typing import Final

from tapetensor.mypy_plugin.shapes.arrays import check_values
from tapetensor.mypy_plugin.shapes.calls import UNSURE, Answer, Call
from tapetensor.mypy_plugin.shapes.computed import mentions
from tapetensor.mypy_plugin.shapes.dims import INT, Size
from tapetensor.mypy_plugin.shapes.reading import read_shape
from tapetensor.mypy_plugin.shapes.sizes import sharpened

NAMES: Final = ("zeros", "ones", "full", "normal", "uniform", "from_array")


def from_numpy(call: Call) -> Answer:
    """Return what `from_numpy` makes; the array has to have the shape, where both are known."""
    check_values("from_numpy", call)
    return made(call)


def made(call: Call) -> Answer:
    """Return what a creation function makes, with the sizes that are computed from names."""
    asked, result, wanted = call.argument("shape"), call.result, call.wanted
    dims = None if asked is None else read_shape(asked)
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
