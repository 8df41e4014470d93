"""The places of a program's values in memory, and how long each is kept.

Each lies at the place where nobody has to copy it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

from tapetensor.arrays.array import Array
from tapetensor.compiler.plan.arena import Arena
from tapetensor.compiler.plan.groups import Group, Unit, nodes_of
from tapetensor.compiler.plan.storage import (
    SEEN,
    TAKES_OUT,
    Storage,
    part_seen,
    readers_of,
)
from tapetensor.compiler.trace.node import Kind, Node
from tapetensor.compiler.trace.operations import writes_anywhere
from tapetensor.kernels.numerics import threads


class Memory:
    """Gives every value a place, and takes places back when nobody reads them any more.

    Args:
        units: all steps, in order.
        leaving: the nodes whose arrays leave the function.

    Attributes:
        arena: the memory that is planned.
        arrays: the arrays that are known before the plan runs.
        leaving: the nodes whose arrays leave the function.
        positions: the position of the unit that computes each node.
    """

    def __init__(self, units: list[Unit], leaving: list[Node]) -> None:
        nodes = [node for unit in units for node in nodes_of(unit)]
        self.arena = Arena(_bound(nodes))
        self.arrays: dict[Node, Array] = {}
        self.leaving = set(leaving)
        self._storages: dict[Node, Storage] = {}
        self._readers = readers_of(nodes)
        self.positions: dict[Node, int] = {}
        own: list[Storage] = []
        storages = self._storages
        for position, unit in enumerate(units):
            for node in nodes_of(unit):
                self.positions[node] = position
                if node.kind in SEEN:
                    storages[node] = storage = storages[node.args[0]]
                else:
                    storages[node] = storage = Storage(node)
                    own.append(storage)
                storage.last_use = position
                for parent in node.parents():
                    storages[parent].last_use = position
        for node in leaving:
            storages[node].escapes = True
        # The storages that each unit is the last to use.
        self._ending: dict[int, list[Storage]] = defaultdict(list)
        for storage in own:
            self._ending[storage.last_use].append(storage)

    def storage(self, node: Node) -> Storage:
        """Return the storage in which a node lies."""
        return self._storages[node]

    def shares(self, node: Node, other: Node) -> bool:
        """Tell whether two nodes lie in the same storage."""
        return self._storages[node] is self._storages[other]

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
            out = self.arena.take(node.shape, node.dtype)
        else:
            _, part, value = storage.copied_by.args
            seen = part_seen(part, self.place(self.storage(storage.copied_by).owner))
            assert seen is not None
            out = seen if value is node else value.function.undone(node)(seen)
        self.arrays[node] = out
        return out

    def take_over(self, node: Node, may_write_over: Callable[[Node], bool]) -> bool:
        """Place a value where an operand lies that nobody reads later; tell whether there is one.

        Args:
            node: the value.
            may_write_over: tells of an operand whether its step may write over it.
        """
        for operand in node.parents():
            if self._may_take_over(node, operand) and may_write_over(operand):
                self.storage(operand).is_handed_over = True
                self.arrays[node] = self.arrays[operand]
                return True
        return False

    def _may_take_over(self, node: Node, operand: Node) -> bool:
        storage = self._storages[operand]
        root = storage.owner
        if (
            storage.last_use != self.positions[node]
            or root.kind not in TAKES_OUT
            or operand.size != root.size
            or storage.is_handed_over
            or node in self.arrays
            or operand not in self.arrays
            or not storage.is_free
            or not self._storages[node].is_free
        ):
            return False
        # Otherwise it is not all of the memory, or has it in another order.
        flags = self.arrays[operand].flags
        return operand is root or (flags.c_contiguous and flags.writeable)

    def released(self, position: int) -> list[Node]:
        """Take back memory that nobody reads after a unit; return values that lie elsewhere."""
        elsewhere = []
        for storage in self._ending.get(position, ()):
            root = storage.owner
            if root.kind is Kind.CONSTANT or storage.is_handed_over or not storage.is_free:
                continue
            if root in self.arrays:
                self.arena.give_back(self.arrays[root])
            else:
                elsewhere.append(root)
        return elsewhere


def _bound(nodes: list[Node]) -> int:
    """Return how many bytes hold all values and gradients at once, and scratch for each thread."""
    rooms = 2 + threads.count()
    sizes = [node.nbytes + 4096 for node in nodes if node.kind not in (Kind.CONSTANT, Kind.VIEW)]
    return rooms * sum(sizes)


# Steps of these kinds can write to memory with gaps, or in another order of axes.
_ANYWHERE = frozenset({Kind.ELEMENTWISE, Kind.MATMUL})


def lay_out(memory: Memory, units: list[Unit]) -> None:
    """Give values their places among gradients and in larger arrays."""
    for unit in units:
        if isinstance(unit, Node) and unit.kind is Kind.UPDATE:
            _lay_end_to_end(unit, memory)
    for unit in units:
        if isinstance(unit, Node) and unit.kind is Kind.WRITE and unit.detail is not None:
            _lay_in_place(unit, memory)


def _lay_end_to_end(update: Node, memory: Memory) -> None:
    """Have gradients lie where the step of the optimizer reads them."""
    places = [memory.storage(gradient) for gradient in update.args]
    for number, (gradient, storage) in enumerate(zip(update.args, places, strict=True)):
        root = storage.owner
        is_in_order = gradient is root or (
            gradient.kind is Kind.VIEW
            and gradient.function.name == "reshape"
            and gradient.args[0] is root
        )
        if (
            is_in_order
            and root.kind in TAKES_OUT
            and places.count(storage) == 1
            and not storage.escapes
            # The optimizer's step may write new values over it.
            and storage.last_use == memory.positions[update]
        ):
            storage.gradient = update, number


def _lay_in_place(write: Node, memory: Memory) -> None:
    """Have a part of a larger array lie where a write would copy it to."""
    before, part, value = write.args
    if not isinstance(value, Node) or value.shape != part.shape:
        return
    made, reader, storage = value, write, memory.storage(write)
    if value.kind is Kind.VIEW and value.function.name == "transpose":
        (made,), reader = value.args, value
    positions, whole = memory.positions, storage.owner
    if (
        made.kind in _ANYWHERE
        and writes_anywhere(made)
        and memory.readers(value) == [write]
        and memory.readers(made) == [reader]
        and value.dtype == write.dtype
        and memory.storage(value).is_free
        # What is there before comes first, and so does the memory of an array that leaves.
        and (write.detail or positions[before] < positions[made])
        and (not storage.escapes or positions[whole] < positions[made])
    ):
        memory.storage(value).copied_by = write
