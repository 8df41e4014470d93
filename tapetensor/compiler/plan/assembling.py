"""Arrays that are made of parts: each part is written where it belongs, without zeros before it."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from tapetensor.compiler.plan.storage import owner, part_seen, readers_of, source_of
from tapetensor.compiler.trace.node import Keywords, Kind, Node, found_in
from tapetensor.compiler.trace.operations import into, unwritten, write_all


def assemble(nodes: list[Node], leaving: Iterable[Node]) -> None:
    """Leave out zeros that are written over; write values in the place of adding them.

    The gradient of an array that is read in parts begins as zeros, to which the gradient of each
    part is added. An array whose parts are all written needs no zeros.
    """
    wholes = [node for node in nodes if _is_copy_of_zeros(node)]
    readers = readers_of(nodes if wholes else ())
    leaves = set(leaving)
    for whole in wholes:
        _assemble(whole, readers, leaves)


def _assemble(whole: Node, readers: dict[Node, list[Node]], leaves: set[Node]) -> None:
    covered = np.zeros(whole.shape, bool)
    first: list[Node] = []
    node, seen = whole, readers.get(whole, [])
    if len(seen) == 1 and seen[0].kind is Kind.VIEW and seen[0].function.name == "transpose":
        # It lies in memory in another order than C's.
        (node,) = seen
    while node not in leaves:
        write = _only_write(node, readers, leaves)
        if write is None:
            break
        target, values = write.args[1], list(write.args[2:])
        part = part_seen(target, covered)
        if part is None or any(isinstance(one, Keywords) for one in values):
            # With options such as a mask it may write less.
            break
        if part.any():
            if not part.all():
                break
        else:
            is_sum = write.function is into(np.add) and target in values
            if is_sum:
                values.remove(target)
            if any(owner(value) is whole for value in found_in(values, Node)):
                break
            if is_sum:
                write.do_instead(write_all, (node, target, *values))
            elif write.function not in (write_all, np.copyto):
                break
            first.append(write)
        part[...] = True
        node = write
    if covered.all():
        whole.do_instead(unwritten, ())
        for write in first:
            write.detail = whole


def _is_copy_of_zeros(node: Node) -> bool:
    source = source_of(node)
    while source is not None and source.kind is not Kind.CONSTANT:
        source = source.args[0] if source.kind is Kind.VIEW else source_of(source)
    if source is None or not source.size:
        return False
    # What is repeated lies in memory once. Negative zeros are not left out.
    once = tuple([slice(None if stride else 1) for stride in source.detail.strides])
    return not any(source.detail[once].tobytes())


def _only_write(node: Node, readers: dict[Node, list[Node]], leaves: set[Node]) -> Node | None:
    """Return the one write that reads an array and its views; None if anything else does."""
    found = None
    for reader in readers.get(node, []):
        if reader.kind is Kind.WRITE and reader.args[0] is node and found in (None, reader):
            found = reader
        elif reader.kind is not Kind.VIEW or reader in leaves:
            return None
    if found is None:
        return None
    views = [reader for reader in readers[node] if reader.kind is Kind.VIEW]
    for view in views:
        for reader in readers.get(view, []):
            if reader.kind is Kind.VIEW and reader not in leaves:
                views.append(reader)
            elif reader is not found or view is not found.args[1]:
                return None
    return found
