"""Groups: steps that may run together, row by row, and the facts that an executor needs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeAlias

import numpy as np

from tapetensor.compiler.plan.storage import may_write_over, readers_of
from tapetensor.compiler.trace.node import Kind, Node

# Totals of some rows, taken together by these functions, are totals of all rows.
_TOTALS = frozenset({np.add, np.multiply, np.maximum, np.minimum, np.logical_and, np.logical_or})

# A step of at most that many bytes may wait until the totals that it reads are complete.
_WAITING = 1 << 12

# Steps of these kinds may not be moved before a group, though they do not depend on it.
_FIXED = frozenset({Kind.WRITE, Kind.UPDATE})


@dataclass(eq=False)
class Group:
    """Steps to run that are independent from row to row, and totals of all rows.

    How it is run is up to an executor. What the steps read comes from outside the group, or from
    the same row inside: the rows are those of the first axis.

    Attributes:
        nodes: the steps, in order.
        totals: those of them that are reductions over the rows, and what each begins with.
        kept: the values that are read outside; of the others nobody needs more than a row.
    """

    rows: int
    nodes: list[Node] = field(init=False, default_factory=list)
    totals: dict[Node, float] = field(init=False, default_factory=dict)
    kept: set[Node] = field(init=False, default_factory=set)
    _inside: set[Node] = field(init=False, default_factory=set)

    def add(self, node: Node) -> None:
        """Add a step."""
        self.nodes.append(node)
        self._inside.add(node)
        if node.kind is Kind.REDUCE and 0 in node.detail[0]:
            self.totals[node] = _start_of(node)

    def __contains__(self, node: object) -> bool:
        """Tell whether a step is one of the group."""
        return node in self._inside

    def is_read_by(self, node: Node) -> bool:
        """Tell whether a step reads a result of the group."""
        return not self._inside.isdisjoint(node.parents())

    def reads_rows(self, reader: Node, operand: Node) -> bool:
        """Tell whether a step of the group reads, for one of its rows, just that of an operand."""
        if operand.shape == ():
            return False
        is_row = operand.shape[0] == self.rows and len(operand.shape) == len(reader.shape)
        return is_row or operand in self

    def may_write_over(
        self, node: Node, operand: Node, shares: Callable[[Node, Node], bool]
    ) -> bool:
        """Tell whether a step may write its rows over those of one of its operands.

        All steps that read the operand read the same row of it, none of them later.
        """
        later = set(self.nodes[self.nodes.index(node) + 1 :])
        return may_write_over(node, operand, shares) and all(
            parent is operand and reader not in later and self.reads_rows(reader, parent)
            for reader in self.nodes
            for parent in reader.parents()
            if shares(parent, operand)
        )

    def arrays(self) -> list[Node]:
        """Return the arrays that the steps compute or read by row."""
        return [
            node
            for step in self.nodes
            for node in (step, *step.parents())
            if node.shape and node.shape[0] == self.rows
        ]


class Limits(Protocol):
    """The half of an executor that planning asks: which groups it runs, and which gain by it."""

    def takes(self, node: Node) -> bool:
        """Tell whether a step may be part of a group."""
        ...

    def is_worth_it(self, group: Group) -> bool:
        """Tell whether a group runs faster than its steps one by one."""
        ...


def _start_of(total: Node) -> float:
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


def fused(schedule: list[Node], limits: Limits) -> list[Unit]:
    """Return the schedule with groups of steps in place of single ones, where that pays."""
    units: list[Unit] = []
    opened = _Opened(limits)
    for node in schedule:
        rows = _independent_rows(node) if limits.takes(node) else 0
        if opened.takes(node, rows):
            continue
        if not opened.is_passed_by(node) or opened.is_followed_by(node, rows):
            units += opened.close()
        if opened.group or not opened.opens(node, rows):
            units.append(node)
    return units + opened.close()


class _Opened:
    """The group that still takes steps, and small steps that wait for its totals."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self.group: Group | None = None
        self._after: list[Node] = []

    def opens(self, node: Node, rows: int) -> bool:
        """Start a group with a step, if one can."""
        if node.kind is Kind.VIEW or not rows:
            return False
        self.group = Group(rows)
        self.group.add(node)
        return True

    def takes(self, node: Node, rows: int) -> bool:
        """Put a step into the group, or behind it, if it fits there."""
        group = self.group
        if group is None:
            return False
        is_late = self._is_late(node)
        if is_late and node.kind not in _FIXED and node.nbytes <= _WAITING:
            self._after.append(node)
            return True
        if is_late or rows != group.rows or (node.kind is Kind.VIEW and node.args[0] not in group):
            return False
        # A value with fewer axes is repeated for every row, as in ``x[:, None] - x``.
        if node.kind is Kind.ELEMENTWISE and any(
            parent in group and len(parent.shape) != len(node.shape) for parent in node.parents()
        ):
            return False
        group.add(node)
        return True

    def is_passed_by(self, node: Node) -> bool:
        """Tell whether a step may run before the group although it comes later."""
        is_next = self.group is not None and self.group.is_read_by(node)
        return node.kind not in _FIXED and not is_next and not self._is_late(node)

    def is_followed_by(self, node: Node, rows: int) -> bool:
        """Tell whether a step had better start a group: this one has only reductions so far."""
        steps = [] if self.group is None else self.group.nodes
        is_start = node.kind is Kind.ELEMENTWISE and rows > 1
        return is_start and all(step.kind in (Kind.REDUCE, Kind.VIEW) for step in steps)

    def close(self) -> list[Unit]:
        """Return the group, or its steps if grouping does not pay, and steps that waited for it."""
        group, waited = self.group, self._after
        self.group, self._after = None, []
        if group is None:
            return []
        steps: list[Unit] = [group] if self._limits.is_worth_it(group) else [*group.nodes]
        return [*steps, *waited]

    def _is_late(self, node: Node) -> bool:
        """Tell whether a step reads totals of the group, or what waits for them."""
        group, after = self.group, self._after
        if group is None or not group.totals:
            return False
        return any(parent in group.totals or parent in after for parent in node.parents())


