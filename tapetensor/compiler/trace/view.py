"""Ways to look at the same memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from typing_extensions import override

from tapetensor.arrays.array import Array, untouched
from tapetensor.compiler.trace.node import DType, Kind, Node, Shape


@dataclass(slots=True, frozen=True)
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
    def __hash__(self) -> int:
        """Hash by name, for few views of one array differ in nothing else."""
        return hash(self.name)

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
        if self.name != first.name or self.name not in ("transpose", "reshape"):
            return None
        if self.name == "reshape":
            return self
        return View("transpose", tuple([first.parameter[axis] for axis in self.parameter]))


# The kinds whose detail is strides, where those are not C's.
_STRIDED = frozenset({Kind.INPUT, Kind.CALL})
_BYTE = np.dtype(np.uint8)


def lying(shape: Shape, dtype: DType, strides: Shape | None = None) -> Array:
    """Return zeros that lie in memory in some way, in C order without strides."""
    if strides is None or 0 in shape or dtype.hasobject:
        return untouched(shape, dtype)
    reach = [stride * (size - 1) for stride, size in zip(strides, shape, strict=True)]
    before = -sum([one for one in reach if one < 0])
    after = sum([one for one in reach if one > 0]) + dtype.itemsize
    return np.ndarray(shape, dtype, untouched((before + after,), _BYTE), before, strides)


def laid_out(node: Node) -> Array:
    """Return zeros that lie in memory as the value of a node, which is in C order but for views."""
    if node.kind is Kind.VIEW:
        seen: Array = node.function(laid_out(node.args[0]))
        return seen
    if node.kind is Kind.CONSTANT:
        known: Array = node.detail
        return known
    return lying(node.shape, node.dtype, node.detail if node.kind in _STRIDED else None)


def is_in_order(node: Node) -> bool:
    """Tell, without a look at memory, whether a value lies in C order; if not, it still may."""
    if node.kind in _STRIDED:
        return node.detail is None
    return node.kind not in (Kind.VIEW, Kind.CONSTANT)


def inverse(order: Shape) -> Shape:
    """Return the order of axes that undoes another."""
    return tuple(sorted(range(len(order)), key=order.__getitem__))
