"""What runs groups: on numpy, loops over blocks of rows, while a block is in the cache."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tapetensor.arrays.array import Array
from tapetensor.compiler.emit.code import Code, Operand, call_into, indented
from tapetensor.compiler.plan.groups import Group
from tapetensor.compiler.plan.storage import may_write_over, owner
from tapetensor.compiler.trace.node import DType, Kind, Node, Shape, View
from tapetensor.kernels.numerics import threads

# Below that many bytes in its largest value a group gains nothing from blocks.
_SMALLEST = 1 << 18
# A thread for fewer elements costs more than it gives.
_SMALLEST_FOR_THREADS = 1 << 19
# So many elements of a value are worked on at a time. Half as many or twice as many were slower:
# the calls cost more, or the values leave the caches.
BLOCK = 1 << 17

# Sums of blocks of numbers of fewer bytes would be rounded to few digits.
_FLOAT_BYTES = 4
# Steps of these kinds numpy computes as well row by row.
_TAKEN = frozenset({Kind.ELEMENTWISE, Kind.REDUCE, Kind.VIEW})


@dataclass
class BlockLoops:
    """Runs groups with numpy's functions on blocks of rows; temporary values lie in scratch.

    Beside matrix products groups run on one thread: the threads of the BLAS spin on for a while
    after each product, and a thread beside them makes a step slower.
    """

    has_products: bool

    def takes(self, node: Node) -> bool:
        """Tell whether numpy computes a step as well row by row."""
        is_rounded = node.kind is Kind.REDUCE and node.dtype.itemsize < _FLOAT_BYTES
        return node.kind in _TAKEN and not (is_rounded and node.dtype.kind == "f")

    def is_worth_it(self, group: Group) -> bool:
        """Tell whether blocks save trips to memory."""
        steps = [node for node in group.nodes if node.kind is not Kind.VIEW]
        is_large = max(node.nbytes for node in group.arrays()) >= _SMALLEST
        # A single block would only take scratch where single steps work in place.
        return len(steps) > 1 and is_large and group.rows > self._rows_of_block(group)

    def prepared(self, schedule: list[Node]) -> list[Node]:
        """Return the schedule as it is."""
        return schedule

    def kernel(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function that runs a step that is captured whole: the step as it is."""
        return function

    def build(self, group: Group, code: Code) -> None:
        """Write the functions that run a group, one per thread, and the steps that call them."""
        rows = self._rows_of_block(group)
        whole, tail = divmod(group.rows, rows)
        blocks = [(part * rows, (part + 1) * rows, part) for part in range(whole)]
        parts = {
            node: np.empty((whole + bool(tail), *node.shape), node.dtype) for node in group.totals
        }
        largest = max(node.size for node in group.arrays())
        is_for_threads = not self.has_products and largest >= _SMALLEST_FOR_THREADS
        shares = threads.shares(whole, threads.count() if is_for_threads else 1)
        bodies = [_Body(group, code, blocks[first:last], parts) for first, last in shares]
        if tail:
            bodies.append(_Body(group, code, [(group.rows - tail, group.rows, whole)], parts))
        for body in bodies:
            body.write()
        # Bodies may run at the same time, so none takes the scratch of another.
        for body in bodies:
            for array in body.scratch:
                code.memory.arena.give_back(array)
        calls = [(body.name, body.arguments) for body in bodies]
        emit_calls(group, calls, code, are_together=len(shares) > 1)
        for node, array in parts.items():
            total = code.operand(node).source
            line = f"{code.bind(node.function.reduce)}({code.bind(array)}, 0, None, {total})"
            code.emit(node, line, title="take together")

    def _rows_of_block(self, group: Group) -> int:
        """Return how many rows are worked on at a time; all blocks have about as many."""
        largest = max(node.size for node in group.arrays())
        most = min(group.rows, max(1, BLOCK // (largest // group.rows)))
        return -(-group.rows // -(-group.rows // most))


def emit_calls(
    group: Group,
    calls: list[tuple[str, str]],
    code: Code,
    *,
    are_together: bool,
    name: str = "group",
) -> None:
    """Write the step that runs a group by calls of functions, perhaps at the same time."""
    if are_together:
        together = ", ".join([f"({run}, {arguments})" for run, arguments in calls])
        line = f"{code.bind(threads.run_together)}({together})"
    else:
        line = "; ".join([f"{run}({arguments})" for run, arguments in calls])
    names = [node.name for node in group.nodes if node.kind is not Kind.VIEW]
    title = f"{name} of {len(names)}: {', '.join(names)}"
    code.emit(group.nodes[-1], line, title=title, group=tuple(group.nodes))


class _Body:
    """Writes the function that runs a group on some of its blocks, with scratch of its own.

    A block is where it starts, where it stops, and which of the parts, which take the totals of
    rows, is its own. All have as many rows.
    """

    def __init__(
        self,
        group: Group,
        code: Code,
        blocks: list[tuple[int, int, int]],
        parts: dict[Node, Array],
    ) -> None:
        self._group = group
        self._code = code
        (start, stop, _), *_ = self._blocks = blocks
        self._count = stop - start
        self._parts = parts
        self.name = f"group{group.nodes[0].index}_{start}"
        self.arguments = ""
        self.scratch: list[Array] = []
        # Where a value, or a view of it, is last read.
        self._last_read = {
            owner(parent): position
            for position, node in enumerate(group.nodes)
            for parent in node.parents()
        }
        self._lines: list[str] = []
        # Arrays are cut into blocks: known ones beforehand, others as the function runs.
        self._known: dict[Node, Array] = {}
        self._passed: dict[Node, str] = {}
        self._cut: dict[Node, None] = {}
        # The values inside as one block sees them, and the scratch that is in use and free again.
        self._values: dict[Node, Operand] = {}
        self._live: dict[Node, Array] = {}
        self._free: list[Array] = []

    def write(self) -> None:
        """Write the function, and the arguments of its call."""
        code, group = self._code, self._group
        for position, node in enumerate(group.nodes):
            if node.kind is Kind.VIEW:
                self._write_view(node)
            elif node in group.totals:
                self._write_call(node, Operand(_name(node)))
            else:
                self._write_call(node, self._out(node, position))
            for value in dict.fromkeys([owner(parent) for parent in node.parents()]):
                if value in self._live and self._last_read[value] == position:
                    self._free.append(self._live.pop(value))
        slices = [
            (
                start,
                stop,
                *[array[start:stop] for array in self._known.values()],
                *[array[part] for array in self._parts.values()],
            )
            for start, stop, part in self._blocks
        ]
        variables = "".join([f", {_name(node)}" for node in (*self._known, *self._parts)])
        cut = [f"{_name(node)} = {_name(node)}_[start:stop]" for node in self._cut]
        parameters = "".join([f", {_name(node)}_" for node in self._passed])
        lines = [
            f"def {self.name}(blocks{parameters}):",
            f"    for start, stop{variables} in blocks:",
            *indented([*cut, *self._lines], 2),
        ]
        code.functions.append("\n".join(lines))
        self.arguments = ", ".join([code.bind(slices), *self._passed.values()])

    def _write_call(self, node: Node, out: Operand) -> None:
        operands = [self._operand(operand, node) for operand in node.args]
        self._lines.append(call_into(out, node, operands, self._code, self._count))

    def _write_view(self, node: Node) -> None:
        (operand,) = node.args
        seen = self._operand(operand, node)
        shape = (self._count, *node.shape[1:])
        is_reshape = node.function.name == "reshape"
        function = View("reshape", shape) if is_reshape else node.function
        if seen.array is None:
            self._lines.append(f"{_name(node)} = {self._code.seen_by(function, seen.source)}")
            self._values[node] = Operand(_name(node))
            return
        view = function(seen.array)
        assert np.may_share_memory(view, seen.array), node
        self._values[node] = self._code.bound(view)

    def _out(self, node: Node, position: int) -> Operand:
        """Return what a step writes to."""
        if node in self._group.kept:
            return self._slice(node)
        # An operand that dies here may be written over.
        dying = [
            operand
            for operand in node.parents()
            if operand in self._live
            and self._last_read[operand] == position
            and may_write_over(node, operand)
        ]
        if dying:
            scratch = self._live.pop(dying[0])
        else:
            scratch = self._scratch((self._count, *node.shape[1:]), node.dtype)
        self._live[node] = scratch
        self._values[node] = self._code.bound(scratch)
        return self._values[node]

    def _scratch(self, shape: Shape, dtype: DType) -> Array:
        wanted = math.prod(shape) * dtype.itemsize
        for position, array in enumerate(self._free):
            if array.nbytes == wanted:
                flat = self._free.pop(position).reshape(-1)
                return flat.view(dtype).reshape(shape)
        array = self._code.memory.arena.take(shape, dtype)
        self.scratch.append(array)
        return array

    def _operand(self, operand: Node, reader: Node) -> Operand:
        """Return an operand as one block sees it."""
        known = self._values.get(operand)
        if known is not None:
            return known
        is_row = self._group.reads_rows(reader, operand)
        return self._slice(operand) if is_row else self._whole(operand)

    def _whole(self, node: Node) -> Operand:
        operand = self._code.operand(node)
        if operand.array is not None:
            return operand
        self._passed[node] = operand.source
        return Operand(f"{_name(node)}_")

    def _slice(self, node: Node) -> Operand:
        array = self._code.memory.arrays.get(node)
        if array is None:
            self._cut[node] = None
            self._whole(node)
        else:
            self._known[node] = array
        return Operand(_name(node))


def _name(node: Node) -> str:
    return f"b{node.index}"
