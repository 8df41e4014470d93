"""The code of a plan: its steps, the functions that they call, and the objects that both name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tapetensor.arrays.array import Array
from tapetensor.compiler.plan.memory import Memory
from tapetensor.compiler.trace.node import Keywords, Kind, Node, Shape
from tapetensor.compiler.trace.view import View


@dataclass(slots=True)
class Operand:
    """An array that the code reads or writes to.

    Args:
        source: its Python source.
        array: the array itself; None where it is only known when the code runs.
    """

    source: str
    array: Array | None = None


@dataclass(slots=True)
class Step:
    """One line of the plan.

    Args:
        node: the node that it computes.
        line: its Python source.
        title: a description in words.
        memory: where the result lies: "planned" memory, the "optimizer"'s, "fresh", or a "view".
        group: the nodes of the group that it runs, if it runs one.
    """

    node: Node
    line: str
    title: str
    memory: str
    group: tuple[Node, ...] = ()


def indented(lines: list[str], depth: int = 1) -> list[str]:
    """Return lines so many steps further to the right."""
    return [f"{'    ' * depth}{line}" for line in lines]


class Code:
    """The part of a plan that is written so far.

    Args:
        memory: the places of values.
        inputs: the source of each input node.

    Attributes:
        memory: the places of values.
        steps: the steps of the plan, in order.
        functions: the sources of functions that the steps call.
        names: the objects that the sources refer to by name.
    """

    def __init__(self, memory: Memory, inputs: dict[Node, str]) -> None:
        self.memory = memory
        self.steps: list[Step] = []
        self.functions: list[str] = []
        self.names: dict[str, Any] = {}
        # By the ids of these objects.
        self._known: dict[int, str] = {}
        self._operands = {node: Operand(source) for node, source in inputs.items()}

    def bind(self, value: Any) -> str:
        """Return a name by which the code can refer to `value`."""
        name = self._known.get(id(value))
        if name is None:
            name = self._known[id(value)] = f"p{len(self.names)}"
            self.names[name] = value
        return name

    def bound(self, array: Array) -> Operand:
        """Return an operand for an array that is known."""
        return Operand(self.bind(array), array)

    def operand(self, node: Node) -> Operand:
        """Return the array of a node that has its place."""
        known = self._operands.get(node)
        if known is None:
            known = self._operands[node] = self.bound(self.memory.arrays[node])
        return known

    def lies_in(self, node: Node, source: str) -> None:
        """Let an expression of the code be the array of a node."""
        self._operands[node] = Operand(source)

    def assign(self, node: Node, source: str, title: str = "") -> None:
        """Emit the assignment of the array of a node to a variable of its own."""
        self.lies_in(node, f"v{node.index}")
        self.emit(node, f"v{node.index} = {source}", title)

    def emit(self, node: Node, line: str, title: str = "", group: tuple[Node, ...] = ()) -> None:
        """Add a step."""
        storage = self.memory.storage(node)
        if node in self.memory.arrays:
            memory = "planned"
        elif node.kind is Kind.UPDATE or (storage.gradient is not None and storage.owner is node):
            memory = "optimizer"
        else:
            memory = "view" if node.kind is Kind.VIEW else "fresh"
        self.steps.append(Step(node, line, title or node.name, memory, group))

    def seen_by(self, view: View, source: str) -> str:
        """Return the source of an array seen in another way."""
        if view.name == "index":
            return f"{source}[{self.bind(view.parameter)}]"
        if view.name == "broadcast_to":
            return f"{self.bind(np.broadcast_to)}({source}, {view.parameter})"
        if view.name == "transpose" and view.parameter == (*reversed(range(len(view.parameter))),):
            return f"{source}.T"
        return f"{source}.{view.name}({view.parameter})"

    def seen_as(self, operand: Operand, shape: Shape) -> str:
        """Return the source of an array under another shape."""
        if operand.array is not None:
            view = operand.array.reshape(shape)
            if np.may_share_memory(view, operand.array):
                return self.bind(view)
        return f"{operand.source}.reshape({shape})"

    def arguments(self, args: tuple[Any, ...]) -> str:
        """Return the source of the arguments of a call."""
        sources = []
        for argument in args:
            if isinstance(argument, Keywords):
                sources += [f"{key}={self._source(value)}" for key, value in argument.items()]
            else:
                sources.append(self._source(argument))
        return ", ".join(sources)

    def _source(self, value: Any) -> str:
        if isinstance(value, Node):
            return self.operand(value).source
        if value.__class__ is tuple:
            return "(" + "".join([f"{self._source(item)}, " for item in value]) + ")"
        if value.__class__ is list:
            return "[" + ", ".join([self._source(item) for item in value]) + "]"
        return self.bind(value)
