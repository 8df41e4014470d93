"""The steps of a program that have to run, in the order in which they run."""

from __future__ import annotations

import numpy as np

from tapetensor.compiler.plan.assembling import assemble
from tapetensor.compiler.plan.checkpoints import with_checkpoints
from tapetensor.compiler.plan.storage import SEEN, TAKES_OUT, made_of, owner, source_of
from tapetensor.compiler.trace.node import Kind, Node, found_in
from tapetensor.compiler.trace.operations import read_index, write_index
from tapetensor.compiler.trace.program import Program

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
# Steps of these kinds may raise, where values are wrong.
_MAY_FAIL = frozenset({Kind.EFFECT, Kind.CALL})


def scheduled(program: Program, leaving: list[Node]) -> list[Node]:
    """Return the nodes that have to run, in order.

    What changes state comes as late as it can.
    """
    program.nodes = with_checkpoints(program.nodes, leaving)
    acting = [one for one in program.nodes if one.kind in _NEEDED or _raises_for_some_values(one)]
    needed = made_of([*leaving, *acting])
    nodes = [node for node in program.nodes if node in needed]
    nodes = _without_copies(nodes, leaving)
    if assemble(nodes, leaving):
        needed = made_of([*leaving, *acting])
        nodes = [node for node in nodes if node in needed]
    return _updates_last(nodes)


def _without_copies(nodes: list[Node], leaving: list[Node]) -> list[Node]:
    """Return the nodes without copies that something writes into, of what nobody reads later."""
    owners: dict[Node, Node] = {}
    last: dict[Node, Node] = {}
    for node in nodes:
        owners[node] = owners[node.args[0]] if node.kind in SEEN else node
        for parent in node.parents():
            last[owners[parent]] = node
    left = {owners[node] for node in leaving}
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
