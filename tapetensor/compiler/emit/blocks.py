"""The source of a fused group: a loop over blocks of rows, with its temporaries in scratch."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tapetensor.arrays.array import Array
from tapetensor.compiler.emit.calls import Call
from tapetensor.compiler.plan.groups import Group, start_of
from tapetensor.compiler.trace.node import Kind, Node
from tapetensor.compiler.trace.operations import can_be_written_over
from tapetensor.kernels.numerics import threads

if TYPE_CHECKING:
    from tapetensor.compiler.emit.steps import Planner


class GroupLoop:
    """Writes the functions that run a group, and the steps that call them.

    Args:
        planner: gives names, and memory.
        group: the steps.
        position: which unit of the plan it is.
    """

    def __init__(self, planner: Planner, group: Group, position: int) -> None:
        self.planner = planner
        self.group = group
        self._position = position
        self.inside = set(group.nodes)
        self.scratch: list[Array] = []
        self.last_read = {
            parent: position
            for position, node in enumerate(group.nodes)
            for parent in node.parents()
        }
        for node in reversed(group.nodes):
            if node.kind is Kind.VIEW:
                (base,) = node.args
                self.last_read[base] = max([self.last_read.get(one, -1) for one in (base, node)])
        # A value that is read outside has to be written to memory as a whole.
        self.kept = {
            node for node in group.nodes if node.kind is not Kind.VIEW and self._leaves(node)
        }

    def write(self) -> None:
        """Emit all steps of the group."""
        planner, group = self.planner, self.group
        for node in group.nodes:
            if (node in self.kept or node in group.totals) and not self._takes_over(node):
                planner.give_place(node)
        rows = group.rows_of_block
        whole, tail = divmod(group.rows, rows)
        blocks = [(start, start + rows) for start in range(0, group.rows - tail, rows)]
        workers = min(threads.count() if planner.may_use_threads(group) else 1, whole)
        bodies = []
        for worker in range(workers):
            share = blocks[worker * whole // workers : (worker + 1) * whole // workers]
            bodies.append(Body(self, rows, share, is_first=worker == 0))
        if tail:
            bodies.append(Body(self, tail, [(group.rows - tail, group.rows)], is_first=False))
        for body in bodies:
            body.write()
        # Bodies may run at the same time, so none takes the scratch of another.
        for array in self.scratch:
            planner.memory.arena.give_back(array)
        self._emit_calls(bodies, on_threads=workers > 1)
        for node in group.nodes:
            if node.kind is Kind.VIEW and self._leaves(node):
                planner.place_view(node)

    def _emit_calls(self, bodies: list[Body], *, on_threads: bool) -> None:
        planner = self.planner
        nodes = tuple(self.group.nodes)
        last = nodes[-1]
        names = [node.name for node in nodes if node.kind is not Kind.VIEW]
        title = f"group of {len(names)}: {', '.join(names)}"
        for body in bodies:
            for node, total in body.totals.items():
                start = start_of(node)
                planner.emit(node, f"{total}.fill({planner.bind(start)})", title=f"set to {start}")
        if on_threads:
            calls = ", ".join([f"({body.name}, {body.arguments})" for body in bodies])
            line = f"{planner.bind(threads.run_together)}({calls})"
        else:
            line = "; ".join([f"{body.name}({body.arguments})" for body in bodies])
        planner.emit(last, line, title=title, group=nodes)
        for body in bodies[1:]:
            for node, part in body.totals.items():
                total = bodies[0].totals[node]
                planner.emit(node, _taken_into(planner, node, total, part), title="take together")

    def _takes_over(self, node: Node) -> bool:
        """Give a value the place of an operand whose rows nobody reads after it, if there is one.

        A block writes over its own rows of the operand, so all steps have to read just those.
        """
        memory, nodes = self.planner.memory, self.group.nodes
        if node.kind is not Kind.ELEMENTWISE or memory.is_destined(node):
            return False
        later = set(nodes[nodes.index(node) + 1 :])
        for place, operand in enumerate(node.args):
            readers = [
                (reader, parent)
                for reader in nodes
                for parent in reader.parents()
                if memory.shares(parent, operand)
            ]
            if (
                operand not in self.inside
                and memory.is_done_with(operand, self._position)
                and can_be_written_over(node, place, memory.shares)
                and not any(reader in later for reader, _ in readers)
                and all(
                    parent is operand and self.is_by_row(parent, one) for one, parent in readers
                )
            ):
                memory.hand_over(operand, node)
                return True
        return False

    def is_by_row(self, operand: Node, reader: Node) -> bool:
        """Tell whether each row of a step needs only the same row of an operand."""
        return (
            operand.shape != ()
            and operand.shape[0] == self.group.rows
            and (reader.kind is Kind.REDUCE or len(operand.shape) == len(reader.shape))
        )

    def _leaves(self, node: Node) -> bool:
        """Tell whether a value, or a view of it, is read outside the group."""
        if node in self.planner.memory.leaving:
            return True
        return any(
            reader not in self.inside or (reader.kind is Kind.VIEW and self._leaves(reader))
            for reader in self.planner.memory.readers(node)
        )


class Body:
    """Writes the function that runs a group on some of its blocks, with scratch of its own.

    Args:
        loop: the group.
        count: the number of rows of each block.
        blocks: where they start and stop.
        is_first: whether totals of the rows go to their final place.
    """

    def __init__(
        self, loop: GroupLoop, count: int, blocks: list[tuple[int, int]], *, is_first: bool
    ) -> None:
        self._loop = loop
        self._planner = planner = loop.planner
        self._count = count
        self._blocks = blocks
        self.name = f"group{loop.group.nodes[0].index}_{blocks[0][0]}"
        self.arguments = ""
        self.totals = {
            node: planner.expression(node)
            if is_first
            else planner.bind(np.empty(node.shape, node.dtype))
            for node in loop.group.nodes
            if node in loop.group.totals
        }
        self._lines: list[str] = []
        # Arrays are cut into blocks: known ones beforehand, others as the function runs.
        self._known: dict[Node, Array] = {}
        self._passed: dict[Node, str] = {}
        self._cut: dict[Node, None] = {}
        self._is_first = is_first
        self._values: dict[Node, tuple[str, Array | None]] = {}
        self._live: dict[Node, Array] = {}
        self._free: list[Array] = []

    def write(self) -> None:
        """Write the function, and the arguments of its call."""
        planner, group = self._planner, self._loop.group
        for position, node in enumerate(group.nodes):
            if node.kind is Kind.VIEW:
                self._write_view(node)
            elif node in group.totals:
                part = planner.bind(np.empty(node.shape, node.dtype))
                is_passed = self._is_first and node not in planner.memory.static
                total = self._whole(node) if is_passed else self.totals[node]
                self._lines.append(self._call_into(node, part))
                self._lines.append(_taken_into(planner, node, total, part))
            else:
                out = self._out(node, position)
                self._lines.append(self._call_into(node, out))
            for base in dict.fromkeys([self._base(parent) for parent in node.parents()]):
                if base in self._live and self._loop.last_read[base] == position:
                    self._free.append(self._live.pop(base))
        slices = [
            (start, stop, *[array[start:stop] for array in self._known.values()])
            for start, stop in self._blocks
        ]
        variables = "".join([f", {_name(node)}" for node in self._known])
        cut = [f"{_name(node)} = {_name(node)}_[start:stop]" for node in self._cut]
        parameters = "".join([f", {_name(node)}_" for node in self._passed])
        lines = [
            f"def {self.name}(blocks{parameters}):",
            f"    for start, stop{variables} in blocks:",
            *[f"        {line}" for line in (*cut, *self._lines)],
        ]
        planner.functions.append("\n".join(lines))
        self.arguments = planner.bind(slices) + "".join(
            [f", {source}" for source in self._passed.values()]
        )

    def _call_into(self, node: Node, out: str) -> str:
        operands = [self._operand(operand, node) for operand in node.args]
        return Call(self._planner, node, out, operands, self._count).source()

    def _base(self, node: Node) -> Node:
        while node.kind is Kind.VIEW and node in self._loop.inside:
            (node,) = node.args
        return node

    def _out(self, node: Node, position: int) -> str:
        """Return the source of what a step writes to."""
        if node in self._loop.kept:
            return self._slice(node)
        scratch = self._in_place(node, position)
        if scratch is None:
            scratch = self._scratch((self._count, *node.shape[1:]), node.dtype)
        self._live[node] = scratch
        expression = self._planner.bind(scratch)
        self._values[node] = expression, scratch
        return expression

    def _in_place(self, node: Node, position: int) -> Array | None:
        """Return the scratch of an operand that dies here and may be written over."""
        for place, operand in enumerate(node.args if node.kind is Kind.ELEMENTWISE else ()):
            if (
                operand in self._live
                and self._loop.last_read[operand] == position
                and can_be_written_over(node, place, self._shares_base)
            ):
                return self._live.pop(operand)
        return None

    def _shares_base(self, node: Node, other: Node) -> bool:
        return self._base(node) is self._base(other)

    def _scratch(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        wanted = math.prod(shape) * dtype.itemsize
        for position, array in enumerate(self._free):
            if array.nbytes == wanted:
                flat = self._free.pop(position).reshape(-1)
                return flat.view(dtype).reshape(shape)
        array = self._planner.memory.arena.take(shape, dtype)
        self._loop.scratch.append(array)
        return array

    def _write_view(self, node: Node) -> None:
        (operand,) = node.args
        known = self._values.get(operand)
        source, scratch = (self._slice(operand), None) if known is None else known
        shape = (self._count, *node.shape[1:])
        is_reshape = node.function.name == "reshape"
        if scratch is not None:
            view = scratch.reshape(shape) if is_reshape else node.function(scratch)
            if not np.may_share_memory(view, scratch):
                # Such a reshape copies. It is rare, so its scratch is not given to later steps.
                view = self._scratch(shape, node.dtype)
                shaped = self._planner.bind(view.reshape(scratch.shape))
                self._lines.append(f"{self._planner.bind(np.copyto)}({shaped}, {source})")
            self._values[node] = self._planner.bind(view), view
            return
        call = f"reshape({shape})" if is_reshape else f"transpose({node.function.parameter})"
        self._lines.append(f"{_name(node)} = {source}.{call}")
        self._values[node] = _name(node), None

    def _operand(self, operand: Node, reader: Node) -> str:
        """Return the source of an operand as one block sees it."""
        known = self._values.get(operand)
        if known is not None:
            return known[0]
        if self._loop.is_by_row(operand, reader) or operand in self._loop.inside:
            return self._slice(operand)
        if operand in self._planner.memory.static:
            return self._planner.expression(operand)
        return self._whole(operand)

    def _whole(self, node: Node) -> str:
        self._passed.setdefault(node, self._planner.expression(node))
        return f"{_name(node)}_"

    def _slice(self, node: Node) -> str:
        array = self._planner.memory.static.get(node)
        if array is None:
            self._cut[node] = None
            self._whole(node)
        else:
            self._known[node] = array
        return _name(node)


def _taken_into(planner: Planner, node: Node, total: str, part: str) -> str:
    """Return the call that takes a total of some rows into the total of all rows."""
    return f"{planner.bind(node.function)}({total}, {part}, out={total})"


def _name(node: Node) -> str:
    return f"b{node.index}"
