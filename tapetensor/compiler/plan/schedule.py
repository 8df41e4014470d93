"""The steps of a program that have to run, in order, and what need not be written or copied."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

import numpy as np

from tapetensor.compiler.plan.storage import (
    SEEN,
    TAKES_OUT,
    made_of,
    owner,
    part_seen,
    readers_of,
    source_of,
)
from tapetensor.compiler.trace.node import Kind, Node, found_in, replaced
from tapetensor.compiler.trace.operations import read_index, unwritten, write_all, write_index
from tapetensor.compiler.trace.program import Program

# Steps of these kinds have to run although nobody reads their results.
_NEEDED = frozenset({Kind.RANDOM, Kind.EFFECT, Kind.UPDATE})
# These functions of numpy's raise no error whatever the values are, but for those of an axis.
_NEVER_RAISE = frozenset(
    {"all", "any", "argmax", "argmin", "argsort", "array_equal", "clip", "concatenate", "copy",
     "corrcoef", "count_nonzero", "cumprod", "cumsum", "diag", "diagonal", "diff", "dot", "einsum",
     "flip", "inner", "isclose", "kron", "max", "mean", "median", "min", "nan_to_num", "nanmean",
     "nansum", "outer", "pad", "prod", "reduce", "repeat", "reshape", "roll", "round", "sort",
     "stack", "std", "sum", "tensordot", "tile", "trace", "tril", "triu", "var", "vdot", "where"}
)  # fmt: skip
# Steps of these kinds may raise, where values are wrong.
_MAY_FAIL = frozenset({Kind.EFFECT, Kind.CALL})
# What is drawn, checked or written is so once.
_REPEATABLE = frozenset(
    {Kind.ELEMENTWISE, Kind.REDUCE, Kind.MATMUL, Kind.VIEW, Kind.CALL, Kind.PART}
)


def scheduled(program: Program, outputs: list[Node]) -> list[Node]:
    """Return the nodes that have to run, in order.

    What changes state comes as late as it can.
    """
    program.nodes = with_checkpoints(program.nodes, outputs)
    acting = [one for one in program.nodes if one.kind in _NEEDED or _raises_for_some_values(one)]
    needed = made_of([*outputs, *acting])
    nodes = [node for node in program.nodes if node in needed]
    nodes = _without_copies(nodes, outputs)
    if assemble(nodes, outputs):
        needed = made_of([*outputs, *acting])
        nodes = [node for node in nodes if node in needed]
    return _updates_last(nodes)


def repeatable(nodes: Iterable[Node]) -> set[Node]:
    """Return the values of checkpoints that give the same when they are computed again later.

    What reads a draw, as the mask of dropout does, is kept, and so are memory that is written to
    and what reads it.
    """
    nodes = [*nodes]
    if not any(node.checkpoint > 0 for node in nodes):
        return set()
    owners = _owners_of(nodes)
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


def _owners_of(nodes: Iterable[Node]) -> dict[Node, Node]:
    """Return the node that made the memory in which each node lies."""
    owners: dict[Node, Node] = {}
    for node in nodes:
        owners[node] = owners[node.args[0]] if node.kind in SEEN else node
    return owners


def with_checkpoints(nodes: list[Node], outputs: Collection[Node]) -> list[Node]:
    """Return the nodes with twins of those in checkpoints, right before what else reads them.

    So nothing outlives a checkpoint but what it returns. A twin is there for all that reads it.

    Args:
        nodes: all nodes, in order; what reads values of a checkpoint from outside is changed.
        outputs: the nodes whose arrays leave the function, and are therefore kept.
    """
    again = repeatable(nodes).difference(outputs)
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
            args = replaced(
                one.args, lambda arg: twins.get(arg, arg) if isinstance(arg, Node) else arg
            )
            twins[one] = replace(one, args=args, index=index)
            ordered.append(twins[one])
        for parent in read:
            node.read_instead(parent, twins[parent])
        ordered.append(node)
    return ordered


def _makers(read: list[Node], again: set[Node], twins: dict[Node, Node]) -> list[Node]:
    """Return what has to be computed again for some values, in order, and has no twin so far."""

    def is_lacking(node: Node) -> bool:
        return node in again and node not in twins

    return sorted(filter(is_lacking, made_of(read, is_lacking)), key=lambda one: one.index)


def _without_copies(nodes: list[Node], outputs: list[Node]) -> list[Node]:
    """Return the nodes without copies that something writes into, of what nobody reads later."""
    owners = _owners_of(nodes)
    last = {owners[parent]: node for node in nodes for parent in node.parents()}
    left = {owners[node] for node in outputs}
    copies: dict[Node, Node] = {}
    for node in nodes:
        source = source_of(node) if node.detail is not None else None
        if source is not None:
            made = owners[source]
            if made.kind in TAKES_OUT and last[made] is node and made not in left:
                copies[node] = copies.get(source, source)
        for parent in node.parents() if copies else ():
            if parent in copies:
                node.read_instead(parent, copies[parent])
    return [node for node in nodes if node not in copies]


def _raises_for_some_values(node: Node) -> bool:
    """Tell whether a step raises an error for some values, which it also does if nobody reads it.

    A step of the library's does not: what it is given has been checked.
    """
    function = node.function
    if node.kind is Kind.ELEMENTWISE:
        if isinstance(function, np.ufunc):
            # A negative power of an integer.
            return function is np.power and node.dtype.kind in "iu"
        # A text, say, that is cast to a number.
        return any(one.dtype.kind not in "biufc" for one in (node, *node.parents()))
    if node.kind not in (Kind.CALL, Kind.WRITE):
        return False
    # What copies or writes what a function gives has its name. A ufunc's method has no module.
    module, name = getattr(function, "__module__", None) or "numpy", node.name
    if module == read_index.__module__ and name == read_index.__name__:
        # A known index has been tried.
        return any(one.kind is not Kind.CONSTANT for one in found_in(node.args[1], Node))
    if module.startswith("tapetensor."):
        return function is write_index
    is_ufunc = module == "numpy" and isinstance(getattr(np, name, None), np.ufunc)
    is_harmless = is_ufunc or name in _NEVER_RAISE
    # An integer may be an axis, or an exponent.
    return not is_harmless or any(one.dtype.kind in "iu" for one in node.parents())


def _updates_last(nodes: list[Node]) -> list[Node]:
    """Return the nodes with all that no optimizer's step leads to before the first such step.

    So checks come before anything has changed. Draws keep their order.
    """
    last: set[Node] = set()
    has_drawn = False
    for node in nodes:
        is_next_draw = has_drawn and node.kind is Kind.RANDOM
        if node.kind is Kind.UPDATE or is_next_draw or not last.isdisjoint(node.parents()):
            last.add(node)
            has_drawn = has_drawn or node.kind is Kind.RANDOM
    if not last or _write_too_early(nodes, last):
        return nodes
    return [node for node in nodes if node not in last] + [node for node in nodes if node in last]


def _write_too_early(nodes: list[Node], last: set[Node]) -> bool:
    """Tell whether something, if it came before the `last`, would write over what those read."""
    read: set[Node] = set()
    for node in nodes:
        if node in last:
            read.update([owner(parent) for parent in node.parents()])
        elif node.kind is Kind.WRITE and owner(node) in read:
            return True
    return False


def is_at_risk(schedule: list[Node]) -> bool:
    """Tell whether something that may fail comes after the first of the optimizers' steps."""
    is_behind = False
    for node in schedule:
        if is_behind and (node.kind in _MAY_FAIL or _raises_for_some_values(node)):
            return True
        is_behind = is_behind or node.kind is Kind.UPDATE
    return False


