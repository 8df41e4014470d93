"""Building the control-flow graph: what is put into containers, and taken out of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Final

from mypy.nodes import (
    CallExpr,
    DictExpr,
    Expression,
    ListExpr,
    MemberExpr,
    Node,
    RefExpr,
    TupleExpr,
)

from tapetensor.mypy_plugin.moves.contents import given_entries, merged, parts_of
from tapetensor.mypy_plugin.moves.graph import Graph
from tapetensor.mypy_plugin.moves.keys import (
    APPEND,
    EACH,
    SHUFFLE,
    Key,
    Passed,
    index_of,
    item_of,
    may_be,
    place,
    prefixes,
)
from tapetensor.mypy_plugin.moves.points import Link, Point

# Methods of containers that may give every index another item.
_MUTATORS: Final = frozenset({"clear", "insert", "appendleft", "update", "setdefault", "add"})
# Those of them that put nothing into it.
_SHUFFLERS: Final = frozenset(
    {"pop", "popitem", "popleft", "remove", "discard", "reverse", "sort", "rotate"}
)


class Filling(ABC):
    """Adds to a graph what calls change in containers."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    @abstractmethod
    def point(self, node: Node | None = None) -> Point:
        """Add a point that follows on where execution has come to."""

    def change(self, call: CallExpr, at: Point) -> None:
        """Add what a call that is made at a point changes in a container, if it is of one."""
        name, args = "", call.args
        owner: Expression | None = None
        match call.callee:
            case MemberExpr(expr=owner, name=name) if not call.callee.fullname:
                # Of a queue; a dict is asked for an item by its name.
                name = "popleft" if name in ("get", "get_nowait") and not args else name
                name = "append" if name in ("put", "put_nowait") else name
            case RefExpr(fullname="_heapq.heappush" | "heapq.heappush") if len(args) == 2:
                name, owner, args = "insert", args[0], args[1:]
            case RefExpr(fullname="_heapq.heappop" | "heapq.heappop") if args:
                name, owner = "popleft", args[0]
        base = place(owner)
        if base is not None:
            taken = [one for one in self.graph.links if one.node is call and one.point is at]
            self.graph.taken_out += taken if name in _SHUFFLERS else []
            self._put(call, name, base, args)

    def _put(self, call: CallExpr, name: str, base: Key, args: list[Expression]) -> None:
        """Add what a method of a container changes in it, as it returns."""
        if name not in _MUTATORS | _SHUFFLERS | {"append", "extend"}:
            return
        at = self.point()
        self.graph.changed_at.setdefault(call, []).append(at)
        if name in ("append", "extend"):
            at.stores = (*at.stores, item_of(base, APPEND))
        else:
            index = SHUFFLE if name in _SHUFFLERS else None
            at.stores = (*at.stores, item_of(base, index))
        if name == "extend" and args:
            self.extend(base, args[0], at)
        elif name == "update":
            self.graph.links += [
                Link(*pair, at, call) for pair in merged(base, given_entries(call))
            ]
        elif name == "setdefault" and args:
            self._set_default(call, base, at)
        elif name in ("append", "appendleft", "insert"):
            self.put_all(base, args[-1:], at)
            if name == "append":
                end = item_of(base, -1)
                self.graph.put_at.setdefault(end, []).append(at)
                last = parts_of(end, args[0]) if args else ()
                self.graph.links += [Link(*pair, at, call) for pair in last]

    def _set_default(self, call: CallExpr, base: Key, at: Point) -> None:
        """Note at a point that a dict has an item, which is returned, and may be a new one."""
        index = index_of(call.args[0])
        if index is None:
            return
        item = item_of(base, index)
        others = [
            one
            for one in self.graph.points[: at.index]
            if any(may_be(stored, part) for stored in one.stores for part in prefixes(item))
        ]
        at.stores = (item,)
        self.graph.links.append(Link(("name", call), item, at, call))
        match self.graph.assigned.get(base):
            case [DictExpr(items=[])] if [one.stores for one in others] == [(base,)]:
                around = {one for one in at.regions if one.loop}
                if around == {one for one in others[0].regions if one.loop} and call.args[1:]:
                    pairs = parts_of(item, call.args[1])
                    self.graph.links += [Link(*pair, at, call) for pair in pairs]

    def extend(self, base: Key, items: Expression, at: Point) -> None:
        """Note at a point that the items of one container are put into another one."""
        if isinstance(items, ListExpr | TupleExpr):
            self.put_all(base, items.items, at)
        elif (source := place(items)) is not None:
            new = item_of(base, Passed())
            self.graph.links.append(Link(new, item_of(source, EACH), at, items))

    def put_all(self, base: Key, items: list[Expression], at: Point) -> None:
        """Note at a point that values are put into a container."""
        for one in items:
            item = item_of(base, Passed())
            self.graph.put_at[item] = [at]
            self.graph.links += [Link(*pair, at, one) for pair in parts_of(item, one)]
