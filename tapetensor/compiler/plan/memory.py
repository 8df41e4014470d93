"""The places of a program's values in memory, and how long each is kept."""

from __future__ import annotations

from collections.abc import Iterable

from tapetensor.arrays.array import Array
from tapetensor.compiler.plan.arena import Arena
from tapetensor.compiler.plan.groups import Group, Unit, nodes_of
from tapetensor.compiler.plan.storage import TAKES_OUT, Storage, part_seen, readers_of
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
        arrays: the arrays that are known before the plan runs.
        leaving: the nodes whose arrays leave the function.
        positions: the position of the unit that computes each node.
    """

    def __init__(
        self, units: list[Unit], leaving: list[Node], places: list[int] | None = None
    ) -> None:
        self.arena = Arena(_bound(units), places)
        self.arrays: dict[Node, Array] = {}
        self.leaving = set(leaving)
        self._storages: dict[Node, Storage] = {}
        self._readers = readers_of(node for unit in units for node in nodes_of(unit))
        self.positions: dict[Node, int] = {}
        for position, unit in enumerate(units):
            for node in nodes_of(unit):
                self.positions[node] = position
                for one in (node, *node.parents()):
                    self.storage(one).last_use = position
        for node in leaving:
            self.storage(node).escapes = True

    def storage(self, node: Node) -> Storage:
        """Return the storage in which a node lies."""
        # A view that turned out to be a copy has a storage, too.
        found = self._storages.get(node)
        while found is None and node.kind in (Kind.VIEW, Kind.WRITE):
            node = node.args[0]
            found = self._storages.get(node)
        if found is None:
            found = self._storages[node] = Storage(node)
        return found

    def shares(self, node: Node, other: Node) -> bool:
        """Tell whether two nodes lie in the same storage."""
        return self.storage(node) is self.storage(other)

    def readers(self, node: Node) -> list[Node]:
        """Return the nodes that read a node."""
        return self._readers.get(node, [])

    def read_outside(self, group: Group) -> list[Node]:
        """Return the values of a group that are read outside of it, as they are or in a view."""
        found = set[Node]()
        for node in reversed(group.nodes):
            if node in self.leaving or any(
                reader not in group or (reader.kind is Kind.VIEW and reader in found)
                for reader in self.readers(node)
            ):
                found.add(node)
        return [node for node in group.nodes if node in found]

    def last_read(self, node: Node) -> int:
        """Return where a node, or a view of it, is last read; -1 if nowhere."""
        last, waiting = -1, [node]
        while waiting:
            for reader in self.readers(waiting.pop()):
                last = max(last, self.positions[reader])
                waiting += [reader] if reader.kind is Kind.VIEW else []
        return last

    def place(self, node: Node) -> Array:
        """Return the memory of a value, which is taken when it is first asked for."""
        known = self.arrays.get(node)
        if known is not None:
            return known
        storage = self.storage(node)
        if storage.copied_by is None:
            order = storage.order or tuple(range(len(node.shape)))
            shape = tuple([node.shape[axis] for axis in order])
            out = self.arena.take(shape, node.dtype).transpose(inverse(order))
        else:
            whole, part = storage.copied_by.detail, storage.copied_by.args[1]
            seen = part_seen(part, self.place(whole))
            assert seen is not None
            out = seen
        self.arrays[node] = out
        return out

    def place_copy(self, view: Node) -> Array:
        """Return memory for a view that is a copy, as numpy can reshape some memory only so."""
        self._storages[view] = Storage(view, self.last_read(view))
        out = self.arrays[view] = self.arena.take(view.shape, view.dtype)
        return out

    def take_over(self, node: Node, operands: Iterable[Node]) -> bool:
        """Place a value where one of some operands lies; tell whether nobody reads that later."""
        for operand in operands:
            if self._may_take_over(node, operand):
                self.storage(operand).is_handed_over = True
                self.arrays[node] = self.arrays[operand]
                return True
        return False

    def _may_take_over(self, node: Node, operand: Node) -> bool:
        if node in self.arrays or operand not in self.arrays:
            return False
        storage, flags = self.storage(operand), self.arrays[operand].flags
        # Otherwise it is not all of the memory, or has it in another order.
        is_in_order = operand is storage.owner or (flags.c_contiguous and flags.writeable)
        return (
            is_in_order
            and operand.size == storage.owner.size
            and storage.owner.kind in TAKES_OUT
            and storage.last_use == self.positions[node]
            and not storage.is_handed_over
            and storage.is_free
            and self.storage(node).is_free
        )

    def released(self, unit: Unit) -> list[Node]:
        """Take back memory that nobody reads after a step; return values that lie elsewhere."""
        elsewhere = []
        nodes = nodes_of(unit)
        used = [one for node in nodes for one in (node, *node.parents())]
        for storage in dict.fromkeys([self.storage(one) for one in used]):
            root, is_last = storage.owner, storage.last_use == self.positions[nodes[0]]
            is_kept = root.kind is Kind.CONSTANT or storage.is_handed_over
            if not is_last or is_kept or not storage.is_free:
                continue
            if root in self.arrays:
                self.arena.give_back(self.arrays[root])
            else:
                elsewhere.append(root)
        return elsewhere


def _bound(units: list[Unit]) -> int:
    """Return how many bytes hold all values and gradients at once, and scratch for each thread."""
    rooms = 2 + threads.count()
    nodes = [node for unit in units for node in nodes_of(unit)]
    # Of views, only those that reshape may turn out to be copies.
    placed = [
        node for node in nodes
        if node.kind is not Kind.CONSTANT
        and (node.kind is not Kind.VIEW or node.function.name == "reshape")
    ]  # fmt: skip
    return rooms * sum(node.nbytes + 4096 for node in placed)
