"""The places of a program's values in memory, and how long each is kept."""

from __future__ import annotations

from tapetensor.arrays.array import Array
from tapetensor.compiler.plan.arena import Arena
from tapetensor.compiler.plan.groups import Unit, nodes_of
from tapetensor.compiler.plan.layout import lay_out
from tapetensor.compiler.plan.storage import TAKES_OUT, Storages, part_seen
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
        storages: whose memory each value lies in, and how it lies there.
        arrays: the arrays that are known before the plan runs.
    """

    def __init__(
        self, units: list[Unit], leaving: list[Node], places: list[int] | None = None
    ) -> None:
        self.arena = Arena(_bound(units), places)
        self.arrays: dict[Node, Array] = {}
        self.storages = Storages(units, leaving)
        lay_out(self.storages, units)

    def place(self, node: Node) -> Array:
        """Return the memory of a value, which is taken when it is first asked for."""
        known = self.arrays.get(node)
        if known is not None:
            return known
        storage = self.storages.of(node)
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
        """Return memory for a view that is a copy."""
        self.storages.add_copy(view)
        out = self.arrays[view] = self.arena.take(view.shape, view.dtype)
        return out

    def may_take_over(self, node: Node, operand: Node, position: int) -> bool:
        """Tell whether a value may lie where an operand does that nobody reads after a step."""
        if node.kind is not Kind.ELEMENTWISE or node in self.arrays or operand not in self.arrays:
            return False
        storage, flags = self.storages.of(operand), self.arrays[operand].flags
        # Otherwise it is not all of the memory, or has it in another order.
        is_in_order = operand is storage.owner or (flags.c_contiguous and flags.writeable)
        return (
            is_in_order
            and operand.size == storage.owner.size
            and storage.owner.kind in TAKES_OUT
            and storage.last_use == position
            and not storage.is_handed_over
            and storage.is_free
            and self.storages.of(node).is_free
        )

    def hand_over(self, old: Node, new: Node) -> None:
        """Give a value the place of another, which nobody reads any more."""
        self.storages.of(old).is_handed_over = True
        self.arrays[new] = self.arrays[old]

    def released(self, unit: Unit, position: int) -> list[Node]:
        """Take back memory that nobody reads after a step; return values that lie elsewhere."""
        elsewhere = []
        used = [one for node in nodes_of(unit) for one in (node, *node.parents())]
        for storage in dict.fromkeys([self.storages.of(one) for one in used]):
            root = storage.owner
            is_kept = root.kind is Kind.CONSTANT or storage.is_handed_over
            if storage.last_use != position or is_kept or not storage.is_free:
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
    return rooms * sum(node.nbytes + 4096 for node in nodes if node.kind is not Kind.CONSTANT)
