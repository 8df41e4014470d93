"""Where values have to be computed: where somebody needs them, so that nobody has to copy them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tapetensor.compiler.assembling import FirstWrite, place_of
from tapetensor.compiler.fusion import Unit
from tapetensor.compiler.node import Kind, Node
from tapetensor.compiler.operations import write_all, writes_anywhere
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
        # By gradient: the optimizer's step, and the place among its gradients.
        self._gradients: dict[Node, tuple[Node, int]] = {}
        self._flat: dict[Node, Array] = {}
        # By part: the write that would have copied it.
        self._parts: dict[Node, Node] = {}
        for unit in units:
            if isinstance(unit, Node) and unit.kind is Kind.UPDATE:
                self._lay_end_to_end(unit)
            elif isinstance(unit, Node) and isinstance(unit.detail, FirstWrite):
                self._lay_in_place(unit, unit.detail)

    def __contains__(self, node: Node) -> bool:
        """Tell whether a value has a place that is not its own."""
        return node in self._gradients or node in self._parts

    def has_gradient(self, node: Node, update: Node) -> bool:
        """Tell whether a value is computed at its place among the gradients of a step."""
        return node in self._gradients and self._gradients[node][0] is update

    def of(self, node: Node) -> Array | None:
        """Return where a value has to be computed; None where that is anywhere."""
        if node in self._gradients:
            update, start = self._gradients[node]
            return self.flat_of(update)[start : start + node.size].reshape(node.shape)
        if node in self._parts:
            write = self._parts[node]
            assert isinstance(write.detail, FirstWrite)
            return place_of(write, self._planner.memory_of(write.detail.whole))
        return None

    def flat_of(self, update: Node) -> Array:
        """Return the memory of all gradients of an optimizer's step, from the first of them on."""
        flat = self._flat.get(update)
        if flat is None:
            size = sum([gradient.size for gradient in update.args])
            flat = self._flat[update] = self._planner.arena.take((size,), update.args[0].dtype)
        return flat

    def _lay_end_to_end(self, update: Node) -> None:
        planner = self._planner
        ends = np.cumsum([0, *[gradient.size for gradient in update.args]]).tolist()
        roots = [planner.root(gradient) for gradient in update.args]
        for gradient, root, start in zip(update.args, roots, ends, strict=False):
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
                self._gradients[root] = update, start

    def _lay_in_place(self, write: Node, detail: FirstWrite) -> None:
        planner = self._planner
        _, part, *written = write.args
        if write.function not in (write_all, np.copyto) or len(written) != 1:
            return
        (value,) = written
        if (
            isinstance(value, Node)
            and value.kind in (Kind.ELEMENTWISE, Kind.MATMUL)
            and writes_anywhere(value)
            and planner.readers(value) == [write]
            and value.shape == part.shape
            and value.dtype == write.dtype
            and value not in self
            and not planner.escapes(value)
            and not planner.escapes(detail.whole)
        ):
            self._parts[value] = write

    def is_written(self, write: Node) -> bool:
        """Tell whether what a write would copy is computed at its place."""
        return isinstance(write.detail, FirstWrite) and write in self._parts.values()
