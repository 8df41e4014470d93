"""Where values have to be computed: where somebody needs them, so that nobody has to copy them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tapetensor.compiler.assembling import FirstWrite, place_of
from tapetensor.compiler.fusion import Unit
from tapetensor.compiler.node import Kind, Node
from tapetensor.compiler.operations import write_all
from tapetensor.compiler.schedule import TAKES_OUT
from tapetensor.gradients import Array

if TYPE_CHECKING:
    from tapetensor.compiler.plan import Planner


class Destinations:
    """The gradients of optimizers' steps, end to end, and the parts of larger arrays.

    Args:
        planner: whose memory is used.
        units: all steps.
    """

    def __init__(self, planner: Planner, units: list[Unit]) -> None:
        self._planner = planner
        # By gradient: the optimizer's step, and which of its gradients it is.
        self._gradients: dict[Node, tuple[Node, int]] = {}
        # The memory of the gradients of a step.
        self._flat: dict[Node, Array] = {}
        # The steps whose gradients lie in the buffer of the optimizer's group, and for each, once
        # it is asked for, the variable that holds it.
        self._buffered: dict[Node, str] = {}
        # By part: the write that would have copied it.
        self._parts: dict[Node, Node] = {}
        single = [unit for unit in units if isinstance(unit, Node)]
        updates = [node for node in single if node.kind is Kind.UPDATE]
        groups = [update.function.group for update in updates]
        for update in updates:
            # A second step of a group needs its buffer while the first one's values are read.
            if update.function.is_whole and groups.count(update.function.group) == 1:
                self._buffered[update] = ""
            self._lay_end_to_end(update)
        for node in single:
            if isinstance(node.detail, FirstWrite):
                self._lay_in_place(node, node.detail)

    def __contains__(self, node: Node) -> bool:
        """Tell whether a value has a place that is not its own."""
        return node in self._gradients or node in self._parts

    def has_gradient(self, node: Node, update: Node) -> bool:
        """Tell whether a value is computed at its place among the gradients of a step."""
        return node in self._gradients and self._gradients[node][0] is update

    def of(self, node: Node) -> Array | None:
        """Return where in planned memory a value has to be; None where that is anywhere."""
        if node in self._parts:
            write = self._parts[node]
            assert isinstance(write.detail, FirstWrite)
            return place_of(write, self._planner.memory_of(write.detail.whole))
        if node in self._gradients:
            update, position = self._gradients[node]
            sizes = [gradient.size for gradient in update.args]
            start = sum(sizes[:position])
            return self.flat_of(update)[start : start + node.size].reshape(node.shape)
        return None

    def is_buffered(self, node: Node) -> bool:
        """Tell whether a value is a gradient, or an optimizer's step, in the group's own buffer."""
        update, _ = self._gradients.get(node, (node, 0))
        return update in self._buffered

    def buffered(self, node: Node) -> tuple[str, bool]:
        """Return the variable of a gradient's part of the buffer, and whether it has its shape."""
        update, position = self._gradients[node]
        part = f"{self.buffer_of(update)}_{position}"
        return part, update.args[position].shape == node.shape

    def buffer_of(self, update: Node) -> str:
        """Return the variable of the buffer for the gradients of a step, which is asked for."""
        if not self._buffered[update]:
            planner = self._planner
            name = self._buffered[update] = f"g{update.index}"
            group = update.function.group
            parts = "".join([f"{name}_{position}, " for position in range(len(update.args))])
            line = f"{name} = {planner.bind(group.buffer)}(); "
            line += f"{parts}= {planner.bind(group.parts)}({name})"
            planner.emit(update, line, title="take the optimizer's buffer")
        return self._buffered[update]

    def flat_of(self, update: Node) -> Array:
        """Return the planned memory of all gradients of a step, from the first of them on."""
        flat = self._flat.get(update)
        if flat is None:
            size = sum([gradient.size for gradient in update.args])
            flat = self._flat[update] = self._planner.arena.take((size,), update.args[0].dtype)
        return flat

    def _lay_end_to_end(self, update: Node) -> None:
        planner = self._planner
        roots = [planner.root(gradient) for gradient in update.args]
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
                and not planner.escapes(root)
                and root not in self._gradients
            ):
                self._gradients[root] = update, position

    def _lay_in_place(self, write: Node, detail: FirstWrite) -> None:
        planner = self._planner
        _, part, *written = write.args
        if write.function not in (write_all, np.copyto) or len(written) != 1:
            return
        (value,) = written
        if (
            isinstance(value, Node)
            and value.kind in (Kind.ELEMENTWISE, Kind.MATMUL)
            and planner.readers(value) == [write]
            and value.shape == part.shape
            and value.dtype == write.dtype
            and value not in self
            and not planner.escapes(value)
            and not planner.escapes(detail.whole)
            and not self.is_buffered(detail.whole)
        ):
            self._parts[value] = write

    def is_written(self, write: Node) -> bool:
        """Tell whether what a write would copy is computed at its place."""
        return isinstance(write.detail, FirstWrite) and write in self._parts.values()
