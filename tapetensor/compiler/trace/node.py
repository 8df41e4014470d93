"""One value of a captured program, how it is made, and how it is seen."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal, TypeAlias

import numpy as np
from typing_extensions import TypeVar, override

from tapetensor.arrays.array import Array, untouched
from tapetensor.pictures import Place

X_ = TypeVar("X_")
Shape: TypeAlias = tuple[int, ...]
DType: TypeAlias = np.dtype[Any]
# What runs groups of nodes.
Backend: TypeAlias = Literal["numpy", "numba"]
_NOTHING = np.dtype([])


@dataclass(frozen=True, slots=True, eq=False)
class NodeKind:
    """The kind of a node, which decides where its result lies and when it runs."""

    name: str


class Kind:
    """The kinds of nodes: no `Enum`, from which Python 3.11 takes four times as long to read."""

    INPUT = NodeKind("input")
    """An array that comes in with the call."""
    CONSTANT = NodeKind("constant")
    """An array that was known when it was captured."""
    ELEMENTWISE = NodeKind("elementwise")
    """`function(*args, out)`, element by element, the arguments broadcast."""
    REDUCE = NodeKind("reduce")
    """`function.reduce` over axes, or `np.vecdot` of two arrays over their last axis.

    The detail is the axes, and whether it is taken by rows: over the last axes, as kernels take it,
    sums as products with ones, extremes by a search for their places.
    """
    MATMUL = NodeKind("matmul")
    """`np.matmul`."""
    VIEW = NodeKind("view")
    """`function(array)`: the same memory under another shape or order."""
    CALL = NodeKind("call")
    """Any other function, which returns fresh arrays."""
    PART = NodeKind("part")
    """One of the arrays that a call returned."""
    WRITE = NodeKind("write")
    """`function(part, ...)` writes into a part of an array and is that array afterwards.

    The arguments are the array, which nobody else reads later, the part, and what else the function
    takes. What it writes may be computed in its place where there is a detail: whether nothing was
    written to those elements before.
    """
    RANDOM = NodeKind("random")
    """A draw from a generator."""
    EFFECT = NodeKind("effect")
    """A check that may raise and returns nothing."""
    UPDATE = NodeKind("update")
    """The step of a group of an optimizer."""


class Keywords(dict[str, Any]):
    """The keyword arguments of a captured call, the last of its arguments."""


@dataclass(slots=True, eq=False)
class Node:
    """One value of a program, and how it is made: by a function, of nodes and plain values.

    Its detail is what else its kind needs: the axes of a reduction, the value of a constant. An
    input has the name of the user's program as its label. The place is the line that ran it. The
    checkpoint is the number of that whose value it is, below 0 where that returns it; 0 for none.
    """

    kind: NodeKind
    function: Any
    args: tuple[Any, ...]
    shape: Shape
    dtype: DType
    detail: Any
    index: int
    label: str
    place: Place | None
    ndim: int = field(init=False)
    size: int = field(init=False)
    checkpoint: int = field(init=False, default=0)
    _parents: tuple[Node, ...] = field(init=False)

    def __post_init__(self) -> None:
        self.ndim = len(self.shape)
        self.size = math.prod(self.shape)
        # Mostly they are all that there is.
        are_all = {*map(type, self.args)} == {Node}
        self._parents = self.args if are_all else tuple(found_in(self.args, Node))

    @property
    def nbytes(self) -> int:
        """The size of the result in bytes."""
        return self.size * self.dtype.itemsize

    @property
    def name(self) -> str:
        """The name of the function that computes it."""
        name: str = getattr(self.function, "__name__", self.kind.name)
        is_reduction = self.kind is Kind.REDUCE and self.function is not np.vecdot
        return f"{name}.reduce" if is_reduction else name

    def parents(self) -> tuple[Node, ...]:
        """Return the nodes among the arguments, as often as they occur."""
        return self._parents

    @property
    def is_written_to(self) -> bool:
        """Whether it lies in memory that something is written into, perhaps again later."""
        node = self
        while node.kind is Kind.VIEW:
            (node,) = node.args
        return node.kind is Kind.WRITE

    def read_instead(self, old: Node, new: Node) -> None:
        """Read one node in the place of another."""
        self.do_instead(self.function, replaced(self.args, lambda one: new if one is old else one))

    def do_instead(self, function: Any, args: tuple[Any, ...]) -> None:
        """Be made by another function, of other arguments."""
        self.function, self.args = function, args
        self._parents = tuple(found_in(args, Node))

    @override
    def __repr__(self) -> str:
        """Show what makes it, and of which shape and dtype it is."""
        return f"%{self.index} = {self.name} {self.shape} {self.dtype}"


@lru_cache(1024)
def repeated_shape(*shapes: Shape) -> Shape:
    """Return the result of `np.broadcast_shapes`, which itself takes as long as a small op."""
    return np.broadcast(*[np.empty(one, _NOTHING) for one in shapes]).shape


def shape_of_all(nodes: Sequence[Node]) -> Shape:
    """Return the shape to which the shapes of nodes are repeated."""
    first = nodes[0].shape
    shapes = [node.shape for node in nodes]
    return first if shapes.count(first) == len(shapes) else repeated_shape(*shapes)


def found_in(value: Any, cls: type[X_]) -> Iterator[X_]:
    """Yield the instances of a class in a nest of tuples, lists and dicts."""
    if isinstance(value, cls):
        yield value
    elif isinstance(value, (tuple, list, dict)):
        for item in value.values() if isinstance(value, dict) else value:
            # Most are found, or hold nothing: a generator for each would take most of the time.
            if isinstance(item, cls):
                yield item
            elif isinstance(item, (tuple, list, dict)):
                yield from found_in(item, cls)


def replaced(value: Any, replace: Callable[[Any], Any]) -> Any:
    """Return a nest of tuples, lists and dicts with `replace` applied to everything in it."""
    if value.__class__ is tuple:
        return tuple([replaced(item, replace) for item in value])
    if value.__class__ is list:
        return [replaced(item, replace) for item in value]
    if value.__class__ in (dict, Keywords):
        return value.__class__({key: replaced(item, replace) for key, item in value.items()})
    return replace(value)


@dataclass(slots=True, frozen=True)
class View:
    """A way to look at the same memory: `reshape`, `transpose`, `broadcast_to` or an index."""

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
