"""From a traced program to a flat list of numpy calls on planned memory."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tapetensor.compiler.arena import Arena
from tapetensor.compiler.calls import Call
from tapetensor.compiler.destinations import Destinations
from tapetensor.compiler.fusion import Group, Unit, fused
from tapetensor.compiler.loop import GroupLoop
from tapetensor.compiler.node import Kind, Node
from tapetensor.compiler.operations import Keywords, can_be_written_over, cast_to, unwritten
from tapetensor.compiler.orders import Orders
from tapetensor.compiler.program import Program
from tapetensor.compiler.recomputing import recomputed
from tapetensor.compiler.schedule import TAKES_OUT, at_risk, scheduled
from tapetensor.compiler.view import inverse
from tapetensor.gradients import Array
from tapetensor.kernels import threads


@dataclass
class Step:
    """One line of the plan.

    Args:
        node: what it computes.
        line: its Python source.
        out: the planned buffer that it writes to, if it does.
        title: what it does, in words.
        group: the nodes of the group that it runs, if it runs one.
    """

    node: Node
    line: str
    out: Array | None
    title: str
    group: tuple[Node, ...] = ()


@dataclass
class Layout:
    """Steps and the names they use."""

    steps: list[Step] = field(default_factory=list)
    functions: list[str] = field(default_factory=list)
    names: dict[str, Any] = field(default_factory=dict)
    expressions: dict[Node, str] = field(default_factory=dict)


class Planner:
    """Gives every value of a program its place and writes the steps.

    Args:
        schedule: the nodes that have to run, in order.
        inputs: the source expression of each input node.
        leaving: the nodes whose arrays leave the function.
        places: where values lie in memory, in the order in which they are placed, if it is known.
    """

    def __init__(
        self,
        schedule: list[Node],
        inputs: dict[Node, str],
        leaving: list[Node],
        places: list[int] | None = None,
    ) -> None:
        self.arena = Arena(_bound(schedule), places)
        self.layout = Layout(expressions=dict(inputs))
        self._leaving = leaving
        self._units = fused(schedule)
        self._has_products = any(node.kind is Kind.MATMUL for node in schedule)
        # Views that are copies: numpy can reshape some memory only by copying it.
        self._copies: set[Node] = set()
        self.static: dict[Node, Array] = {}
        self._escaping: set[Node] = set()
        self._last_use: dict[Node, int] = {}
        self._readers: dict[Node, list[tuple[int, Node]]] = {}
        self._handed_over: set[Node] = set()
        self._find_last_uses()
        # Optimizers' steps after which something may fail; their work would have to be undone.
        self.at_risk = at_risk(schedule)
        self._destinations = Destinations(self, self._units)
        self._orders = Orders(self._units, self.readers, self._is_free)

    def run(self) -> None:
        """Plan all steps."""
        for position, unit in enumerate(self._units):
            if isinstance(unit, Group):
                GroupLoop(self, unit, position).write()
            else:
                self._place(unit, position)
            touched = {
                self.root(one) for node in _nodes_of(unit) for one in (node, *node.parents())
            }
            for root in touched:
                if self._last_use[root] == position and root not in self._escaping:
                    self._release(root)

    def leaving_expressions(self) -> list[str]:
        """Return the source of every array that leaves."""
        found = []
        for node in self._leaving:
            expression = self.expression(node)
            if self.root(node).kind is Kind.CONSTANT:
                expression = f"{expression}.copy()"
            found.append(expression)
        return found

    def root(self, node: Node) -> Node:
        """Return the node in whose memory a node lies."""
        while node.kind in (Kind.VIEW, Kind.WRITE) and node not in self._copies:
            node = node.args[0]
        return node

    def _find_last_uses(self) -> None:
        """Find when the memory of each node is last needed."""
        for position, unit in enumerate(self._units):
            for node in _nodes_of(unit):
                self._last_use[self.root(node)] = position
                for parent in node.parents():
                    self._last_use[self.root(parent)] = position
                    self._readers.setdefault(parent, []).append((position, node))
        self._escaping = {self.root(node) for node in self._leaving}

    def _place(self, node: Node, position: int) -> None:
        if node.kind is Kind.INPUT:
            return
        if node.kind is Kind.CONSTANT:
            self.static[node] = node.detail
            return
        if node.kind is Kind.VIEW:
            self.place_view(node)
        elif node.kind is Kind.WRITE:
            self._place_write(node, position)
        elif node.kind in TAKES_OUT:
            self._place_out(node, position)
        elif node.kind is Kind.PART:
            self._place_part(node)
        elif node.kind is Kind.UPDATE:
            self._place_update(node)
        else:
            self._place_call(node)

    def place_view(self, node: Node) -> None:
        """Place a view of something that is placed already."""
        base = self.static.get(node.args[0])
        if base is None:
            source = self.expression(node.args[0])
            self._assign(node, _view_source(node.function, source, self.bind))
            return
        view = node.function(base)
        if view.size == 0 or np.may_share_memory(view, base):
            self.static[node] = view
            return
        self._copies.add(node)
        self._last_use[node] = self._last_read(node)
        out = self.arena.take(node.shape, node.dtype)
        self.static[node] = out
        shaped = self.bind(out.reshape(node.args[0].shape))
        self.emit(node, f"{self.bind(np.copyto)}({shaped}, {self.expression(node.args[0])})", out)

    def _place_update(self, node: Node) -> None:
        flat = self._destinations.flat_of(node)
        start = 0
        for gradient in node.args:
            if not self._destinations.has_gradient(self.root(gradient), node):
                part = self.bind(flat[start : start + gradient.size].reshape(gradient.shape))
                copy = self.bind(np.copyto)
                self.emit(node, f"{copy}({part}, {self.expression(gradient)})")
            start += gradient.size
        self.emit(node, f"{self.bind(node.function)}({self.bind(flat)})")

    def _last_read(self, node: Node) -> int:
        """Return where a node, or a view of it, is last read."""
        last = -1
        for position, reader in self._readers.get(node, []):
            seen = self._last_read(reader) if reader.kind is Kind.VIEW else position
            last = max(last, position, seen)
        return last

    def _place_write(self, node: Node, position: int) -> None:
        target, *arguments = node.args
        if target in self._leaving or self._last_read(target) > position:
            raise AssertionError(f"{node} writes into memory that is read later")
        if not self._destinations.is_written(node):
            self.emit(node, f"{self.bind(node.function)}({self._arguments(tuple(arguments))})")
        if target in self.static:
            self.static[node] = self.static[target]
        else:
            self.layout.expressions[node] = self.expression(target)

    def _place_out(self, node: Node, position: int) -> None:
        if node in self._escaping:
            local = self._local(node)
            shape, dtype = self.bind(node.shape), self.bind(node.dtype)
            self.emit(node, f"{local} = {self.bind(np.empty)}({shape}, {dtype})", title="allocate")
            if node.function is not unwritten:
                self.emit(node, self._call_into(node, local))
            return
        reused = None if self.is_destined(node) else self._in_place(node, position)
        out = self.memory_of(node) if reused is None else reused
        name = self.bind(out)
        self.layout.expressions[node] = name
        is_taken_over = reused is not None and node.function is cast_to(node.dtype)
        if not is_taken_over and node.function is not unwritten:
            self.emit(node, self._call_into(node, name), out)

    def _call_into(self, node: Node, out: str) -> str:
        operands = [self.expression(operand) for operand in node.args]
        return Call(self, node, out, operands).source()

    def _in_place(self, node: Node, position: int) -> Array | None:
        """Return the buffer of an operand that dies here and may be written over."""
        if node.kind is not Kind.ELEMENTWISE:
            return None
        for place, operand in enumerate(node.args):
            if (
                self.is_done_with(operand, position)
                and self._orders.of(node) == self._orders.of(self.root(operand))
                and can_be_written_over(node, place, self.shares_memory)
            ):
                self.hand_over(operand, node)
                return self.static[node]
        return None

    def _is_all_of(self, node: Node, root: Node) -> bool:
        """Tell whether a node is all the memory of one that was planned, in its order."""
        flags = self.static[node].flags
        is_all = node is root or (flags.c_contiguous and flags.writeable)
        return root.kind in TAKES_OUT and node.size == root.size and is_all

    def _release(self, root: Node) -> None:
        if root.kind is Kind.CONSTANT or root in self._handed_over or root in self._destinations:
            return
        buffer = self.static.get(root)
        if buffer is not None:
            self.arena.give_back(buffer)
        elif root.kind in (Kind.CALL, Kind.PART, Kind.RANDOM) and root.nbytes > 65_536:
            expression = self.layout.expressions.get(root)
            if expression is not None:
                self.emit(root, f"{expression} = None", title="free")

    def may_use_threads(self, group: Group) -> bool:
        """Tell whether a group may run on several threads.

        Not in a program with matrix products: the threads of the BLAS spin on for a while after
        each, and a thread beside them makes a step slower.
        """
        return not self._has_products and group.is_worth_threads

    def _is_free(self, node: Node) -> bool:
        """Tell whether a value may lie anywhere in memory."""
        return node not in self._escaping and node not in self._destinations

    def is_done_with(self, node: Node, position: int) -> bool:
        """Tell whether a value may be written over by who reads it at a position, and no other."""
        root = self.root(node)
        return (
            node in self.static
            and self._is_all_of(node, root)
            and root not in self._escaping
            and root not in self._destinations
            and root not in self._handed_over
            and self._last_use[root] == position
        )

    def hand_over(self, old: Node, new: Node) -> None:
        """Give a value the place of another, which nobody reads any more."""
        self._handed_over.add(self.root(old))
        self.static[new] = self.static[old]

    def shares_memory(self, node: Node, other: Node) -> bool:
        """Tell whether two nodes lie in the same memory, one of them perhaps a view of it."""
        return self.root(node) is self.root(other)

    def escapes(self, node: Node) -> bool:
        """Tell whether the memory of a node leaves the function."""
        return node in self._escaping

    def is_destined(self, node: Node) -> bool:
        """Tell whether a value has to be computed at a certain place."""
        return node in self._destinations or node in self._escaping or node in self.static

    def memory_of(self, node: Node) -> Array:
        """Return the memory of a value, which is planned when it is first asked for."""
        known = self.static.get(node)
        if known is not None:
            return known
        out = self._destinations.of(node)
        if out is None:
            order = self._orders.of(node)
            if order is None:
                out = self.arena.take(node.shape, node.dtype)
            else:
                shape = tuple([node.shape[axis] for axis in order])
                out = self.arena.take(shape, node.dtype).transpose(inverse(order))
        self.static[node] = out
        return out

    def place_kept(self, node: Node) -> None:
        """Give a value that a group writes block by block its place as a whole."""
        if node in self._escaping:
            shape, dtype = self.bind(node.shape), self.bind(node.dtype)
            fresh = f"{self.bind(np.empty)}({shape}, {dtype})"
            self.emit(node, f"{self._local(node)} = {fresh}", title="allocate")
        else:
            self.memory_of(node)

    def is_leaving(self, node: Node) -> bool:
        """Tell whether the array of a node leaves the function."""
        return node in self._leaving

    def readers(self, node: Node) -> list[Node]:
        """Return the nodes that read a node."""
        return [reader for _, reader in self._readers.get(node, [])]

    def _place_part(self, node: Node) -> None:
        (whole,) = node.args
        if whole.kind is Kind.UPDATE:
            tensor = self.bind(whole.function.tensors[node.detail])
            self._assign(node, f"{tensor}._data")
            return
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
        known = self.layout.expressions.get(node)
        if known is None:
            known = self.layout.expressions[node] = self.bind(self.static[node])
        return known

    def _assign(self, node: Node, source: str) -> None:
        self.emit(node, f"{self._local(node)} = {source}")

    def _local(self, node: Node) -> str:
        local = f"v{node.index}"
        self.layout.expressions[node] = local
        return local

    def bind(self, value: Any) -> str:
        """Return a name by which the generated source can refer to `value`."""
        name = f"p{len(self.layout.names)}"
        self.layout.names[name] = value
        return name

    def emit(
        self,
        node: Node,
        line: str,
        out: Array | None = None,
        title: str = "",
        group: tuple[Node, ...] = (),
    ) -> None:
        """Add a line."""
        self.layout.steps.append(Step(node, line, out, title or node.name, group))


def planned(program: Program, inputs: dict[Node, str], leaving: list[Node]) -> Planner:
    """Return what has planned a program, in as little memory as is found."""
    schedule = recomputed(scheduled(program, leaving), leaving)
    planner = Planner(schedule, inputs, leaving)
    planner.run()
    places = planner.arena.better_places()
    if places is None:
        return planner
    again = Planner(schedule, inputs, leaving, places)
    again.run()
    # The places are right for just these values in just this order.
    assert again.arena.ranges == planner.arena.ranges
    return again


def _nodes_of(unit: Unit) -> list[Node]:
    return unit.nodes if isinstance(unit, Group) else [unit]


def _bound(schedule: list[Node]) -> int:
    """Return bytes that are enough for all values and gradients at once, and scratch per thread."""
    rooms = 2 + threads.count()
    return rooms * sum(node.nbytes + 4096 for node in schedule if node.kind is not Kind.CONSTANT)


def _view_source(view: Any, source: str, bind: Any) -> str:
    if view.name == "index":
        return f"{source}[{bind(view.parameter)}]"
    if view.name == "broadcast_to":
        return f"{bind(np.broadcast_to)}({source}, {view.parameter})"
    if view.name == "transpose" and view.parameter == tuple(reversed(range(len(view.parameter)))):
        return f"{source}.T"
    return f"{source}.{view.name}({view.parameter})"