def _independent_rows(node: Node) -> int:
    """Return over how many rows a step is independent; 0 for one that is not."""
    if node.kind is Kind.ELEMENTWISE:
        # A step without operands has no rows to share.
        return node.shape[0] if node.shape and node.args else 0
    if node.kind is Kind.REDUCE:
        operand = node.args[0]
        axes, is_by_rows = node.detail
        is_total = node.function in _TOTALS and node.dtype.kind in "biuf" and not is_by_rows
        if 0 in axes and not is_total:
            return 0
        return operand.shape[0] if operand.shape else 0
    if node.kind is Kind.VIEW and node.shape:
        name, parameter = node.function.name, node.function.parameter
        if name == "reshape" or (name == "transpose" and parameter[0] == 0):
            return node.shape[0]
    return 0


# These take less time in the cache than their result takes to memory and back.
_CHEAP = frozenset(
    {np.add, np.subtract, np.multiply, np.square, np.negative, np.absolute, np.maximum, np.minimum}
)
# An operand with so many times fewer elements costs next to nothing to read.
_SMALL = 8


def recomputed(schedule: list[Node], outputs: Iterable[Node], limits: Limits) -> list[Unit]:
    """Return the schedule in groups, with cheap values computed again in each that reads them.

    A group may read a square, say, that another one far ahead of it has computed. If it reads what
    is squared besides, then squaring once more, while that is in the cache, spares one array to
    write, to keep and to read.
    """
    units = fused(schedule, limits)
    group_of = {node: unit for unit in units if isinstance(unit, Group) for node in unit.nodes}
    if not group_of:
        return units
    readers = readers_of(schedule)
    leaves = set(outputs)
    index = max([node.index for node in schedule], default=0)
    twins: dict[Node, list[Node]] = {}
    for node, group in group_of.items():
        is_cheap = node.kind is Kind.ELEMENTWISE and node.function in _CHEAP
        if not is_cheap or node in leaves:
            continue
        by_group: dict[Group | None, list[Node]] = {}
        for one in readers.get(node, []):
            if group_of.get(one) is not group:
                by_group.setdefault(group_of.get(one), []).append(one)
        if not all(_reads_what_makes(other, node) for other in by_group):
            continue
        for ones in by_group.values():
            index += 1
            twin = replace(node, index=index)
            for reader in ones:
                reader.read_instead(node, twin)
            twins.setdefault(ones[0], []).append(twin)
    if not twins:
        return units
    return fused([one for node in schedule for one in (*twins.get(node, []), node)], limits)


def _reads_what_makes(group: Group | None, node: Node) -> bool:
    """Tell whether a group reads, for other purposes, the large operands of a value."""
    if group is None:
        return False
    read = {parent for step in group.nodes for parent in step.parents()}
    return all(
        not operand.is_written_to and (operand in read or operand.size * _SMALL <= node.size)
        for operand in node.parents()
    )
