"""The executor of groups on numpy: loops over blocks of rows, while a block is in the cache."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tapetensor.arrays.array import Array
from tapetensor.compiler.emit.calls import call_into
from tapetensor.compiler.emit.code import Code, Operand, indented
from tapetensor.compiler.plan.groups import Group
from tapetensor.compiler.plan.storage import may_write_over, owner
from tapetensor.compiler.trace.node import DType, Kind, Node, Shape
from tapetensor.compiler.trace.view import View
from tapetensor.kernels.numerics import threads
from tapetensor.kernels.numerics.sums import LANES, UNPAIRED, added_in_pairs, adds_in_pairs

# Below that many bytes in its largest value a group gains nothing from blocks.
_SMALLEST = 1 << 18
# A thread for fewer elements costs more than it gives.
_SMALLEST_FOR_THREADS = 1 << 19
# So many elements of a value are worked on at a time. Half as many or twice as many were slower:
# the calls cost more, or the values leave the caches.
BLOCK = 1 << 17

# Each thread of the BLAS sums 16 of its rows together, or a divisor of that, the rest in another
# way. Of multiples of so many rows no thread has a rest: blocks have the sums of all rows at once.
_ROWS_TOGETHER = 16 * math.lcm(16, os.cpu_count() or 1)
# More rows than that, of so few elements, OpenBLAS sums in another way with AVX-512.
_MANY_ROWS = 1 << 14
_NARROW = 8

# Fewer bytes to a number leave few digits.
_FLOAT_BYTES = 4
# Steps of these kinds numpy computes as well row by row.
_TAKEN = frozenset({Kind.ELEMENTWISE, Kind.REDUCE, Kind.VIEW})
# Of numbers with a point these give another last digit where they begin elsewhere.
_INEXACT = frozenset({np.add, np.multiply})


@dataclass
class BlockLoops:
    """Runs groups with numpy's functions on blocks of rows; what dies inside lies in scratch.

    Args:
        has_products: whether the program has matrix products. Groups then run on one thread: the
            threads of the BLAS spin on for a while after each product, and a thread beside them
            makes a step slower.
    """

    has_products: bool
    # Steps that no group takes, sums of all rows that groups take, and for how many rows of which
    # number the BLAS has the sums of each at once.
    _whole: set[Node] = field(init=False, default_factory=set)
    _sums: set[Node] = field(init=False, default_factory=set)
    _together: dict[int, int] = field(init=False, default_factory=dict)

    def takes(self, node: Node) -> bool:
        """Tell whether numpy computes a step as well row by row."""
        return node.kind in _TAKEN and node not in self._whole

    def is_worth_it(self, group: Group) -> bool:
        """Tell whether blocks save trips to memory."""
        steps = [node for node in group.nodes if node.kind is not Kind.VIEW]
        is_large = max(node.nbytes for node in group.arrays()) >= _SMALLEST
        # A single block would only take scratch where single steps work in place.
        return len(steps) > 1 and is_large and group.rows > self._rows_of_block(group)

    def prepared(self, schedule: list[Node]) -> list[Node]:
        """Return the schedule as it is; sums that would have other last digits stay whole."""
        largest = _largest_values(schedule)
        sums = [
            (node, node.args[0].shape[0])
            for node in schedule
            if node.kind is Kind.REDUCE
            and node.function in _INEXACT
            and node.dtype.kind in "fc"
            and node.args[0].shape
            # Smaller ones are in no group that is worth it.
            and largest[node.args[0].shape[0]] > BLOCK
        ]
        for node, rows in sums:
            axes, is_by_rows = node.detail
            if is_by_rows and 0 not in axes:
                together = _rows_together(node)
                if rows % together == 0 and together * largest[rows] <= 2 * BLOCK * rows:
                    self._together[rows] = math.lcm(self._together.get(rows, 1), together)
                else:
                    self._whole.add(node)
        for node, rows in sums:
            if 0 in node.detail[0]:
                is_of_blocks = _is_sum_of_blocks(
                    node, _halvings(largest[rows]), self._together.get(rows, 1)
                )
                (self._sums if is_of_blocks else self._whole).add(node)
        return schedule

    def kernel(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return what runs a step that is captured whole: the step as it is."""
        return function

    def build(self, group: Group, code: Code) -> None:
        """Write the functions that run a group, one per thread, and the steps that call them.

        Args:
            group: what is to be run; its inputs and kept values have their places.
            code: where it is written to; its memory has room for scratch.
        """
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
            if node in self._sums:
                line = f"{code.bind(added_in_pairs)}({code.bind(array)}, {total})"
            code.emit(node, line, title="take together")

    def _rows_of_block(self, group: Group) -> int:
        """Return how many rows are worked on at a time; all blocks have about as many."""
        largest = max(node.size for node in group.arrays())
        if not self._sums.isdisjoint(group.totals):
            return group.rows >> _halvings(largest)
        most = min(group.rows, max(1, BLOCK // (largest // group.rows)))
        count = -(-group.rows // -(-group.rows // most))
        together = self._together.get(group.rows, 1)
        return min(group.rows, count + -count % together)


def _largest_values(schedule: list[Node]) -> dict[int, int]:
    """Return how many elements the largest value has, of those with as many rows."""
    largest: dict[int, int] = {}
    # What they read is in the schedule, too.
    for node in schedule:
        if node.shape:
            largest[node.shape[0]] = max(largest.get(node.shape[0], 0), node.size)
    return largest


def _rows_together(sums: Node) -> int:
    """Return of how many rows, or a multiple, the BLAS has the same sums as of all."""
    axes, _ = sums.detail
    (operand,) = sums.args
    rows: int = operand.shape[0]
    of_product = math.prod(operand.shape[1 : axes[0]])
    if sums.size > _MANY_ROWS and operand.size <= _NARROW * sums.size:
        return rows
    return _ROWS_TOGETHER // math.gcd(_ROWS_TOGETHER, of_product)


def _is_sum_of_blocks(total: Node, halvings: int, together: int) -> bool:
    """Tell whether numpy adds up the elements of blocks, and then the blocks in pairs.

    Args:
        total: the sum.
        halvings: how often its rows are halved until they are a block.
        together: what the rows of a block have to be a multiple of.
    """
    (operand,) = total.args
    return (
        total.function is np.add
        and operand.kind is Kind.ELEMENTWISE
        and operand.dtype == total.dtype
        # numpy adds numbers of fewer bytes as float32, and rounds the sum.
        and total.dtype.itemsize >= _FLOAT_BYTES
        and len(total.detail[0]) == len(operand.shape)
        and operand.shape[0] % (together << halvings) == 0
        and operand.size % (LANES << halvings) == 0
        and operand.size >> halvings > UNPAIRED
        and adds_in_pairs()
    )


def emit_calls(
    group: Group,
    calls: list[tuple[str, str]],
    code: Code,
    *,
    are_together: bool,
    name: str = "group",
) -> None:
    """Write the step that runs a group.

    Args:
        group: what is run.
        calls: the functions that run it, each with the source of its arguments.
        code: where the step is written to.
        are_together: whether they run at the same time.
        name: what such a group is called.
    """
    if are_together:
        together = ", ".join([f"({run}, {arguments})" for run, arguments in calls])
        line = f"{code.bind(threads.run_together)}({together})"
    else:
        line = "; ".join([f"{run}({arguments})" for run, arguments in calls])
    names = [node.name for node in group.nodes if node.kind is not Kind.VIEW]
    title = f"{name} of {len(names)}: {', '.join(names)}"
    code.emit(group.nodes[-1], line, title=title, group=tuple(group.nodes))


def _halvings(size: int) -> int:
    """Return how often so many elements are halved until they are no more than a block's."""
    return (-(-size // BLOCK) - 1).bit_length()


class _Body:
    """Writes the function that runs a group on some of its blocks, with scratch of its own.

    Args:
        group: the group.
        code: where it is written to.
        blocks: where they start and stop, and which of the parts are theirs; all have as many rows.
        parts: where totals of the rows of every block go.

    Attributes:
        name: the name of the function.
        arguments: the source of the arguments of its call.
        scratch: the memory of values that die inside.
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
