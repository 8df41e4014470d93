"""One value of a captured program, and how it is made."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from typing_extensions import TypeVar, override

from tapetensor.pictures import Place

X_ = TypeVar("X_")
Shape: TypeAlias = tuple[int, ...]
DType: TypeAlias = np.dtype[Any]
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
    """`function(view, ...)` writes into a view of an array and is that array afterwards.

    The arguments are the array, the view, and what else the function takes. Where nothing was
    written to those elements before, the detail is the node that made the array.
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
    """One value of a program, and how it is made.

    Args:
        kind: its kind.
        function: the function that computes it.
        args: its arguments: nodes, plain values, and tuples, lists and dicts of them.
        shape: the shape of the result.
        dtype: the dtype of the result.
        detail: further data of its kind: the axes of a reduction, the value of a constant.
        index: the position in the program.
        label: its name in the user's program, if it is an input.
        place: the line of the user's program that ran it.

    Attributes:
        ndim: the number of axes.
        size: the number of elements.
        layout: an array that shows how it lies in memory, once somebody has asked.
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
    layout: Any = field(init=False, default=None)
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
