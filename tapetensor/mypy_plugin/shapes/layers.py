"""Layers that keep the size of their input, or nearly so, and refuse others.

Plain typing says so too, but of overloads by the tape mypy explains the first, which is about the
tape, and it says so once for each.
"""

from __future__ import annotations

from collections.abc import Callable

from tapetensor.mypy_plugin.shapes.calls import Answer, Call
from tapetensor.mypy_plugin.shapes.reading import read_dim
from tapetensor.rules.dims import ANY, Dim, Dims


def taking(rule: Callable[[str, Dims, Dim], None], call: Call) -> Answer:
    """Refuse an input of which a rule says that it does not fit the size of the layer."""
    size = read_dim(call.layer[0])
    rule(call.op, call.operand("x").dims, ANY if size is None else size)
    return None
