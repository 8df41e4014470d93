"""One value of a captured program, and how it is made."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from enum import Enum, auto
from typing import Any, TypeAlias

import numpy as np
from typing_extensions import override

from tapetensor.pictures import users_place

Shape: TypeAlias = tuple[int, ...]
DType: TypeAlias = np.dtype[Any]


# In place of the options of a reduction: its sums are taken as products with ones.
AS_PRODUCT = ("as product",)


class Kind(Enum):
    """The kind of a node, which decides where its result lies and when it runs."""

    INPUT = auto()
    """An array that comes in with the call."""
    CONSTANT = auto()
    """An array that was known when it was captured."""
    ELEMENTWISE = auto()
    """`function(*args, out)`, element by element, the arguments broadcast."""
    REDUCE = auto()
    """`function.reduce` over axes, or `np.vecdot` of two arrays over their last axis."""
    MATMUL = auto()
    """`np.matmul`."""
    VIEW = auto()
    """`function(array)`: the same memory under another shape or order."""
    CALL = auto()
    """Any other function, which returns fresh arrays."""
    PART = auto()
    """One of the arrays that a call returned."""
    WRITE = auto()
    """`function(view, ...)` writes into a view of an array and is that array afterwards.

    The arguments are the array, the view, and what else the function takes.
    """
    RANDOM = auto()
    """A draw from a generator."""
    EFFECT = auto()
    """A check that may raise and returns nothing."""
    UPDATE = auto()
    """The step of a group of an optimizer."""


class Node:
    """One value of a program, and how it is made.

    Args:
        kind: what it is.
        function: what makes it.
        args: its arguments: nodes, plain values, and tuples, lists and dicts of them.
        shape: the shape of the result.
        dtype: the dtype of the result.
        detail: what the kind needs besides: the axes of a reduction, the value of a constant.
        index: the position in the program.
        label: what the user calls it, if it is an input.

    Attributes:
        size: the number of elements.
        place: the line of the user's program that ran it.
    """

    __slots__ = (
        "_parents", "args", "detail", "dtype", "function", "index", "kind", "label", "place",
        "shape", "size",
    )  # fmt: skip

    def __init__(
        self,
        kind: Kind,
        function: Any,
        args: tuple[Any, ...],
        shape: Shape,
        dtype: DType,
        detail: Any = None,
        index: int = 0,
        label: str = "",
    ) -> None:
        self.kind = kind
        self.function = function
        self.args = args
        self.shape = shape
        self.dtype = dtype
        self.detail = detail
        self.index = index
        self.label = label
        self.size = math.prod(shape)
        self.place = users_place()
        self._parents = tuple(nodes_in(args))

    @property
    def nbytes(self) -> int:
        """The size of the result in bytes."""
        return self.size * self.dtype.itemsize

    @property
    def name(self) -> str:
        """The name of what makes it."""
        name: str = getattr(self.function, "__name__", self.kind.name.lower())
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

    def take_over(self, other: Node) -> None:
        """Do in its own place what another node does."""
        self.kind, self.function = other.kind, other.function
        self.args, self.detail = other.args, other.detail
        self._parents = other._parents

    def read_instead(self, old: Node, new: Node) -> None:
        """Read one node in the place of another."""
        self.do_instead(self.function, replaced(self.args, lambda one: new if one is old else one))

    def do_instead(self, function: Any, args: tuple[Any, ...]) -> None:
        """Be made by another function, of other arguments."""
        self.function, self.args = function, args
        self._parents = tuple(nodes_in(args))

    @override
    def __repr__(self) -> str:
        """Show what makes it, and of which shape and dtype it is."""
        return f"%{self.index} = {self.name} {self.shape} {self.dtype}"


def nodes_in(value: Any) -> Iterator[Node]:
    """Yield the nodes in a nest of tuples, lists and dicts."""
    if isinstance(value, Node):
        yield value
    elif isinstance(value, tuple | list):
        for item in value:
            yield from nodes_in(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from nodes_in(item)


def replaced(value: Any, replace: Callable[[Any], Any]) -> Any:
    """Return a nest of tuples, lists and dicts with `replace` applied to everything in it."""
    if value.__class__ is tuple:
        return tuple([replaced(item, replace) for item in value])
    if value.__class__ is list:
        return [replaced(item, replace) for item in value]
    if value.__class__ is dict:
        return {key: replaced(item, replace) for key, item in value.items()}
    return replace(value)
