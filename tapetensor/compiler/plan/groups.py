"""Steps that run together, block of rows by block of rows, while a block is in the cache."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from tapetensor.compiler.trace.node import Kind, Node

# Below that many bytes in its largest value a group gains nothing from blocks.
_SMALLEST = 1 << 18
# A thread for fewer elements costs more than it gives.
_SMALLEST_FOR_THREADS = 1 << 19
# So many elements of a value are worked on at a time. Half as many or twice as many were slower:
# the calls cost more, or the values leave the caches.
BLOCK = 1 << 17

# The BLAS sums so many rows together, or a divisor of that, and the rest in another way. In blocks
# of whole ones the sums are those of all rows at once.
_ROWS_TOGETHER = 16

# These functions may reduce rows block by block.
_TOTALS = frozenset({np.add, np.multiply, np.maximum, np.minimum, np.logical_and, np.logical_or})

# A step of at most that many bytes may wait until the totals that it reads are complete.
_WAITING = 1 << 12

# Steps of these kinds may be moved before a group that they do not depend on.
_MOVABLE = frozenset(
    {Kind.INPUT, Kind.CONSTANT, Kind.VIEW, Kind.MATMUL, Kind.ELEMENTWISE, Kind.REDUCE, Kind.CALL,
     Kind.PART, Kind.RANDOM, Kind.EFFECT}
)  # fmt: skip


@dataclass
class Group:
    """Steps that are independent from row to row, and totals of all rows at their end.

    Args:
        rows: the size of the first axis of the arrays that they work on.
        nodes: the steps, in order.
        totals: those of them that are reductions over the rows.
    """

    rows: int
    nodes: list[Node] = field(default_factory=list)
    totals: set[Node] = field(default_factory=set)

    @property
    def rows_of_block(self) -> int:
        """How many rows are worked on at a time; all blocks have about as many."""
        elements_in_row = max(node.size // self.rows for node in self._values())
        most = min(self.rows, max(1, BLOCK // elements_in_row))
        count = -(-self.rows // -(-self.rows // most))
        return count if count < _ROWS_TOGETHER else count + -count % _ROWS_TOGETHER

    @property
    def is_worth_threads(self) -> bool:
        """Whether there is enough to do for a second thread to pay its way."""
        return max(node.size for node in self._values()) >= _SMALLEST_FOR_THREADS

    @property
    def is_worth_it(self) -> bool:
        """Whether blocks save trips to memory."""
        steps = [node for node in self.nodes if node.kind is not Kind.VIEW]
        is_large = max(node.nbytes for node in self._values()) >= _SMALLEST
        # A single block would only take scratch where single steps work in place.
        return len(steps) > 1 and is_large and self.rows > self.rows_of_block

    def _values(self) -> list[Node]:
        return [
            node
            for step in self.nodes
            for node in (step, *step.parents())
            if node.shape and node.shape[0] == self.rows
        ]


def start_of(total: Node) -> float:
    """Return the value that a total of rows begins with, which leaves the total as it is."""
    identity: float | None = total.function.identity
    if identity is not None:
        return identity
    kind = total.dtype.kind
    if kind == "f":
        lowest, highest = -math.inf, math.inf
    elif kind == "b":
        lowest, highest = False, True
    else:
        limits = np.iinfo(total.dtype)
        lowest, highest = limits.min, limits.max
    return lowest if total.function is np.maximum else highest


Unit: TypeAlias = Node | Group


def nodes_of(unit: Unit) -> list[Node]:
    """Return the nodes of a step or of a group of them."""
    return unit.nodes if isinstance(unit, Group) else [unit]


def fused(schedule: list[Node]) -> list[Unit]:
    """Return the schedule with groups of steps in place of single ones, where that pays."""
    units: list[Unit] = []
    opened = _Opened()
    for node in schedule:
        if opened.takes(node):
            continue
        if not opened.is_passed_by(node):
            units += opened.close()
        if not opened.group and _rows(node) and node.kind is not Kind.VIEW:
            opened.open(node)
        else:
            units.append(node)
    return units + opened.close()


class _Opened:
    """The group that still takes steps, and small steps that wait for its totals."""

    def __init__(self) -> None:
        self.group: Group | None = None
        self._inside: set[Node] = set()
        self._after: list[Node] = []

    def open(self, node: Node) -> None:
        """Start a group."""
        self.group = Group(_rows(node))
        self._add(node)

    def takes(self, node: Node) -> bool:
        """Put a step into the group, or behind it, if it fits there."""
        if self.group is None:
            return False
        is_late = _reads(node, self.group.totals) or _reads(node, set(self._after))
        if is_late and node.kind in _MOVABLE and node.nbytes <= _WAITING:
            self._after.append(node)
            return True
        rows = _rows(node)
        if node.kind is Kind.VIEW and node.args[0] not in self._inside:
            rows = 0
        if is_late or rows != self.group.rows or not self._reads_its_own_rows(node):
            return False
        self._add(node)
        return True

    def _reads_its_own_rows(self, node: Node) -> bool:
        """Tell whether each row of a step needs only the same row of what the group computes.

        A value with fewer axes is repeated for every row, as in ``x[:, None] - x``.
        """
        return node.kind is not Kind.ELEMENTWISE or all(
            len(parent.shape) == len(node.shape)
            for parent in node.parents()
            if parent in self._inside
        )

    def is_passed_by(self, node: Node) -> bool:
        """Tell whether a step may run before the group although it comes later."""
        return node.kind in _MOVABLE and not _reads(node, self._inside | set(self._after))

    def close(self) -> list[Unit]:
        """Return the group, or its steps where grouping does not pay, and what waited for it."""
        group, waited = self.group, self._after
        self.group, self._after = None, []
        self._inside = set()
        if group is None:
            return []
        steps: list[Unit] = [group] if group.is_worth_it else [*group.nodes]
        return [*steps, *waited]

    def _add(self, node: Node) -> None:
        assert self.group is not None
        self.group.nodes.append(node)
        self._inside.add(node)
        if _is_total(node):
            self.group.totals.add(node)


def _reads(node: Node, those: set[Node]) -> bool:
    return any(parent in those for parent in node.parents())


def _rows(node: Node) -> int:
    """Return over how many rows a step is independent; 0 for one that is not."""
    if node.kind is Kind.ELEMENTWISE:
        # A step without operands has no rows to share.
        return node.shape[0] if node.shape and node.args else 0
    if node.kind is Kind.REDUCE:
        operand = node.args[0]
        axes, options = node.detail
        if 0 in axes and (options or node.function not in _TOTALS or node.dtype.kind not in "biuf"):
            return 0
        return operand.shape[0] if operand.shape else 0
    if node.kind is Kind.VIEW:
        (operand,) = node.args
        keeps_rows = node.shape != () and operand.shape != () and node.shape[0] == operand.shape[0]
        if not keeps_rows or operand.kind not in (Kind.ELEMENTWISE, Kind.REDUCE, Kind.VIEW):
            return 0
        name, parameter = node.function.name, node.function.parameter
        if name == "reshape" or (name == "transpose" and parameter[0] == 0):
            return node.shape[0]
    return 0


def _is_total(node: Node) -> bool:
    return node.kind is Kind.REDUCE and 0 in node.detail[0]
