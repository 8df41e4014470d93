"""Arrays that are made of parts: each is computed where it belongs, without zeros before it."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from tapetensor.compiler.plan.storage import part_seen, readers_of, source_of
from tapetensor.compiler.trace.node import Kind, Node
from tapetensor.compiler.trace.operations import unwritten, write_all


def assemble(nodes: list[Node], leaving: Iterable[Node]) -> bool:
    """Leave out zeros that are written over; what was added to them is written instead.

    The gradient of an array that is read in parts begins as zeros, to which the gradient of each
    part is added. An array whose parts are all written needs no zeros. Tell whether there are any.
    """
    wholes = [node for node in nodes if node.function is unwritten or _is_copy_of_zeros(node)]
    readers = readers_of(nodes if wholes else ())
    leaves = set(leaving)
    for whole in wholes:
        _assemble(whole, readers, leaves)
    return bool(wholes)


def _assemble(whole: Node, readers: dict[Node, list[Node]], leaves: set[Node]) -> None:
    covered = np.zeros(whole.shape, bool)
    first: list[Node] = []
    node = whole
    while node not in leaves:
        write = _only_write(node, readers, leaves)
        part = None if write is None else part_seen(write.args[1], covered)
        if write is None or part is None:
            break
        value = write.args[2]
        added = _added(value, write, readers)
        if not part.any():
            # To zeros nothing need be added.
            value = value if added is None else added
            write.do_instead(write_all, (*write.args[:2], value))
            first.append(write)
        write.detail = False
        part[...] = True
        node = write
    if covered.all() and whole.function is not unwritten:
        whole.do_instead(unwritten, ())
    if whole.function is unwritten:
        for write in first:
            write.detail = True


def _is_copy_of_zeros(node: Node) -> bool:
    source = source_of(node)
    while source is not None and source.kind is Kind.VIEW:
        (source,) = source.args
    if source is None or source.kind is not Kind.CONSTANT:
        return False
    # What is repeated lies in memory once.
    once = tuple([slice(None if stride else 1) for stride in source.detail.strides])
    return not source.detail[once].any()


def _only_write(node: Node, readers: dict[Node, list[Node]], leaves: set[Node]) -> Node | None:
    """Return the one write that reads an array, if nothing else does but what it writes."""
    writes = [one for one in readers.get(node, []) if one.kind is Kind.WRITE]
    if not writes or writes.count(writes[0]) != len(writes) or writes[0].function is not write_all:
        return None
    (write, *_), waiting = writes, [one for one in readers[node] if one.kind is not Kind.WRITE]
    while waiting:
        one = waiting.pop()
        if one.kind is Kind.VIEW and one not in leaves:
            waiting += [each for each in readers.get(one, []) if each is not write]
        elif one is not write.args[2] or one in leaves or _added(one, write, readers) is None:
            return None
    return write


def _added(total: Node, write: Node, readers: dict[Node, list[Node]]) -> Node | None:
    """Return what is added to a part where the sum is written to it; None if it is no such sum."""
    if not isinstance(total, Node) or total.function is not np.add or readers[total] != [write]:
        return None
    lhs, rhs = total.parents()
    for part, other in ((lhs, rhs), (rhs, lhs)):
        if _is_same(part, write.args[1]) and other.shape == total.shape and part is not other:
            return other
    return None


def _is_same(part: Node, other: Node) -> bool:
    """Tell whether two nodes show the same part of one array."""
    while part is not other and part.kind is other.kind is Kind.VIEW:
        if part.function != other.function:
            return False
        (part,), (other,) = part.args, other.args
    return part is other
