"""The code of a plan: its steps, the calls of numpy in them, and what they refer to by name."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from tapetensor.arrays.array import Array
from tapetensor.compiler.plan.memory import Memory
from tapetensor.compiler.plan.schedule import is_at_risk
from tapetensor.compiler.trace.node import Keywords, Kind, Node, Shape, View, is_in_order, laid_out
from tapetensor.kernels.numerics.along_axes import PRODUCT_DTYPES, ones, starts_of_rows


@dataclass(slots=True)
class Operand:
    """An array that the code reads or writes to: its source, and itself if it is known."""

    source: str
    array: Array | None = None


@dataclass(slots=True)
class Step:
    """One line of the plan, what it does in words, and the nodes of the group that it runs.

    Its result lies in "planned" memory, the "optimizer"'s or "fresh" memory, or is a "view".
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
    """The part of a plan that is written so far: its steps, and functions that they call.

    It `is_at_risk` if something may fail after one of the `updates` of optimizers, which would have
    to be undone.
    """

    def __init__(self, memory: Memory, inputs: dict[Node, str]) -> None:
        self.memory = memory
        self.steps: list[Step] = []
        self.functions: list[str] = []
        self.names: dict[str, Any] = {}
        nodes = [*memory.positions]
        self.updates = [node for node in nodes if node.kind is Kind.UPDATE]
        self.is_at_risk = is_at_risk(nodes)
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


# A number is repeated to an array of at most so many elements.
_SMALL = 1 << 12
# These functions find the places of the elements that the reductions find.
_SEARCHES: dict[Any, str] = {np.maximum: "argmax", np.minimum: "argmin"}
# What these make of elements is the same before and after they are converted.
_OF_TRUTHS = frozenset({np.logical_and, np.logical_or, np.logical_xor})


def call_into(
    out: Operand, node: Node, operands: list[Operand], code: Code, rows: int | None = None
) -> str:
    """Return the line that computes a node, from blocks of so many rows if there are blocks."""
    sources = [operand.source for operand in operands]
    if node.kind is Kind.REDUCE:
        return _product_or_search(out, node, operands, code, rows) or _reduction(
            out, node, operands, code
        )
    if node.kind is Kind.MATMUL and _is_product_of_matrices(out, node, operands):
        # The method begins half a microsecond sooner than the ufunc.
        lhs, rhs = sources
        return f"{lhs}.dot({rhs}, {out.source})"
    last = out.source
    if node.function in _SEARCHES:
        # numpy deprecates a third positional argument of these two. It compares two arrays with
        # vector instructions, but not an array and a number.
        last = f"out={out.source}"
        if 0 < node.size <= _SMALL and rows is None:
            sources = [
                code.bind(np.full(node.shape, one.detail))
                if one.kind is Kind.CONSTANT and one.shape == ()
                else source
                for one, source in zip(node.args, sources, strict=True)
            ]
    return f"{code.bind(node.function)}({', '.join([*sources, last])})"


def _reduction(out: Operand, node: Node, operands: list[Operand], code: Code) -> str:
    axes, _ = node.detail
    reduce, dtype = code.bind(node.function.reduce), "None"
    if node.dtype != node.args[0].dtype and node.function not in _OF_TRUTHS:
        # Elements are converted before they are added, and not their sum.
        dtype = code.bind(node.dtype)
    return f"{reduce}({operands[0].source}, {axes}, {dtype}, {out.source}, True)"


def _product_or_search(
    out: Operand, node: Node, operands: list[Operand], code: Code, count: int | None
) -> str:
    """Return a reduction over the last axes as `tapetensor.kernels` does it; empty if none."""
    first = operands[0]
    if node.function is np.vecdot:
        kept_rows = node.shape[:-1] if count is None else (count, *node.shape[1:-1])
        seen = code.seen_as(out, kept_rows)
        return f"{code.bind(np.vecdot)}({first.source}, {operands[1].source}, {seen})"
    axes, is_by_rows = node.detail
    if not is_by_rows:
        return ""
    (operand,) = node.args
    kept = len(operand.shape) - len(axes)
    shape = operand.shape if count is None else (count, *operand.shape[1:])
    rows, width = math.prod(shape[:kept]), math.prod(shape[kept:])
    array, result = code.seen_as(first, (rows, width)), code.seen_as(out, (rows,))
    if node.function is np.add:
        return f"{array}.dot({code.bind(ones(width, node.dtype))}, {result})"
    places, starts = code.bind(np.empty(rows, np.intp)), code.bind(starts_of_rows(rows, width))
    search = _SEARCHES[node.function]
    return (
        f"{array}.{search}(1, {places}); {code.bind(np.add)}({places}, {starts}, {places}); "
        f"{code.seen_as(first, (rows * width,))}.take({places}, None, {result}, 'clip')"
    )


def _is_product_of_matrices(out: Operand, node: Node, operands: list[Operand]) -> bool:
    lhs, rhs = node.args
    if (
        node.dtype not in PRODUCT_DTYPES
        or not lhs.dtype == rhs.dtype == node.dtype
        or len(lhs.shape) not in (1, 2)
        or len(rhs.shape) != 2
        # The method multiplies two numbers alone; the ufunc adds 0, so that -0 becomes 0.
        or lhs.size == rhs.size == 1
        or not (out.array is None or out.array.flags.c_contiguous)
    ):
        return False
    arrays = [
        laid_out(one) if operand.array is None else operand.array
        for one, operand in zip(node.args, operands, strict=True)
        if operand.array is not None or not is_in_order(one)
    ]
    # The method copies what has gaps, of which the ufunc may see that it is one array, transposed.
    return all(one.flags.forc for one in arrays)