def assemble(nodes: list[Node], outputs: Iterable[Node]) -> bool:
    """Leave out zeros that are written over; what was added to them is written instead.

    The gradient of an array that is read in parts begins as zeros, to which the gradient of each
    part is added. An array whose parts are all written needs no zeros. Tell whether there are any.
    """
    wholes = [node for node in nodes if node.function is unwritten or _is_copy_of_zeros(node)]
    readers = readers_of(nodes if wholes else ())
    leaves = set(outputs)
    for whole in wholes:
        _assemble(whole, readers, leaves)
    return bool(wholes)


def _assemble(whole: Node, readers: dict[Node, list[Node]], leaves: set[Node]) -> None:
    covered = np.zeros(whole.shape, bool)
    first: list[Node] = []
    reads_zeros = False
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
        elif added is not None and not part.all():
            # Of parts that overlap the sum is with zeros where only one of them is.
            reads_zeros = True
        write.detail = False
        part[...] = True
        node = write
    if covered.all() and not reads_zeros and whole.function is not unwritten:
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
    """Return the one write into an array, if nothing else reads that but what it writes."""
    writes = [one for one in readers.get(node, []) if one.kind is Kind.WRITE]
    if not writes or writes.count(writes[0]) != len(writes) or writes[0].function is not write_all:
        return None
    (write, *_), waiting = writes, [one for one in readers[node] if one.kind is not Kind.WRITE]
    if write.args[0] is not node:
        # It writes the array into another one.
        return None
    while waiting:
        one = waiting.pop()
        if one.kind is Kind.VIEW and one not in leaves:
            waiting += [each for each in readers.get(one, []) if each is not write]
        elif one is not write.args[2] or one in leaves or _added(one, write, readers) is None:
            return None
    return write


def _added(total: Node, write: Node, readers: dict[Node, list[Node]]) -> Node | None:
    """Return what is added to a part where the sum is written to it; None if it is no such sum."""
    # A sum of one array along an axis has the same function.
    is_sum = isinstance(total, Node) and total.kind is Kind.ELEMENTWISE
    if not is_sum or total.function is not np.add or readers[total] != [write]:
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
