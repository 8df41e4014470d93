"""Ways to look at the same memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from typing_extensions import override

from tapetensor.arrays.array import Array
from tapetensor.compiler.trace.node import Kind, Node, Shape


@dataclass(slots=True, eq=False)
class View:
    """A way to look at the same memory: `reshape`, `transpose`, `broadcast_to` or an index.

    Args:
        name: which of them.
        parameter: its shape, order of axes or index.
    """

    name: str
    parameter: Any

    @property
    def __name__(self) -> str:
        """The name, as functions have one."""
        return self.name

    def __call__(self, array: Array) -> Array:
        """Return `array` seen this way."""
        if self.name == "index":
            part: Array = array[self.parameter]
            return part
        if self.name == "broadcast_to":
            return np.broadcast_to(array, self.parameter)
        viewed: Array = getattr(array, self.name)(self.parameter)
        return viewed

    @override
    def __eq__(self, other: object) -> bool:
        """Compare by name and parameter."""
        return isinstance(other, View) and repr(self) == repr(other)

    @override
    def __hash__(self) -> int:
        """Hash by name and parameter."""
        return hash(repr(self))

    @override
    def __repr__(self) -> str:
        """Show the call."""
        return f"{self.name}({self.parameter})"

    def is_identity(self, operand: Node) -> bool:
        """Tell whether `operand` looks just like that already."""
        if self.name == "transpose":
            return bool(self.parameter == tuple(range(len(operand.shape))))
        return self.name != "index" and self.parameter == operand.shape

    def undone(self, base: Node) -> View | None:
        """Return the view that leads back to `base`; None where this one leaves elements out."""
        if self.name == "reshape":
            return View("reshape", base.shape)
        if self.name == "transpose":
            return View("transpose", inverse(self.parameter))
        return None

    def after(self, first: View) -> View | None:
        """Return the one view that does `first` and then this; None if there is none."""
        # Two reshapes stay two: the first may be there to copy into another order.
        if self.name != first.name or self.name in ("index", "reshape"):
            return None
        if self.name == "transpose":
            return View("transpose", tuple([first.parameter[axis] for axis in self.parameter]))
        return self


def laid_out(node: Node) -> Array:
    """Return an array that lies in memory as the value that numpy computes for a node."""
    if node.kind is Kind.WRITE:
        return laid_out(node.args[0])
    if node.kind is Kind.VIEW and node.function.name != "broadcast_to":
        seen: Array = node.function(laid_out(node.args[0]))
        return seen
    return np.empty(node.shape, bool)


def is_copied_by(array: Array, shape: Shape) -> bool:
    """Tell whether numpy can give an array another shape only by copying it."""
    try:
        array.reshape(shape, copy=False)
    except ValueError:
        return True
    return False


def seen_order(array: Array) -> Shape:
    """Return how the axes of an array in C order are seen in the memory of this one."""
    return inverse(tuple(sorted(range(array.ndim), key=lambda axis: -array.strides[axis])))


def inverse(order: Shape) -> Shape:
    """Return the order of axes that undoes another."""
    return tuple(sorted(range(len(order)), key=order.__getitem__))
