"""How the numbers of a window are read."""

from __future__ import annotations

from collections.abc import Mapping

from mypy.types import TupleType, Type, get_proper_type

from tapetensor.errors import ArgumentValueError
from tapetensor.mypy_plugin.kinds import is_int
from tapetensor.mypy_plugin.names import MAY_BE_0
from tapetensor.mypy_plugin.shapes.calls import Call
from tapetensor.mypy_plugin.shapes.reading import (
    UndecidedError,
    all_known,
    known,
    read_dim,
    read_int,
    read_literal,
)
from tapetensor.rules.dims import ANY, Dim, Dims, Size


def read_numbers(call: Call, axes: Mapping[str, int]) -> list[Dims]:
    """Return the numbers that arguments give.

    Args:
        axes: how many numbers to read, by the name of the argument.

    Raises:
        ArgumentValueError: if one is a literal that is too small.
        UndecidedError: if a type is of nothing that can be a number.
    """
    # All are read before one may leave the call to plain typing, for the first may be refused.
    found = [_numbers(call.op, name, call.argument(name), count) for name, count in axes.items()]
    return [*known(all_known(found))]


def _numbers(op: str, name: str, found: Type | None, axes: int) -> Dims | None:
    low = 0 if name in MAY_BE_0 else 1
    if found is None:
        return (Size.of(low),) * axes
    items = on_axes(found, axes)
    if len(items) != axes or not all(is_int(one) or read_int(one) is not None for one in items):
        return None
    for number in map(read_int, items):
        if number is not None and number < low:
            says = "must be > 0" if low else "must not be negative"
            raise ArgumentValueError(f"{op}: {name} {says}, got {number}")
    return tuple(map(read_number, items))


def on_axes(found: Type, axes: int) -> list[Type]:
    """Return the types of the numbers of a window, one of which may hold for all axes."""
    proper = get_proper_type(found)
    return [*proper.items] if isinstance(proper, TupleType) else [proper] * axes


def read_sizes(found: Type, axes: int) -> Dims:
    """Return the numbers of a window that a type argument of a layer names, one for each axis.

    Raises:
        UndecidedError: if there are not as many.
    """
    items = on_axes(found, axes)
    if len(items) != axes:
        raise UndecidedError
    return tuple(map(read_number, items))


def keeps_size(padding: Type) -> bool:
    """Tell whether a type argument of a layer names the padding that keeps the size."""
    return read_literal(padding, str) == "same"


def read_number(found: Type) -> Dim:
    """Return the number that a type names, be it by a name; ANY where it names none."""
    dim = read_dim(found)
    return dim if isinstance(dim, Size) else ANY
