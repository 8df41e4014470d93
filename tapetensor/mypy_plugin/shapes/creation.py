"""Tensors that are made: the sizes that are computed where their shape is given."""

from __future__ import annotations

from typing import Final

from tapetensor.mypy_plugin.shapes.arrays import check_values
from tapetensor.mypy_plugin.shapes.calls import Answer, Call, MismatchError
from tapetensor.mypy_plugin.shapes.computed import mentions
from tapetensor.mypy_plugin.shapes.dims import INT, Size, is_negative
from tapetensor.mypy_plugin.shapes.reading import known, read_shape
from tapetensor.mypy_plugin.shapes.sizes import sharpened

NAMES: Final = ("zeros", "ones", "full", "normal", "uniform", "from_array")


def from_numpy(call: Call) -> Answer:
    """Return what `from_numpy` makes; the array has to have the shape, where both are known."""
    check_values(call)
    return made(call)


def made(call: Call) -> Answer:
    """Return what is made, with the sizes that are computed from names."""
    dims = known(read_shape(call.argument("shape")))
    negative = [dim for dim in dims if is_negative(dim)]
    if negative:
        raise MismatchError(f"a dim must not be negative, got {negative[0]}")
    if INT not in dims:
        return None
    sizes = sharpened(dims, call.expression("shape"), call.api)
    named = tuple(
        size if isinstance(size, Size) and size.atoms else dim
        for dim, size in zip(dims, sizes, strict=True)
    )
    wanted = call.api.expr_checker.type_context[-1]
    if named == dims and (wanted is None or not mentions(wanted)):
        return None
    return call.like(call.result, named)
