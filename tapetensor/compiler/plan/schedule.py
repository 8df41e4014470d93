"""The steps of a program that have to run, in the order in which they run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np

from tapetensor.compiler.plan.assembling import assemble
from tapetensor.compiler.plan.checkpoints import with_checkpoints
from tapetensor.compiler.plan.storage import SEEN, TAKES_OUT, made_of, owner, source_of
from tapetensor.compiler.trace.node import Kind, Node, found_in
from tapetensor.compiler.trace.operations import read_index, write_index
from tapetensor.compiler.trace.program import Program
from tapetensor.compiler.trace.view import laid_out, lie_alike

# Steps of these kinds have to run although nobody reads their results.
_NEEDED = frozenset({Kind.RANDOM, Kind.EFFECT, Kind.UPDATE})
# These functions of numpy's raise no error whatever the values are, but for those of an axis.
_NEVER_RAISE = frozenset(
    {"accumulate", "all", "allclose", "amax", "amin", "angle", "any", "append", "argmax", "argmin",
     "argsort", "around", "array_equal", "array_equiv", "block", "clip", "column_stack",
     "concatenate", "convolve", "copy", "copyto", "corrcoef", "correlate", "count_nonzero",
     "cross", "cumprod", "cumsum", "cumulative_prod", "cumulative_sum", "diag", "diagflat",
     "diagonal", "diff", "dot", "dstack", "ediff1d", "einsum", "fill_diagonal", "fix", "flip",
     "gradient", "hstack", "imag", "inner", "isclose", "isin", "isneginf", "isposinf", "kron",
     "lexsort", "max", "mean", "median", "min", "moveaxis", "nan_to_num", "nancumprod",
     "nancumsum", "nanmax", "nanmean", "nanmedian", "nanmin", "nanprod", "nanstd", "nansum",
     "nanvar", "outer", "packbits", "pad", "polyval", "prod", "ptp", "putmask", "ravel", "real",
     "reduce", "repeat", "reshape", "roll", "round", "searchsorted", "select", "sinc", "sort",
     "stack", "std", "sum", "tensordot", "tile", "trace", "transpose", "trapezoid", "tril", "triu",
     "unwrap", "vander", "var", "vdot", "vstack", "where"}
)  # fmt: skip
# Steps of these kinds do not see in which order the elements of what they read lie in memory.
_IN_ANY_ORDER = frozenset({Kind.ELEMENTWISE, Kind.VIEW, Kind.WRITE})
# Steps of these kinds may raise, where values are wrong.
_MAY_FAIL = frozenset({Kind.EFFECT, Kind.CALL})


def scheduled(program: Program, leaving: list[Node]) -> tuple[list[Node], list[Node]]:
    """Return the nodes that have to run, in order, and those that leave.

    What changes state comes as late as it can.
    """
    program.nodes = with_checkpoints(program.nodes, leaving)
    acting = [one for one in program.nodes if one.kind in _NEEDED or _raises_for_some_values(one)]
    needed = made_of([*leaving, *acting])
    nodes = [node for node in program.nodes if node in needed]
    copies = _needless_copies(nodes, leaving)
    for node in nodes if copies else ():
        for parent in node.parents():
            if parent in copies:
                node.read_instead(parent, copies[parent])
    kept = [node for node in nodes if node not in copies]
    leaving = [copies.get(node, node) for node in leaving]
    assemble(kept, leaving)
    return _updates_last(kept), leaving


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


def _needless_copies(nodes: list[Node], leaving: Iterable[Node]) -> dict[Node, Node]:
    """Return the copies that nobody needs, each with what to read in its place.

    These are copies of what nobody else reads, and those where nobody writes to the copy or to its
    source any more.
    """
    sources = {node: source for node in nodes if (source := source_of(node)) is not None}
    if not sources:
        return {}
    readers = Counter([parent for node in nodes for parent in node.parents()])
    readers.update(leaving)
    # The nodes that made the memory of each. To look for each on its own takes long in long chains.
    owners: dict[Node, Node] = {}
    for node in nodes:
        owners[node] = owners[node.args[0]] if node.kind in SEEN else node
    left = {owners[node] for node in leaving}
    written: set[Node] = set()
    copies: dict[Node, Node] = {}
    # What leaves, or is read by steps that see in which order the elements lie in memory.
    seen_in_order = set(leaving)
    for node in reversed(nodes):
        is_reshape = node.kind is Kind.VIEW and node.function.name == "reshape"
        is_seen = node.kind in SEEN and node in seen_in_order
        if is_reshape or is_seen or node.kind not in _IN_ANY_ORDER:
            seen_in_order.update(node.parents())
        if node.kind is Kind.WRITE:
            written.add(owners[node])
        source = sources.get(node)
        if source is None or (source.shape, source.dtype) != (node.shape, node.dtype):
            continue
        if node in seen_in_order and not lie_alike(laid_out(source), laid_out(node)):
            continue
        is_fresh = source.kind in TAKES_OUT or source.kind is Kind.CALL
        is_last = written.isdisjoint((node, owners[source])) and node not in left
        # One that nothing else may share has a detail of its own.
        is_own = node.detail is not None and not source.is_written_to
        if (is_fresh and readers[source] == 1) or (is_last and not is_own):
            copies[node] = source
            # What is done to the copy, is done to its source now.
            written.update({owners[source]} if node in written else ())
            left.update({owners[source]} if node in left else ())
    # In order, so that a copy of a copy leads to what is kept.
    for node in [node for node in nodes if node in copies]:
        copies[node] = copies.get(copies[node], copies[node])
    return copies
