"""Orders in which the axes of a value lie in memory, where C's order would cost a copy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tapetensor.compiler.fusion import Group, Unit, nodes_of
from tapetensor.compiler.node import Kind, Node, Shape
from tapetensor.compiler.operations import writes_anywhere
from tapetensor.compiler.view import is_copied_by

# Steps of these kinds read one order of axes as well as another.
_READERS = frozenset({Kind.ELEMENTWISE, Kind.REDUCE, Kind.MATMUL, Kind.VIEW, Kind.WRITE})
_WITH_ORDER = frozenset({Kind.ELEMENTWISE, Kind.MATMUL})
# BLAS computes a product of at most so many rows and at least twice as many columns faster as the
# product of the transposed factors.
_FEW_ROWS = 128


class Orders:
    """Finds the order of axes that saves a copy, or makes a product faster.

    Args:
        units: all steps.
        readers: returns the nodes that read a node.
        is_free: tells whether a value may lie anywhere.
    """

    def __init__(
        self,
        units: list[Unit],
        readers: Callable[[Node], list[Node]],
        is_free: Callable[[Node], bool],
    ) -> None:
        self._readers = readers
        self._is_free = is_free
        self._orders: dict[Node, Shape] = {}
        grouped = {node for unit in units if isinstance(unit, Group) for node in unit.nodes}
        for unit in units:
            for node in nodes_of(unit):
                if node.kind is Kind.VIEW and node.function.name == "reshape":
                    self._save_copy(node)
        for unit in units:
            if isinstance(unit, Node) and unit.kind is Kind.MATMUL:
                self._turn_product(unit, grouped)

    def of(self, node: Node) -> Shape | None:
        """Return the axes of a value in the order of its memory, outermost first; None for C's."""
        return self._orders.get(node)

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
        is_known = node in self._orders
        if is_known or not self._may_have_order(node) or not self._suits_readers(node):
            return
        self._orders[node] = order
        if node.kind is Kind.ELEMENTWISE:
            for operand in node.args:
                if (
                    operand.kind in _WITH_ORDER
                    and operand.shape == node.shape
                    and set(self._readers(operand)) == {node}
                ):
                    self._set(operand, order)

    def _may_have_order(self, node: Node) -> bool:
        return self._is_free(node) and writes_anywhere(node)

    def _suits_readers(self, node: Node) -> bool:
        return all(
            reader.kind in _READERS
            and (reader.kind not in (Kind.VIEW, Kind.WRITE) or self._suits_readers(reader))
            for reader in self._readers(node)
        )

    def _turn_product(self, product: Node, grouped: set[Node]) -> None:
        """Have a product, and what is computed of it, lie transposed where that is faster."""
        if len(product.shape) != 2:
            return
        rows, columns = product.shape
        if rows > _FEW_ROWS or columns < 2 * rows or rows < 2 or product.dtype.kind != "f":
            return
        turned = [product]
        for node in turned:
            if node in self._orders or node in grouped or not self._may_have_order(node):
                return
            for reader in self._readers(node):
                if reader.kind is Kind.ELEMENTWISE and reader.shape == product.shape:
                    turned.append(reader)
                elif reader.kind is not Kind.MATMUL or reader.args[0] is not node:
                    return
        self._orders.update(dict.fromkeys(turned, (1, 0)))
