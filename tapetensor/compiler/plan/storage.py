"""Storage: the memory of a value, which all views of it share."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from tapetensor.arrays.array import Array
from tapetensor.compiler.trace.node import Kind, Node
from tapetensor.compiler.trace.operations import cast_to, select

# numpy can write the results of these kinds into memory that it is given.
TAKES_OUT = frozenset({Kind.ELEMENTWISE, Kind.REDUCE, Kind.MATMUL})
# Values of these kinds lie in the memory of their first argument.
SEEN = frozenset({Kind.VIEW, Kind.WRITE})


def owner(node: Node) -> Node:
    """Return the node that made the memory in which a node lies."""
    while node.kind in SEEN:
        node = node.args[0]
    return node


def shares_memory(node: Node, other: Node) -> bool:
    """Tell whether two nodes lie in the memory of one owner."""
    return owner(node) is owner(other)


def source_of(node: Node) -> Node | None:
    """Return the node that a step copies, perhaps into another dtype; None if it is no copy."""
    if node.kind is not Kind.ELEMENTWISE or len(node.args) != 1:
        return None
    source: Node | None = node.args[0] if node.function is cast_to(node.dtype) else None
    return source


def part_seen(view: Node, whole: Array) -> Array | None:
    """Return the part of its owner's array that a view shows; None where it would be a copy."""
    views = []
    while view.kind in SEEN:
        if view.kind is Kind.VIEW:
            views.append(view.function)
        view = view.args[0]
    seen = whole
    for function in reversed(views):
        seen = function(seen)
        if not (np.may_share_memory(seen, whole) and seen.flags.writeable):
            return None
    return seen


def made_of(
    nodes: Iterable[Node], is_made_here: Callable[[Node], bool] = lambda node: True
) -> set[Node]:
    """Return nodes and all that they are made of, back to those that are not made here."""
    found: set[Node] = set()
    # Chains of operands may be too long for a recursion.
    waiting = [*nodes]
    while waiting:
        node = waiting.pop()
        if node not in found:
            found.add(node)
            waiting += node.parents() if is_made_here(node) else ()
    return found


def readers_of(nodes: Iterable[Node]) -> dict[Node, list[Node]]:
    """Return the nodes that read each node, as often as they read it."""
    readers: dict[Node, list[Node]] = defaultdict(list)
    for node in nodes:
        for parent in node.parents():
            readers[parent].append(node)
    return readers


def may_write_over(
    node: Node, operand: Node, shares: Callable[[Node, Node], bool] = shares_memory
) -> bool:
    """Tell whether a step may write its result over one of its operands."""
    if (
        node.kind is not Kind.ELEMENTWISE
        # Over its operand numpy computes it in twelve times the time.
        or node.function is np.sign
        or operand.shape != node.shape
        or operand.dtype != node.dtype
    ):
        return False
    operands = node.args
    # The mask and the first choice of a selection are read after it has begun to write.
    if node.function is select and (operands[2] is not operand or operands.count(operand) > 1):
        return False
    return not [one for one in operands if one is not operand and shares(one, operand)]


@dataclass(eq=False, slots=True)
class Storage:
    """The memory of a value, which all views of it and all writes to it share.

    Attributes:
        owner: the node that made it.
        last_use: the position of the last step that reads it or writes to it.
        escapes: whether it leaves the function, as a whole or seen in some way.
        gradient: the optimizer's step whose gradients it is one of, and which of them.
        copied_by: the write that would copy it to its place in another storage; it lies there.
        is_handed_over: whether another value has been written over it.
    """

    owner: Node
    last_use: int = -1
    escapes: bool = False
    gradient: tuple[Node, int] | None = None
    copied_by: Node | None = None
    is_handed_over: bool = False

    @property
    def is_free(self) -> bool:
        """Whether it may lie anywhere in planned memory."""
        return not self.escapes and self.gradient is None and self.copied_by is None
