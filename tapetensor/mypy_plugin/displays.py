"""mypy joins the types of the items of list, set and dict displays.

Tensors of two known shapes have no join but `object`, where two open shapes have one. So an item
of a display keeps the type that plain typing gives it.
"""

from __future__ import annotations

from mypy.checker import TypeChecker
from mypy.nodes import (
    ARG_STAR,
    CallExpr,
    ConditionalExpr,
    Context,
    DictExpr,
    Expression,
    ListExpr,
    MypyFile,
    SetExpr,
    Statement,
    TupleExpr,
)
from mypy.server.subexpr import get_subexpressions


class _Displays:
    """The items in the file that is being checked; files are checked one after another."""

    def __init__(self) -> None:
        self.statements: list[Statement] | None = None
        self.items: set[Context] = set()


_found = _Displays()


def is_displayed(node: Context, api: TypeChecker) -> bool:
    """Tell whether an expression is an item of a list, set or dict display."""
    # The file may be an old one: the daemon puts new statements into it.
    if _found.statements is not api.tree.defs:
        _found.statements = api.tree.defs
        _found.items = _items(api.tree)
    return node in _found.items


def _items(tree: MypyFile) -> set[Context]:
    found: set[Context] = set()
    used = get_subexpressions(tree)
    calls = [one for one in used if isinstance(one, CallExpr)]
    # What is unpacked where it is written, ``Sequential(*[...])``, is given one by one.
    unpacked = {
        given
        for call in calls
        for given, kind in zip(call.args, call.arg_kinds, strict=True)
        if kind is ARG_STAR
    }
    for one in used:
        if isinstance(one, ListExpr | SetExpr) and one not in unpacked:
            _add(found, one.items)
        elif isinstance(one, DictExpr):
            _add(found, [part for pair in one.items for part in pair if part is not None])
    return found


def _add(found: set[Context], items: list[Expression]) -> None:
    for item in items:
        found.add(item)
        if isinstance(item, TupleExpr):
            _add(found, item.items)
        elif isinstance(item, ConditionalExpr):
            _add(found, [item.if_expr, item.else_expr])
