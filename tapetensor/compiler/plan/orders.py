"""Orders in which the axes of a value lie in memory, where C's order would cost a copy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tapetensor.compiler.plan.groups import Unit, nodes_of
from tapetensor.compiler.trace.node import Kind, Node, Shape
from tapetensor.compiler.trace.operations import writes_anywhere
from tapetensor.compiler.trace.view import is_copied_by

# Steps of these kinds read one order of axes as well as another.
_READERS = frozenset({Kind.ELEMENTWISE, Kind.MATMUL, Kind.VIEW, Kind.WRITE})
_WITH_ORDER = frozenset({Kind.ELEMENTWISE, Kind.MATMUL})


class Orders:
    """Finds the order of axes that saves a copy.

    Never one in which a sum is added up in another order than numpy's: the BLAS multiplies matrices
    otherwise when they, or their product, lie transposed.

    Args:
        units: all steps.
        readers: returns the nodes that read a node.
        is_free: tells whether a value may lie anywhere.

    Attributes:
        found: the axes of values in the order of their memory, outermost first, where not C's.
    """

    def __init__(
        self,
        units: list[Unit],
        readers: Callable[[Node], list[Node]],
        is_free: Callable[[Node], bool],
    ) -> None:
        self._readers = readers
        self._is_free = is_free
        self.found: dict[Node, Shape] = {}
        for unit in units:
            for node in nodes_of(unit):
                if node.kind is Kind.VIEW and node.function.name == "reshape":
                    self._save_copy(node)

    def _save_copy(self, reshaped: Node) -> None:
        """Have a value that is transposed and then reshaped lie in memory in transposed order."""
        (transposed,) = reshaped.args
        if transposed.kind is not Kind.VIEW or transposed.function.name != "transpose":
            return
        (seen,) = transposed.args
        node = seen
        while node.kind is Kind.WRITE:
            node = node.args[0]
        order = transposed.function.parameter
        in_c_order = np.empty(node.shape, bool)
        if node.kind in _WITH_ORDER and is_copied_by(in_c_order.transpose(order), reshaped.shape):
            self._set(node, order)

    def _set(self, node: Node, order: Shape) -> None:
        """Give an order to a value, and to operands of it that nobody else reads."""
        if (
            node in self.found
            or (node.kind is Kind.MATMUL and not _keeps_rows(order))
            or not self._is_free(node)
            or not writes_anywhere(node)
            or not self._suits_readers(node, order)
        ):
            return
        self.found[node] = order
        if node.kind is Kind.ELEMENTWISE:
            for operand in node.args:
                if (
                    operand.kind in _WITH_ORDER
                    and operand.shape == node.shape
                    and set(self._readers(operand)) == {node}
                ):
                    self._set(operand, order)

    def _suits_readers(self, node: Node, order: Shape) -> bool:
        return all(
            reader.kind in _READERS
            and (reader.kind is not Kind.MATMUL or _keeps_rows(order))
            and (reader.kind not in (Kind.VIEW, Kind.WRITE) or self._suits_readers(reader, order))
            for reader in self._readers(node)
        )


def _keeps_rows(order: Shape) -> bool:
    """Tell whether the elements of a row still lie side by side."""
    return order[-1] == len(order) - 1
