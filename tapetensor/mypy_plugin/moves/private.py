"""Containers that no other code can reach: what is called cannot change their items."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

from mypy.nodes import (
    CallExpr,
    ComparisonExpr,
    Context,
    DictExpr,
    DictionaryComprehension,
    Expression,
    IndexExpr,
    ListComprehension,
    ListExpr,
    MemberExpr,
    NameExpr,
    Node,
    OpExpr,
    RefExpr,
    ReturnStmt,
    StarExpr,
    TupleExpr,
    UnaryExpr,
)

from tapetensor.mypy_plugin.moves.keys import Key
from tapetensor.mypy_plugin.moves.points import Point

# Methods of lists, tuples, dicts and deques that run no code but that of what they are given.
METHODS: Final = frozenset(
    {"append", "clear", "copy", "extend", "get", "insert", "items", "keys", "pop", "popitem"}
    | {"reverse", "setdefault", "update", "values", "appendleft", "extendleft", "popleft"}
    | {"rotate", "sort", "put", "put_nowait", "get_nowait", "empty", "qsize", "full", "task_done"}
)
# Those that give back first what was put into them first.
QUEUES: Final = frozenset({"queue.Queue", "_queue.SimpleQueue", "asyncio.queues.Queue"})
_MAKERS: Final = frozenset(
    {f"builtins.{name}" for name in ("list", "tuple", "dict", "sorted")}
    | {f"collections.{name}" for name in ("defaultdict", "deque", "OrderedDict")}
    | QUEUES
)
_NEW: Final = (
    *(ListExpr, TupleExpr, DictExpr),
    *(ListComprehension, DictionaryComprehension),
)


def handed_to_nobody(points: Iterable[Point], dropped: Iterable[Context]) -> set[Expression]:
    """Return the names and items that are read, and handed to no other code.

    Args:
        points: all that the function does.
        dropped: what is computed and not used.
    """
    found = {one for point in points for one in _kept_by(point.node, point.runs)}
    return found | {one for one in dropped if isinstance(one, NameExpr | IndexExpr)}


def private_names(
    points: Iterable[Point],
    assigned: Mapping[Key, list[Expression | None]],
    kept: Collection[Expression],
) -> frozenset[Key]:
    """Return the names that hold new containers, which are not handed to other code.

    Args:
        points: all that the function does.
        assigned: what each name is assigned, wherever it is.
        kept: what is read and handed to nobody.
    """
    found = {name for name, values in assigned.items() if name[0] == "name" and _are_new(values)}
    read = {point.node.base for point in points if isinstance(point.node, IndexExpr)}
    for point in points:
        if isinstance(point.node, NameExpr):
            name = ("name", point.node.node)
            is_here = point.node.node in point.fragment.bound - point.fragment.arguments
            # A closure may read items.
            if point.node not in (kept if is_here else read):
                found.discard(name)
    return frozenset(found)


def _are_new(values: list[Expression | None]) -> bool:
    return all(
        isinstance(one, _NEW)
        or (isinstance(one, OpExpr) and isinstance(one.left, ListExpr))
        or (
            isinstance(one, CallExpr)
            and isinstance(one.callee, RefExpr)
            and one.callee.fullname in _MAKERS
        )
        for one in values
    )


def _kept_by(node: Node | None, runs: Expression | None) -> Iterator[Expression]:
    """Yield the names and items that a step of execution reads, and hands to nobody."""
    parts: list[Expression | None] = [runs]
    match node:
        case CallExpr(callee=MemberExpr(expr=owner, name=name)) if name in METHODS:
            parts.append(owner)
        case CallExpr(callee=RefExpr(fullname=name), args=args) if name.startswith(
            ("builtins.", "tapetensor.", "_heapq.heap")
        ):
            parts += args
        case IndexExpr(base=base):
            parts.append(base)
        case ComparisonExpr(operands=operands):
            parts += operands
        case ReturnStmt(expr=TupleExpr(items=items)):
            parts += items
        case UnaryExpr(op="not", expr=inner) | StarExpr(expr=inner) | ReturnStmt(expr=inner):
            parts.append(inner)
    yield from (one for one in parts if isinstance(one, NameExpr | IndexExpr))
