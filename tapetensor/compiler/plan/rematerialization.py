"""Values that are computed again where they are read, rather than kept in memory until then."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from tapetensor.compiler.plan.groups import Group, Limits, Unit, fused
from tapetensor.compiler.plan.storage import readers_of
from tapetensor.compiler.trace.node import Kind, Node

# These take less time in the cache than their result takes to memory and back.
_CHEAP = frozenset(
    {np.add, np.subtract, np.multiply, np.square, np.negative, np.absolute, np.maximum, np.minimum}
)
# An operand with so many times fewer elements costs next to nothing to read.
_SMALL = 8


def recomputed(schedule: list[Node], leaving: Iterable[Node], limits: Limits) -> list[Unit]:
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
    leaves = set(leaving)
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
