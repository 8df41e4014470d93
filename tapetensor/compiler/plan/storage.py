"""Storage: who owns the memory of a value, who looks at it, and how long it is needed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from tapetensor.arrays.array import Array
from tapetensor.compiler.plan.groups import Group, Unit, nodes_of
from tapetensor.compiler.trace.node import Kind, Node, Shape

# numpy can write the results of these kinds into memory that it is given.
TAKES_OUT = frozenset({Kind.ELEMENTWISE, Kind.REDUCE, Kind.MATMUL})


def owner(node: Node) -> Node:
    """Return the node that made the memory in which a node lies."""
    while node.kind in (Kind.VIEW, Kind.WRITE):
        node = node.args[0]
    return node


def part_seen(view: Node, whole: Array) -> Array | None:
    """Return the part of its owner's array that a view shows; None where it would be a copy."""
    if view.kind is not Kind.VIEW:
        return whole
    inner = part_seen(view.args[0], whole)
    if inner is None:
        return None
    seen: Array = view.function(inner)
    return seen if np.may_share_memory(seen, whole) and seen.flags.writeable else None


def readers_of(nodes: Iterable[Node]) -> dict[Node, list[Node]]:
    """Return the nodes that read each node, as often as they read it."""
    readers: dict[Node, list[Node]] = {}
    for node in nodes:
        for parent in node.parents():
            readers.setdefault(parent, []).append(node)
    return readers


@dataclass(eq=False, slots=True)
class Storage:
    """The memory of a value, which all views of it and all writes to it share.

    Attributes:
        owner: the node that made it.
        last_use: the position of the last step that reads it or writes to it.
        escapes: whether it leaves the function, as a whole or seen in some way.
        order: the axes in the order of memory, outermost first, where that is not C's.
        gradient: the optimizer's step whose gradients it is one of, and which of them.
        copied_by: the write that would copy it to its place in another storage; it lies there.
        is_handed_over: whether another value has been written over it.
    """

    owner: Node
    last_use: int = -1
    escapes: bool = False
    order: Shape | None = None
    gradient: tuple[Node, int] | None = None
    copied_by: Node | None = None
    is_handed_over: bool = False

    @property
    def is_free(self) -> bool:
        """Whether it may lie anywhere in planned memory."""
        return not self.escapes and self.gradient is None and self.copied_by is None


class Storages:
    """The storage of every value of a program.

    Args:
        units: all steps, in order.
        leaving: the nodes whose arrays leave the function.

    Attributes:
        leaving: the nodes whose arrays leave the function.
    """

    def __init__(self, units: list[Unit], leaving: list[Node]) -> None:
        self.leaving = set(leaving)
        self._storages: dict[Node, Storage] = {}
        self._readers = readers_of(node for unit in units for node in nodes_of(unit))
        self._positions: dict[Node, int] = {}
        for position, unit in enumerate(units):
            for node in nodes_of(unit):
                self._positions[node] = position
                for one in (node, *node.parents()):
                    self.of(one).last_use = position
        for node in leaving:
            self.of(node).escapes = True

    def of(self, node: Node) -> Storage:
        """Return the storage in which a node lies."""
        # A view that turned out to be a copy has a storage, too.
        while node.kind in (Kind.VIEW, Kind.WRITE) and node not in self._storages:
            node = node.args[0]
        found = self._storages.get(node)
        if found is None:
            found = self._storages[node] = Storage(node)
        return found

    def shares(self, node: Node, other: Node) -> bool:
        """Tell whether two nodes lie in the same storage."""
        return self.of(node) is self.of(other)

    def add_copy(self, view: Node) -> None:
        """Give a view a storage of its own: numpy can reshape some memory only by copying it."""
        self._storages[view] = Storage(view, self.last_read(view))

    def readers(self, node: Node) -> list[Node]:
        """Return the nodes that read a node."""
        return self._readers.get(node, [])

    def is_read_outside(self, node: Node, group: Group) -> bool:
        """Tell whether a value of a group, or a view of it, is read outside of it."""
        return node in self.leaving or any(
            reader not in group
            or (reader.kind is Kind.VIEW and self.is_read_outside(reader, group))
            for reader in self.readers(node)
        )

    def last_read(self, node: Node) -> int:
        """Return where a node, or a view of it, is last read."""
        last = -1
        for reader in self.readers(node):
            last = max(last, self._positions[reader])
            if reader.kind is Kind.VIEW:
                last = max(last, self.last_read(reader))
        return last
