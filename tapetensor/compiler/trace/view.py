"""Ways to look at the same memory."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

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
# Gives so many bytes, all of them zero.
Memory: TypeAlias = Callable[[int], Array]


def memory_of_its_own(nbytes: int) -> Array:
    """Return memory that no other array shares."""
    return untouched((nbytes,), _BYTE)


def _memory_of_all(nbytes: int) -> Array:
    """Return memory for all arrays that only show how they lie; nobody may write to it."""
    global _memory
    memory = _memory
    if nbytes > memory.size:
        memory = memory_of_its_own(nbytes)
        memory.flags.writeable = False
        _memory = memory
    return memory


_memory = np.zeros(0, _BYTE)


def lying(
    shape: Shape, dtype: DType, strides: Shape | None, memory: Memory = _memory_of_all
) -> Array:
    """Return zeros that lie in memory in some way, in C order without strides."""
    # Where there are no elements, numpy has other strides for memory that it is given.
    if dtype.hasobject or (strides is None and 0 in shape):
        return np.zeros(shape, dtype)
    if strides is None or 0 in shape:
        return np.ndarray(shape, dtype, memory(math.prod(shape) * dtype.itemsize), 0, strides)
    reach = [stride * (size - 1) for stride, size in zip(strides, shape, strict=True)]
    before = -sum([one for one in reach if one < 0])
    after = sum([one for one in reach if one > 0]) + dtype.itemsize
    return np.ndarray(shape, dtype, memory(before + after), before, strides)


def laid_out(node: Node, memory: Memory = _memory_of_all) -> Array:
    """Return an array that lies in memory as the value that numpy computes for a node."""
    while node.kind is Kind.WRITE:
        node = node.args[0]
    if node.kind is Kind.CONSTANT and 0 not in node.detail.strides:
        known: Array = node.detail
        return known
    if node.kind is Kind.VIEW:
        seen: Array = node.function(laid_out(node.args[0], memory))
        return seen
    strides = node.detail if node.kind in _STRIDED else None
    if memory is not _memory_of_all:
        return lying(node.shape, node.dtype, strides, memory)
    if node.layout is None:
        node.layout = lying(node.shape, node.dtype, strides)
    shown: Array = node.layout
    return shown


def is_in_order(node: Node) -> bool:
    """Tell, without a look at memory, whether a value lies in C order; if not, it still may."""
    if node.kind in _STRIDED:
        return node.detail is None
    return node.kind not in (Kind.WRITE, Kind.VIEW, Kind.CONSTANT)


def is_dense(node: Node) -> bool:
    """Tell whether a value lies in memory without gaps, as a copy of it would."""
    if is_in_order(node):
        return True
    array = laid_out(node)
    return array.size == 0 or _place(array)[1] == _place(np.empty_like(array))[1]


def lie_alike(array: Array, other: Array) -> bool:
    """Tell whether two arrays of a shape have their axes in the same order in memory."""
    return array.size == 0 or _packed(array) == _packed(other)


def _packed(array: Array) -> tuple[int, ...]:
    return _place(np.empty_like(array, bool))[1]


def _place(array: Array) -> tuple[int, tuple[int, ...]]:
    """Return where the first element lies, and the strides that matter."""
    pairs = zip(array.shape, array.strides, strict=True)
    return array.__array_interface__["data"][0], tuple([s if n > 1 else 0 for n, s in pairs])


def seen_order(array: Array) -> Shape:
    """Return how the axes of an array in C order are seen in the memory of this one."""
    # An axis of one element has the stride of its outer neighbour.
    places = [
        (-abs(stride), -size) for stride, size in zip(array.strides, array.shape, strict=True)
    ]
    return inverse(tuple(sorted(range(array.ndim), key=places.__getitem__)))


def inverse(order: Shape) -> Shape:
    """Return the order of axes that undoes another."""
    return tuple(sorted(range(len(order)), key=order.__getitem__))


def order_of(operand: Node) -> Shape | None:
    """Return the order of axes in which an operand is seen, if that may be another than C's.

    Where all axes are flipped, numpy reads the memory backwards, as one row.
    """
    if is_in_order(operand):
        return None
    views, base = list[View](), operand
    while base.kind is Kind.VIEW and base.function.name != "broadcast_to":
        views.append(base.function)
        base = base.args[0]
    is_strided = base.kind in _STRIDED and base.detail and 0 not in base.detail
    if is_strided or any(view.name == "transpose" for view in views[1:]):
        seen = seen_order(laid_out(operand))
        return None if seen == tuple(range(len(seen))) else seen
    return views[0].parameter if views and views[0].name == "transpose" else None
