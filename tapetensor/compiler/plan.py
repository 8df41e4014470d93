"""From a traced program to a flat list of numpy calls on planned memory."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tapetensor.compiler.arena import Arena
from tapetensor.compiler.lazy import Keywords, select
from tapetensor.compiler.program import Kind, Node, Program
from tapetensor.gradients import Array

# What has to run although nobody reads its result.
_LASTING = frozenset({Kind.RANDOM, Kind.EFFECT, Kind.UPDATE})
# Whose result numpy writes where it is told.
_TAKES_OUT = frozenset({Kind.ELEMENTWISE, Kind.REDUCE, Kind.MATMUL})
# The optimizer's step takes over what all other steps have computed.
_LAST = Kind.UPDATE


@dataclass
class Step:
    """One line of the plan.

    Args:
        node: what it computes.
        line: its Python source.
        out: the planned buffer that it writes to, if it does.
    """

    node: Node
    line: str
    out: Array | None = None


@dataclass
class Layout:
    """Steps and the names they use."""

    steps: list[Step] = field(default_factory=list)
    names: dict[str, Any] = field(default_factory=dict)
    expressions: dict[Node, str] = field(default_factory=dict)


class Planner:
    """Gives every value of a program its place and writes the steps.

    Args:
        program: the trace.
        inputs: the source expression of each input node.
        leaving: the nodes whose arrays leave the function.
    """

    def __init__(self, program: Program, inputs: dict[Node, str], leaving: list[Node]) -> None:
        self.arena = Arena()
        self.layout = Layout(expressions=dict(inputs))
        self._leaving = leaving
        self._schedule = _schedule(program, leaving)
        self._root: dict[Node, Node] = {}
        self._static: dict[Node, Array] = {}
        self._escaping: set[Node] = set()
        self._last_use: dict[Node, int] = {}
        self._find_roots()

    def run(self) -> Layout:
        """Plan all steps."""
        for position, node in enumerate(self._schedule):
            self._place(node, position)
            for root in {self._root[parent] for parent in node.parents()} | {self._root[node]}:
                if self._last_use.get(root, -1) == position and root not in self._escaping:
                    self._release(root)
        return self.layout

    def leaving_expressions(self) -> list[str]:
        """Return the source of every array that leaves."""
        found = []
        for node in self._leaving:
            expression = self._expression(node)
            if self._root[node].kind is Kind.CONSTANT:
                expression = f"{expression}.copy()"
            found.append(expression)
        return found

    def _find_roots(self) -> None:
        """Find whose memory each node lies in, and when that is last needed."""
        for position, node in enumerate(self._schedule):
            owner = node
            if node.kind in (Kind.VIEW, Kind.WRITE):
                owner = self._root[node.args[0]]
            self._root[node] = owner
            self._last_use[owner] = position
            for parent in node.parents():
                self._last_use[self._root[parent]] = position
        self._escaping = {self._root[node] for node in self._leaving}

    def _place(self, node: Node, position: int) -> None:
        if node.kind is Kind.INPUT:
            return
        if node.kind is Kind.CONSTANT:
            self._static[node] = node.detail
            return
        if node.kind is Kind.VIEW:
            self._place_view(node)
        elif node.kind is Kind.WRITE:
            self._place_write(node, position)
        elif node.kind in _TAKES_OUT:
            self._place_out(node, position)
        elif node.kind is Kind.PART:
            self._place_part(node)
        else:
            self._place_call(node)

    def _place_view(self, node: Node) -> None:
        base = self._static.get(node.args[0])
        if base is None:
            source = self._expression(node.args[0])
            self._assign(node, _view_source(node.function, source, self._bind))
            return
        view = node.function(base)
        if view.size == 0 or np.shares_memory(view, base, max_work=1):
            self._static[node] = view
            return
        # A reshape that numpy can only do by copying.
        self._root[node] = node
        self._last_use[node] = max(
            [at for at, user in enumerate(self._schedule) if node in set(user.parents())],
            default=0,
        )
        out = self.arena.take(node.shape, node.dtype)
        self._static[node] = out
        shaped = self._bind(out.reshape(node.args[0].shape))
        self._emit(node, f"{self._bind(np.copyto)}({shaped}, {self._expression(node.args[0])})", out)

    def _place_write(self, node: Node, position: int) -> None:
        target = node.args[0]
        root = self._root[target]
        is_free = root.kind not in (Kind.INPUT, Kind.CONSTANT) and not self._is_read_later(
            target, node, position
        )
        if not is_free:
            raise AssertionError(f"{node} writes into memory that is read later")
        arguments = self._arguments(node.args)
        self._emit(node, f"{self._bind(node.function)}({arguments})")
        if target in self._static:
            self._static[node] = self._static[target]
        else:
            self.layout.expressions[node] = self._expression(target)

    def _is_read_later(self, target: Node, writer: Node, position: int) -> bool:
        return any(
            target in set(user.parents()) for user in self._schedule[position + 1 :]
        ) or target in self._leaving

    def _place_out(self, node: Node, position: int) -> None:
        if node in self._escaping:
            local = self._local(node)
            shape, dtype = self._bind(node.shape), self._bind(node.dtype)
            self._emit(node, f"{local} = {self._bind(np.empty)}({shape}, {dtype})")
            self._emit(node, self._call_with_out(node, local))
            return
        out = self._in_place(node, position)
        if out is None:
            out = self.arena.take(node.shape, node.dtype)
        name = self._bind(out)
        self._static[node] = out
        self.layout.expressions[node] = name
        self._emit(node, self._call_with_out(node, name), out)

    def _in_place(self, node: Node, position: int) -> Array | None:
        """Return the buffer of an operand that dies here and may be written over."""
        if node.kind is not Kind.ELEMENTWISE:
            return None
        roots = [self._root[parent] for parent in node.parents()]
        for place, operand in enumerate(node.args):
            if node.function is select and place != 2:
                continue
            root = self._root[operand]
            buffer = self._static.get(operand)
            if (
                buffer is not None
                and operand.kind in _TAKES_OUT
                and root not in self._escaping
                and self._last_use[root] == position
                and roots.count(root) == sum(parent is operand for parent in node.parents())
                and (node.function is not select or roots.count(root) == 1)
                and operand.shape == node.shape
                and operand.dtype == node.dtype
            ):
                self.arena.hand_over(buffer)
                self._static_released.add(root)
                return buffer
        return None

    @property
    def _static_released(self) -> set[Node]:
        return self.__dict__.setdefault("_handed", set())

    def _release(self, root: Node) -> None:
        if root.kind is Kind.CONSTANT or root in self._static_released:
            return
        buffer = self._static.get(root)
        if buffer is not None:
            self.arena.give_back(buffer)
        elif root.kind in (Kind.CALL, Kind.PART, Kind.RANDOM) and root.nbytes > 65_536:
            expression = self.layout.expressions.get(root)
            if expression is not None:
                self.layout.steps.append(Step(root, f"{expression} = None"))

    def _place_part(self, node: Node) -> None:
        (whole,) = node.args
        if whole.kind is Kind.UPDATE:
            tensor = self._bind(whole.function.tensors[node.detail])
            self._assign(node, f"{tensor}._data")
            return
        self._assign(node, f"{self._expression(whole)}[{node.detail}]")

    def _place_call(self, node: Node) -> None:
        if node.kind is Kind.RANDOM:
            source, args, options = node.args
            call = f"{self._expression(source)}.{node.function}"
            self._assign(node, f"{call}({self._arguments((*args, options))})")
            return
        call = f"{self._bind(node.function)}({self._arguments(node.args)})"
        if node.kind is Kind.CALL:
            self._assign(node, call)
        else:
            self._emit(node, call)

    def _call_with_out(self, node: Node, out: str) -> str:
        if node.kind is Kind.REDUCE:
            axes, options = node.detail
            reduce = self._bind(node.function.reduce)
            extra = "".join([f", {key}={self._source(value)}" for key, value in options])
            source = self._expression(node.args[0])
            return f"{reduce}({source}, {axes}, None, {out}, True{extra})"
        arguments = ", ".join([self._expression(operand) for operand in node.args])
        # numpy deprecates a third positional argument of these two.
        keyword = "out=" if node.function in (np.maximum, np.minimum) else ""
        return f"{self._bind(node.function)}({arguments}, {keyword}{out})"

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
            return self._expression(value)
        if value.__class__ is tuple:
            return "(" + "".join([f"{self._source(item)}, " for item in value]) + ")"
        if value.__class__ is list:
            return "[" + ", ".join([self._source(item) for item in value]) + "]"
        return self._bind(value)

    def _expression(self, node: Node) -> str:
        known = self.layout.expressions.get(node)
        if known is None:
            known = self.layout.expressions[node] = self._bind(self._static[node])
        return known

    def _assign(self, node: Node, source: str) -> None:
        self._emit(node, f"{self._local(node)} = {source}")

    def _local(self, node: Node) -> str:
        local = f"v{node.index}"
        self.layout.expressions[node] = local
        return local

    def _bind(self, value: Any) -> str:
        name = f"p{len(self.layout.names)}"
        self.layout.names[name] = value
        return name

    def _emit(self, node: Node, line: str, out: Array | None = None) -> None:
        self.layout.steps.append(Step(node, line, out))


def _schedule(program: Program, leaving: Iterable[Node]) -> list[Node]:
    """Return the nodes that have to run, in order; what changes state comes as late as it can."""
    needed: set[Node] = set()
    waiting = [*leaving, *[node for node in program.nodes if node.kind in _LASTING]]
    while waiting:
        node = waiting.pop()
        if node not in needed:
            needed.add(node)
            waiting.extend(node.parents())
    kept = [node for node in program.nodes if node in needed]
    read = {parent for node in kept for parent in node.parents()}
    late = [node for node in kept if node.kind is _LAST and node not in read]
    return [node for node in kept if node not in set(late)] + late


def _view_source(view: Any, source: str, bind: Any) -> str:
    if view.name == "index":
        return f"{source}[{bind(view.parameter)}]"
    if view.name == "broadcast_to":
        return f"{bind(np.broadcast_to)}({source}, {view.parameter})"
    if view.name == "transpose" and view.parameter == tuple(reversed(range(len(view.parameter)))):
        return f"{source}.T"
    return f"{source}.{view.name}({view.parameter})"
