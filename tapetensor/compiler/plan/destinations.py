"""Places where values are needed: they are computed there, so that nobody has to copy them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tapetensor.arrays.array import Array
from tapetensor.compiler.plan.assembling import place_of
from tapetensor.compiler.plan.groups import Unit
from tapetensor.compiler.plan.schedule import TAKES_OUT
from tapetensor.compiler.trace.node import Kind, Node
from tapetensor.compiler.trace.operations import write_all, writes_anywhere

if TYPE_CHECKING:
    from tapetensor.compiler.plan.memory import Memory


class Destinations:
    """Places of the gradients of optimizers' steps, end to end, and of the parts of larger arrays.

    Args:
        memory: the memory of the plan.
        units: all steps, in order.

    Attributes:
        gradients: for each gradient, the optimizer's step, and which of its gradients it is.
    """

    def __init__(self, memory: Memory, units: list[Unit]) -> None:
        self.gradients: dict[Node, tuple[Node, int]] = {}
        # For each part, the write that would have copied it.
        self._parts: dict[Node, Node] = {}
        for place, unit in enumerate(units):
            if isinstance(unit, Node) and unit.kind is Kind.UPDATE:
                self._lay_end_to_end(memory, unit, place)
        for unit in units:
            if isinstance(unit, Node) and unit.kind is Kind.WRITE and unit.detail is not None:
                self._lay_in_place(memory, unit)

    def __contains__(self, node: Node) -> bool:
        """Tell whether a value has a place that is not its own."""
        return node in self.gradients or node in self._parts

    def of(self, node: Node, memory: Memory) -> Array | None:
        """Return where in planned memory a value has to be; None where it may be anywhere."""
        if node in self._parts:
            write = self._parts[node]
            return place_of(write, memory.of(write.detail))
        return None

    def is_gradient_of(self, node: Node, update: Node) -> bool:
        """Tell whether a value is computed at its place among the gradients of a step."""
        return node in self.gradients and self.gradients[node][0] is update

    def is_written(self, write: Node) -> bool:
        """Tell whether what a write would copy is computed at its place."""
        return write in self._parts.values()

    def _lay_end_to_end(self, memory: Memory, update: Node, place: int) -> None:
        roots = [memory.root(gradient) for gradient in update.args]
        for position, (gradient, root) in enumerate(zip(update.args, roots, strict=True)):
            is_whole = root.kind in TAKES_OUT and root.size == gradient.size
            is_in_order = gradient is root or (
                gradient.kind is Kind.VIEW
                and gradient.function.name == "reshape"
                and gradient.args[0] is root
            )
            if (
                is_whole
                and is_in_order
                and roots.count(root) == 1
                and root not in memory.escaping
                # The optimizer's step may write new values over it.
                and memory.last_use[root] == place
            ):
                self.gradients[root] = update, position

    def _lay_in_place(self, memory: Memory, write: Node) -> None:
        _, part, *written = write.args
        if write.function not in (write_all, np.copyto) or len(written) != 1:
            return
        (value,) = written
        if (
            isinstance(value, Node)
            and value.kind in (Kind.ELEMENTWISE, Kind.MATMUL)
            and writes_anywhere(value)
            and memory.readers(value) == [write]
            and value.shape == part.shape
            and value.dtype == write.dtype
            and value not in self
            and value not in memory.escaping
            and write.detail not in memory.escaping
        ):
            self._parts[value] = write
