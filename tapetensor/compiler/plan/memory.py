"""The places of a program's values in memory, and how long each is kept.

There is one region, whose parts are handed out, given back and handed out again. Each value lies at
the place where nobody has to copy it.
"""

from __future__ import annotations

import math
import sys
from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import numpy as np

from tapetensor.arrays.array import Array, untouched
from tapetensor.compiler.plan.groups import Group, Unit, nodes_of
from tapetensor.compiler.plan.storage import SEEN, TAKES_OUT, Storage, part_seen, readers_of
from tapetensor.compiler.trace.node import Kind, Node
from tapetensor.compiler.trace.operations import writes_anywhere
from tapetensor.kernels.numerics import threads

_ALIGNMENT = 64
# An arena of fewer bytes, or of more parts, is not laid out again.
_WORTH_IT = 1 << 20
_TOO_MANY = 500


@dataclass
class Range:
    """A part of the arena, when it was taken and given back, and how far it has been moved."""

    start: int
    size: int
    begin: int
    end: int = sys.maxsize
    shift: int = 0


class Arena:
    """A region of memory in which every value of a program has its place.

    Live ranges are known, so a place is used again as soon as its last reader is done. The region
    is reserved as a whole; the system provides memory for what is written to, `nbytes` at most.
    """

    def __init__(self, capacity: int) -> None:
        self.nbytes = 0
        self.ranges: list[Range] = []
        # By the id of an array of all of its bytes, which all arrays that lie there have as a base.
        self._parts: dict[int, tuple[Array, Range]] = {}
        # The size and the place of each hole between parts that are taken now, the smallest first.
        self._holes: list[tuple[int, int]] = []
        # Where each of them starts, by where it stops, and the other way round.
        self._starts: dict[int, int] = {}
        self._stops: dict[int, int] = {}
        self._clock = 0
        self._region = untouched((capacity + _ALIGNMENT,), np.dtype(np.uint8))
        self._region = self._region[-self._region.ctypes.data % _ALIGNMENT :]
        self._buffer, self._address = self._region.data, self._region.ctypes.data
        self._open(0, self._region.nbytes)

    def take(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """Return an array that nobody else uses until it is given back."""
        wanted = math.prod(shape) * dtype.itemsize
        if not wanted:
            return np.empty(shape, dtype)
        size = -(-wanted // _ALIGNMENT) * _ALIGNMENT
        start = self._fill_hole(size)
        self._clock += 1
        one = Range(start, size, self._clock)
        self.ranges.append(one)
        self.nbytes = max(self.nbytes, start + size)
        part = np.frombuffer(self._buffer, dtype, wanted // dtype.itemsize, start)
        self._parts[id(part)] = part, one
        return part.reshape(shape)

    def better_places(self) -> list[int] | None:
        """Return places that need less memory, now that all parts are known; None if none do.

        The largest part comes first. Each lies as low as the parts kept at the same time allow.
        """
        if self.nbytes < _WORTH_IT or len(self.ranges) > _TOO_MANY:
            return None
        # Where each starts and stops, and how long it is kept.
        placed: list[tuple[int, int, int, int]] = []
        for one in sorted(self.ranges, key=lambda one: -one.size):
            start, size, taken, given_back = 0, one.size, one.begin, one.end
            for first, stop, begin, end in placed:
                if begin > given_back or taken > end:
                    continue
                if first - start >= size:
                    break
                start = max(start, stop)
            insort(placed, (start, start + size, taken, given_back))
        if max([stop for _, stop, _, _ in placed]) >= self.nbytes:
            return None
        return [start for start, _, _, _ in sorted(placed, key=itemgetter(2))]

    def move(self, places: list[int]) -> None:
        """Have each part lie elsewhere; the parts are in the order in which they were taken."""
        self.nbytes = 0
        for start, one in zip(places, self.ranges, strict=True):
            one.shift, one.start = start - one.start, start
            self.nbytes = max(self.nbytes, start + one.size)

    def moved(self, value: Any) -> Any:
        """Return an array where its part lies now, also for arrays in lists and tuples."""
        if value.__class__ in (list, tuple):
            return value.__class__(map(self.moved, value))
        one = self._part_of(value) if isinstance(value, np.ndarray) else None
        if one is None:
            return value
        start = value.ctypes.data - self._address + one.shift
        return np.ndarray(value.shape, value.dtype, self._region, start, value.strides)

    def _part_of(self, array: Array) -> Range | None:
        """Return the part in which an array lies; None if it lies elsewhere."""
        base: Any = array
        while base is not None and id(base) not in self._parts:
            base = getattr(base, "base", None)
        return None if base is None else self._parts[id(base)][1]

    def _fill_hole(self, size: int) -> int:
        """Return the place of the smallest hole that fits, the free end being the largest."""
        found, start = self._holes[bisect_left(self._holes, (size, 0))]
        self._close(start, start + found)
        if found > size:
            self._open(start + size, start + found)
        return start

    def _open(self, start: int, stop: int) -> None:
        """Add a hole, joined with those on both of its sides."""
        first, last = self._starts.get(start, start), self._stops.get(stop, stop)
        for one in ((first, start), (stop, last)):
            if one[0] != one[1]:
                self._close(*one)
        self._starts[last], self._stops[first] = first, last
        insort(self._holes, (last - first, first))

    def _close(self, start: int, stop: int) -> None:
        del self._starts[stop], self._stops[start]
        del self._holes[bisect_left(self._holes, (stop - start, start))]

    def give_back(self, array: Array) -> None:
        """Take back an array that `take` returned."""
        if not array.size:
            return
        one = self._part_of(array)
        assert one is not None
        self._open(one.start, one.start + one.size)
        self._clock += 1
        one.end = self._clock


class Memory:
    """Gives every value a place, and takes places back when nobody reads them any more."""

    def __init__(self, units: list[Unit], outputs: list[Node]) -> None:
        nodes = [node for unit in units for node in nodes_of(unit)]
        self.arena = Arena(_bound(nodes))
        self.arrays: dict[Node, Array] = {}
        self.outputs = set(outputs)
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
        for node in outputs:
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
            if node in self.outputs or any(
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
        """Place a value where an operand lies that nobody reads later; tell if there is one."""
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
