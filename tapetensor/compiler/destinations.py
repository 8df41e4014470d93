"""Places where values are needed: they are computed there, so that nobody has to copy them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tapetensor.arrays.array import Array
from tapetensor.compiler.assembling import place_of
from tapetensor.compiler.fusion import Unit
from tapetensor.compiler.node import Kind, Node
from tapetensor.compiler.operations import write_all, writes_anywhere
from tapetensor.compiler.schedule import TAKES_OUT

if TYPE_CHECKING:
    from tapetensor.compiler.memory import Memory


class Destinations:
    """Places of the gradients of optimizers' steps, end to end, and of the parts of larger arrays.

    Args:
        memory: the memory of the plan.
        units: all steps, in order.

    Attributes:
        gradients: for each gradient, the optimizer's step, and which of its gradients it is.
    """

    def __init__(self, memory: Memory, units: list[Unit]) -> None:
        self._memory = memory
        self.gradients: dict[Node, tuple[Node, int]] = {}
        # The planned memory of the gradients of a step.
        self._flat: dict[Node, Array] = {}
        # For each part, the write that would have copied it.
        self._parts: dict[Node, Node] = {}
        for place, unit in enumerate(units):
            if isinstance(unit, Node) and unit.kind is Kind.UPDATE:
                self._lay_end_to_end(unit, place)
        for unit in units:
            if isinstance(unit, Node) and unit.kind is Kind.WRITE and unit.detail is not None:
                self._lay_in_place(unit)

    def __contains__(self, node: Node) -> bool:
        """Tell whether a value has a place that is not its own."""
        return node in self.gradients or node in self._parts

    def of(self, node: Node) -> Array | None:
        """Return where in planned memory a value has to be; None where it may be anywhere."""
        if node in self._parts:
            write = self._parts[node]
            return place_of(write, self._memory.of(write.detail))
        if node in self.gradients:
            update, position = self.gradients[node]
            return self.parts_of(update)[position].reshape(node.shape)
        return None

    def flat_of(self, update: Node) -> Array:
        """Return the planned memory of all gradients of a step, end to end."""
        flat = self._flat.get(update)
        if flat is None:
            size = sum([gradient.size for gradient in update.args])
            flat = self._flat[update] = self._memory.arena.take((size,), update.args[0].dtype)
        return flat

    def parts_of(self, update: Node) -> list[Array]:
        """Return the planned memory of each gradient of a step."""
        ends = np.cumsum([gradient.size for gradient in update.args])[:-1].tolist()
        parts = np.split(self.flat_of(update), ends)
        return [
            part.reshape(gradient.shape) for part, gradient in zip(parts, update.args, strict=True)
        ]

    def is_buffered(self, node: Node) -> bool:
        """Tell whether an optimizer's step, or a gradient of it, is in its group's own buffer."""
        update, _ = self.gradients.get(node, (node, 0))
        return update.kind is Kind.UPDATE and update.function.is_whole

    def is_gradient_of(self, node: Node, update: Node) -> bool:
        """Tell whether a value is computed at its place among the gradients of a step."""
        return node in self.gradients and self.gradients[node][0] is update

    def is_written(self, write: Node) -> bool:
        """Tell whether what a write would copy is computed at its place."""
        return write in self._parts.values()

    def _lay_end_to_end(self, update: Node, place: int) -> None:
        memory = self._memory
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

    def _lay_in_place(self, write: Node) -> None:
        memory = self._memory
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
