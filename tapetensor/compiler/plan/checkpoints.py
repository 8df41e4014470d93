"""Values of checkpoints, which are computed again where the backward pass reads them."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from tapetensor.compiler.plan.storage import SEEN
from tapetensor.compiler.trace.node import Kind, Node, replaced

# What is drawn, checked or written is so once.
_REPEATABLE = frozenset(
    {Kind.ELEMENTWISE, Kind.REDUCE, Kind.MATMUL, Kind.VIEW, Kind.CALL, Kind.PART}
)


def repeatable(nodes: Iterable[Node]) -> set[Node]:
    """Return the values of checkpoints that give the same when they are computed again later.

    What reads a draw, as the mask of dropout does, is kept, and so are memory that is written to
    and what reads it.
    """
    nodes = [*nodes]
    if not any(node.checkpoint > 0 for node in nodes):
        return set()
    owners: dict[Node, Node] = {}
    for node in nodes:
        owners[node] = owners[node.args[0]] if node.kind in SEEN else node
    written = {owners[node] for node in nodes if node.kind is Kind.WRITE}
    return {
        node
        for node in nodes
        if node.checkpoint > 0
        and node.kind in _REPEATABLE
        and owners[node] not in written
        and not any(
            owners[parent] in written or parent.kind in (Kind.RANDOM, Kind.UPDATE)
            for parent in node.parents()
        )
    }


def with_checkpoints(nodes: list[Node], leaving: Collection[Node]) -> list[Node]:
    """Return the nodes with twins of those in checkpoints, right before what else reads them.

    So nothing outlives a checkpoint but what it returns. A twin is there for all that reads it.

    Args:
        nodes: all nodes, in order; what reads values of a checkpoint from outside is changed.
        leaving: the nodes whose arrays leave the function, and are therefore kept.
    """
    again = repeatable(nodes).difference(leaving)
    if not again:
        return nodes
    index = max([node.index for node in nodes])
    twins: dict[Node, Node] = {}
    ordered: list[Node] = []
    for node in nodes:
        read = [
            parent
            for parent in node.parents()
            if parent in again and parent.checkpoint != abs(node.checkpoint)
        ]
        for one in _makers(read, again, twins):
            index += 1
            args = replaced(one.args, lambda arg: twins.get(arg, arg) if _is_node(arg) else arg)
            twins[one] = replace(one, args=args, index=index)
            ordered.append(twins[one])
        for parent in read:
            node.read_instead(parent, twins[parent])
        ordered.append(node)
    return ordered


def _is_node(value: object) -> bool:
    return value.__class__ is Node


def _makers(read: list[Node], again: set[Node], twins: dict[Node, Node]) -> list[Node]:
    """Return what has to be computed again for some values, in order, and has no twin so far."""
    found: set[Node] = set()
    waiting = [*read]
    while waiting:
        node = waiting.pop()
        if node in again and node not in found and node not in twins:
            found.add(node)
            waiting += node.parents()
    return sorted(found, key=lambda one: one.index)
