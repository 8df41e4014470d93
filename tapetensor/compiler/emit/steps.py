"""From a captured program to a flat list of numpy calls on planned memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tapetensor.arrays.array import Array
from tapetensor.compiler.emit.blocks import GroupLoop
from tapetensor.compiler.emit.calls import Call
from tapetensor.compiler.plan.groups import Group, fused
from tapetensor.compiler.plan.memory import Memory
from tapetensor.compiler.plan.rematerialization import recomputed
from tapetensor.compiler.plan.schedule import TAKES_OUT, at_risk, scheduled
from tapetensor.compiler.trace.node import Keywords, Kind, Node
from tapetensor.compiler.trace.operations import can_be_written_over, cast_to, unwritten
from tapetensor.compiler.trace.program import Program


@dataclass
class Step:
    """One line of the plan.

    Args:
        node: what it computes.
        line: its Python source.
        title: what it does, in words.
        memory: where the result lies: "planned" memory, the "optimizer"'s, "fresh", or a "view".
        out: the planned buffer that the result lies in, if it does.
        group: the nodes of the group that it runs, if it runs one.
    """

    node: Node
    line: str
    title: str
    memory: str
    out: Array | None = None
    group: tuple[Node, ...] = ()


class Planner:
    """Gives every value of a program its place and writes the steps.

    Args:
        schedule: the nodes that have to run, in order.
        inputs: the source expression of each input node.
        leaving: the nodes whose arrays leave the function.
        places: where values lie in memory, in the order in which they are placed, if it is known.

    Attributes:
        memory: the places.
        steps: what the plan does, in order.
        functions: the sources of functions that the steps call.
        names: the objects that the sources refer to by name.
        at_risk: optimizers' steps after which something may fail; they would have to be undone.
    """

    def __init__(
        self,
        schedule: list[Node],
        inputs: dict[Node, str],
        leaving: list[Node],
        places: list[int] | None = None,
    ) -> None:
        self._units = fused(schedule)
        self.memory = Memory(self._units, leaving, places)
        self.steps: list[Step] = []
        self.functions: list[str] = []
        self.names: dict[str, Any] = {}
        self._expressions = dict(inputs)
        self._leaving = leaving
        self._has_products = any(node.kind is Kind.MATMUL for node in schedule)
        # The variables of the optimizers' buffers.
        self._buffers: dict[Node, str] = {}
        self.at_risk = at_risk(schedule)

    def run(self) -> None:
        """Plan all steps."""
        for position, unit in enumerate(self._units):
            if isinstance(unit, Group):
                GroupLoop(self, unit, position).write()
            else:
                self._place(unit, position)
            for node in self.memory.released(unit, position):
                self._free(node)

    def leaving_expressions(self) -> list[str]:
        """Return the source of every array that leaves."""
        found = []
        for node in self._leaving:
            expression = self.expression(node)
            if self.memory.root(node).kind is Kind.CONSTANT:
                expression = f"{expression}.copy()"
            found.append(expression)
        return found

    def _place(self, node: Node, position: int) -> None:
        if node.kind is Kind.CONSTANT:
            self.memory.static[node] = node.detail
        elif node.kind is Kind.VIEW:
            self.place_view(node)
        elif node.kind is Kind.WRITE:
            self._place_write(node, position)
        elif node.kind in TAKES_OUT:
            self._place_out(node, position)
        elif node.kind is Kind.PART:
            self._place_part(node)
        elif node.kind is Kind.UPDATE:
            self._place_update(node)
        elif node.kind is not Kind.INPUT:
            self._place_call(node)

    def place_view(self, node: Node) -> None:
        """Place a view of something that is placed already."""
        (seen,) = node.args
        base = self.memory.static.get(seen)
        if base is None:
            self._assign(node, _view_source(node.function, self.expression(seen), self.bind))
            return
        view = node.function(base)
        if view.size == 0 or np.may_share_memory(view, base):
            self.memory.static[node] = view
            return
        out = self.memory.copy_of(node)
        shaped = self.bind(out.reshape(seen.shape))
        self.emit(node, f"{self.bind(np.copyto)}({shaped}, {self.expression(seen)})")

    def _place_update(self, node: Node) -> None:
        destinations = self.memory.destinations
        flat = self._buffer_of(node, node)
        parts = [f"{flat}_{position}" for position in range(len(node.args))]
        for gradient, part in zip(node.args, parts, strict=True):
            if not destinations.is_gradient_of(self.memory.root(gradient), node):
                self.emit(node, f"{self.bind(np.copyto)}({part}, {self.expression(gradient)})")
        self.emit(node, f"{self.bind(node.function)}({flat}, ({', '.join(parts)}, ))")

    def _buffer_of(self, update: Node, first: Node) -> str:
        """Return the variable of the buffer for the gradients of a step; its parts are numbered.

        If nobody has asked before, a step that takes the buffer is added to those of `first`.
        """
        name = self._buffers.get(update)
        if name is None:
            name = self._buffers[update] = f"g{update.index}"
            group = update.function.group
            parts = "".join([f"{name}_{position}, " for position in range(len(update.args))])
            line = (
                f"{name} = {self.bind(group.buffer)}(); {parts}= {self.bind(group.parts)}({name})"
            )
            self.emit(first, line, title="take the optimizer's buffer")
        return name

    def _place_write(self, node: Node, position: int) -> None:
        target, *arguments = node.args
        if target in self.memory.leaving or self.memory.last_read(target) > position:
            raise AssertionError(f"{node} writes into memory that is read later")
        if not self.memory.destinations.is_written(node):
            self.emit(node, f"{self.bind(node.function)}({self._arguments(tuple(arguments))})")
        if target in self.memory.static:
            self.memory.static[node] = self.memory.static[target]
        else:
            self._expressions[node] = self.expression(target)

    def _place_out(self, node: Node, position: int) -> None:
        is_in_place = self._takes_over(node, position)
        if not is_in_place:
            self.give_place(node)
        is_there = is_in_place and node.function is cast_to(node.dtype)
        if not is_there and node.function is not unwritten:
            out = self.expression(node)
            operands = [self.expression(operand) for operand in node.args]
            self.emit(node, Call(self, node, out, operands).source())

    def give_place(self, node: Node) -> None:
        """Give a value that is about to be computed its place."""
        if node in self.memory.escaping:
            shape, dtype = self.bind(node.shape), self.bind(node.dtype)
            fresh = f"{self.bind(np.empty)}({shape}, {dtype})"
            self.emit(node, f"{self._local(node)} = {fresh}", title="allocate")
        elif node in self.memory.destinations.gradients:
            update, position = self.memory.destinations.gradients[node]
            part = f"{self._buffer_of(update, node)}_{position}"
            if update.args[position].shape == node.shape:
                self._expressions[node] = part
            else:
                self._assign(node, f"{part}.reshape({node.shape})")
        else:
            self.memory.of(node)

    def _takes_over(self, node: Node, position: int) -> bool:
        """Give a value the place of an operand that nobody reads after it, if there is one."""
        memory = self.memory
        if node.kind is not Kind.ELEMENTWISE or memory.is_destined(node):
            return False
        for place, operand in enumerate(node.args):
            if (
                memory.is_done_with(operand, position)
                and memory.lies_alike(node, operand)
                and can_be_written_over(node, place, memory.shares)
            ):
                memory.hand_over(operand, node)
                return True
        return False

    def _free(self, node: Node) -> None:
        """Let go of a large array that a function returned."""
        if node.kind in (Kind.CALL, Kind.PART, Kind.RANDOM) and node.nbytes > 65_536:
            expression = self._expressions.get(node)
            if expression is not None:
                self.emit(node, f"{expression} = None", title="free")

    def may_use_threads(self, group: Group) -> bool:
        """Tell whether a group may run on several threads.

        In a program with matrix products it may not: the threads of the BLAS spin on for a while
        after each product, and a thread beside them makes a step slower.
        """
        return not self._has_products and group.is_worth_threads

    def _place_part(self, node: Node) -> None:
        (whole,) = node.args
        if whole.kind is Kind.UPDATE:
            self._assign(node, f"{self.bind(whole.function.group.tensors[node.detail])}.array")
        else:
            self._assign(node, f"{self.expression(whole)}[{node.detail}]")

    def _place_call(self, node: Node) -> None:
        if node.kind is Kind.RANDOM:
            source, args, options = node.args
            call = f"{self.expression(source)}.{node.function}"
            self._assign(node, f"{call}({self._arguments((*args, options))})")
            return
        call = f"{self.bind(node.function)}({self._arguments(node.args)})"
        if node.kind is Kind.CALL:
            self._assign(node, call)
        else:
            self.emit(node, call)

    def _arguments(self, args: tuple[Any, ...]) -> str:
        sources = []
        for argument in args:
            if isinstance(argument, Keywords):
                sources += [f"{key}={self._source(value)}" for key, value in argument.items()]
            else:
                sources.append(self._source(argument))
        return ", ".join(sources)

    def _source(self, value: Any) -> str:
        if isinstance(value, Node):
            return self.expression(value)
        if value.__class__ is tuple:
            return "(" + "".join([f"{self._source(item)}, " for item in value]) + ")"
        if value.__class__ is list:
            return "[" + ", ".join([self._source(item) for item in value]) + "]"
        return self.bind(value)

    def expression(self, node: Node) -> str:
        """Return the source of the array of a node."""
        known = self._expressions.get(node)
        if known is None:
            known = self._expressions[node] = self.bind(self.memory.static[node])
        return known

    def _assign(self, node: Node, source: str) -> None:
        self.emit(node, f"{self._local(node)} = {source}")

    def _local(self, node: Node) -> str:
        local = f"v{node.index}"
        self._expressions[node] = local
        return local

    def bind(self, value: Any) -> str:
        """Return a name by which the generated source can refer to `value`."""
        name = f"p{len(self.names)}"
        self.names[name] = value
        return name

    def emit(self, node: Node, line: str, title: str = "", group: tuple[Node, ...] = ()) -> None:
        """Add a line."""
        out = self.memory.static.get(node)
        if node.kind is Kind.UPDATE or node in self.memory.destinations.gradients:
            memory = "optimizer"
        elif out is not None:
            memory = "planned"
        else:
            memory = "view" if node.kind is Kind.VIEW else "fresh"
        self.steps.append(Step(node, line, title or node.name, memory, out, group))


def planned(program: Program, inputs: dict[Node, str], leaving: list[Node]) -> Planner:
    """Return a planner that has planned a program, in as little memory as it could find."""
    schedule = recomputed(scheduled(program, leaving), leaving)
    planner = Planner(schedule, inputs, leaving)
    planner.run()
    places = planner.memory.arena.better_places()
    if places is None:
        return planner
    again = Planner(schedule, inputs, leaving, places)
    again.run()
    # The places are right for just these values in just this order.
    assert again.memory.arena.ranges == planner.memory.arena.ranges
    return again


def _view_source(view: Any, source: str, bind: Any) -> str:
    if view.name == "index":
        return f"{source}[{bind(view.parameter)}]"
    if view.name == "broadcast_to":
        return f"{bind(np.broadcast_to)}({source}, {view.parameter})"
    if view.name == "transpose" and view.parameter == tuple(reversed(range(len(view.parameter)))):
        return f"{source}.T"
    return f"{source}.{view.name}({view.parameter})"
