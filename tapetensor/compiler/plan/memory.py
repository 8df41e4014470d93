"""The places of a program's values in memory, and how long each is kept."""

from __future__ import annotations

from tapetensor.arrays.array import Array
from tapetensor.compiler.plan.arena import Arena
from tapetensor.compiler.plan.destinations import Destinations
from tapetensor.compiler.plan.groups import Unit, nodes_of
from tapetensor.compiler.plan.orders import Orders
from tapetensor.compiler.plan.schedule import TAKES_OUT
from tapetensor.compiler.trace.node import Kind, Node
from tapetensor.compiler.trace.view import inverse
from tapetensor.kernels.numerics import threads


class Memory:
    """Gives every value a place, and takes places back when nobody reads them any more.

    Args:
        units: all steps, in order.
        leaving: the nodes whose arrays leave the function.
        places: where values lie in the arena, in the order in which they are placed, if known.

    Attributes:
        arena: the memory that is planned.
        static: the arrays that are known before the plan runs.
        leaving: the nodes whose arrays leave the function.
        escaping: the nodes whose arrays, or views of them, leave the function.
        last_use: where the memory of each node is last read or written to.
        destinations: where some values have to be.
    """

    def __init__(
        self, units: list[Unit], leaving: list[Node], places: list[int] | None = None
    ) -> None:
        self.arena = Arena(_bound(units), places)
        self.static: dict[Node, Array] = {}
        self.leaving = set(leaving)
        # These views are copies: numpy can reshape some memory only by copying it.
        self._copies: set[Node] = set()
        self._handed_over: set[Node] = set()
        self._readers: dict[Node, list[tuple[int, Node]]] = {}
        self.last_use: dict[Node, int] = {}
        for position, unit in enumerate(units):
            for node in nodes_of(unit):
                self.last_use[self.root(node)] = position
                for parent in node.parents():
                    self.last_use[self.root(parent)] = position
                    self._readers.setdefault(parent, []).append((position, node))
        self.escaping = {self.root(node) for node in leaving}
        self.destinations = Destinations(self, units)
        self._orders = Orders(units, self.readers, self._is_free).found

    def root(self, node: Node) -> Node:
        """Return the node in whose memory a node lies."""
        while node.kind in (Kind.VIEW, Kind.WRITE) and node not in self._copies:
            node = node.args[0]
        return node

    def readers(self, node: Node) -> list[Node]:
        """Return the nodes that read a node."""
        return [reader for _, reader in self._readers.get(node, [])]

    def last_read(self, node: Node) -> int:
        """Return where a node, or a view of it, is last read."""
        readers = self._readers.get(node, [])
        own = [position for position, _ in readers]
        of_views = [self.last_read(reader) for _, reader in readers if reader.kind is Kind.VIEW]
        return max([*own, *of_views], default=-1)

    def shares(self, node: Node, other: Node) -> bool:
        """Tell whether two nodes lie in the same memory, one of them perhaps a view of it."""
        return self.root(node) is self.root(other)

    def is_destined(self, node: Node) -> bool:
        """Tell whether a value has a place already, or has to be computed at a certain one."""
        return node in self.static or not self._is_free(node)

    def _is_free(self, node: Node) -> bool:
        return node not in self.escaping and node not in self.destinations

    def of(self, node: Node) -> Array:
        """Return the memory of a value, which is taken when it is first asked for."""
        known = self.static.get(node)
        if known is not None:
            return known
        out = self.destinations.of(node, self)
        if out is None:
            order = self._orders.get(node) or tuple(range(len(node.shape)))
            shape = tuple([node.shape[axis] for axis in order])
            out = self.arena.take(shape, node.dtype).transpose(inverse(order))
        self.static[node] = out
        return out

    def copy_of(self, view: Node) -> Array:
        """Return memory for a view that is a copy."""
        self._copies.add(view)
        self.last_use[view] = self.last_read(view)
        out = self.static[view] = self.arena.take(view.shape, view.dtype)
        return out

    def is_done_with(self, node: Node, position: int) -> bool:
        """Tell whether the step at a position is the last to use a value, and may write over it."""
        root = self.root(node)
        if node not in self.static:
            return False
        # Otherwise it is not all of the memory, or has it in another order.
        flags = self.static[node].flags
        is_in_order = node is root or (flags.c_contiguous and flags.writeable)
        return (
            is_in_order
            and root.kind in TAKES_OUT
            and node.size == root.size
            and self._is_free(root)
            and root not in self._handed_over
            and self.last_use[root] == position
        )

    def lies_alike(self, node: Node, other: Node) -> bool:
        """Tell whether the axes of two nodes have one order in memory."""
        return self._orders.get(node) == self._orders.get(self.root(other))

    def hand_over(self, old: Node, new: Node) -> None:
        """Give a value the place of another, which nobody reads any more."""
        self._handed_over.add(self.root(old))
        self.static[new] = self.static[old]

    def released(self, unit: Unit, position: int) -> list[Node]:
        """Take back memory that nobody reads after a step; return values that lie elsewhere."""
        elsewhere = []
        read = [one for node in nodes_of(unit) for one in (node, *node.parents())]
        for root in dict.fromkeys([self.root(one) for one in read]):
            is_kept = root.kind is Kind.CONSTANT or root in self._handed_over
            if self.last_use[root] != position or is_kept or not self._is_free(root):
                continue
            if root in self.static:
                self.arena.give_back(self.static[root])
            else:
                elsewhere.append(root)
        return elsewhere


def _bound(units: list[Unit]) -> int:
    """Return how many bytes hold all values and gradients at once, and scratch for each thread."""
    rooms = 2 + threads.count()
    nodes = [node for unit in units for node in nodes_of(unit)]
    return rooms * sum(node.nbytes + 4096 for node in nodes if node.kind is not Kind.CONSTANT)
