"""Containers that a program fills in one place: whether all that they hold is spent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Final, NamedTuple

from mypy.nodes import (
    CallExpr,
    DictExpr,
    Expression,
    IndexExpr,
    IntExpr,
    ListExpr,
    RefExpr,
    StrExpr,
)

from tapetensor.mypy_plugin.moves.aliases import Value
from tapetensor.mypy_plugin.moves.graph import Graph
from tapetensor.mypy_plugin.moves.keys import (
    EACH,
    SHUFFLE,
    Key,
    Passed,
    item_of,
    key_of,
    prefixes,
    replaced,
    root,
)
from tapetensor.mypy_plugin.moves.paths import Paths
from tapetensor.mypy_plugin.moves.points import Link, Point
from tapetensor.mypy_plugin.moves.private import QUEUES

# What makes an empty container, if it is given no items.
_MAKERS: Final = frozenset(
    {f"builtins.{name}" for name in ("list", "dict")}
    | {f"collections.{name}" for name in ("deque", "defaultdict", "OrderedDict")}
)


class _Filling(NamedTuple):
    """What is put into a container that is empty at first, at the only place that does so.

    Attributes:
        link: what says so.
        every: the key of all that is ever put there.
        first: that of the first of them, if each is put behind the others.
        ends: where a loop that fills it comes to its end.
    """

    link: Link
    every: Key
    first: Key | None
    ends: list[Point]


class Gathered:
    """Answers for the containers of one graph.

    What is put into a list at one place of the program is spent, all of it, where that is sure of
    the one that was put there last: each of those before it was the last one, too.
    """

    def __init__(self, graph: Graph, paths: Paths) -> None:
        self._graph = graph
        self._paths = paths

    def filled_with(self, values: Sequence[Value], at: Point) -> Iterator[tuple[Point, Key]]:
        """Yield where all items of a container are spent, for some values are at a point."""
        keys = {one.key for one in values if not one.by and not one.loop}
        for link, every, first, ends in self._fillings:
            put = link.point
            if put.fragment is not at.fragment:
                continue
            is_before = any(one.key == link.target and one.by is link for one in values)
            if first and is_before and not self._comes_by(put, put, at):
                # From the second pass on, what was put there in the pass before is spent.
                yield at, first
            if link.target in keys:
                # It is spent after it was put there.
                found = [at, *ends]
                again = [put, *ends]
                if not any(self._comes_by(put, one, at) for one in again):
                    yield from ((one, every) for one in found)
            elif (
                link.source in keys
                and self._paths.leads(at, put, link.source)
                and self._paths.is_certain(put, link.source, [at])
            ):
                yield from ((one, every) for one in (put, *ends))

    def put_at(self, every: Key) -> list[Point]:
        """Return where the items of a container that is filled in one place are put into it."""
        return [one.link.point for one in self._fillings if one.every == every]

    def _comes_by(self, start: Point, end: Point, without: Point) -> bool:
        """Tell whether a way leads on from one point to another, and not through a third."""
        return any(
            self._paths.comes_to(one, end, [without])
            for one in (*start.next, *start.maybe)
            if one is not without
        )

    @cached_property
    def _fillings(self) -> list[_Filling]:
        found = []
        for link in self._graph.links:
            for container in prefixes(link.target):
                if (
                    container[0] == "item"
                    and isinstance(container[2], Passed | tuple)
                    and self._is_filled_at(container[1], link.point)
                ):
                    every = item_of(container[1], EACH)
                    key = replaced(link.target, container, every)
                    ends = self._ends_of(container[1], link.point)
                    first = None
                    if link.point in self._graph.put_at.get(item_of(container[1], -1), ()):
                        first = replaced(link.target, container, item_of(container[1], 0))
                    if key is not None:
                        found.append(_Filling(link, key, first, ends))
        return found

    def _is_filled_at(self, container: Key, at: Point) -> bool:
        """Tell whether all that a container ever holds is put into it at one point."""
        is_private = ("name", root(container)) in self._graph.private and all(
            node in self._graph.kept
            for node in self._graph.of_node
            if isinstance(node, IndexExpr) and key_of(node) == container
        )
        ends = self._ends_of(container, at)
        return (
            is_private
            and self._is_new(container)
            and [at] == [one for one in self._graph.points if self._fills(one, container, ends)]
        )

    def _fills(self, point: Point, container: Key, ends: list[Point]) -> bool:
        return point not in ends and any(
            stored[0] == "item"
            and stored[2] is not SHUFFLE
            and not self._graph.are_apart(stored[1], container)
            for stored in point.stores
        )

    def _ends_of(self, container: Key, at: Point) -> list[Point]:
        """Return the ends of the loops that are taken to come to all items of a container."""
        return [
            one
            for one in self._graph.points[at.index + 1 :]
            if one.loop_end and item_of(container, None) in one.stores
        ]

    def _is_new(self, container: Key) -> bool:
        """Tell whether a container is empty wherever it is made."""
        made = self._graph.assigned.get(container, [])
        if container[0] == "item" and not made:
            outer = self._graph.assigned.get(container[1], [])
            return bool(outer) and all(_is_empty_at(one, container[2]) for one in outer)
        return bool(made) and all(map(_is_empty, made))


def _is_empty(made: Expression | None) -> bool:
    match made:
        case ListExpr(items=[]) | DictExpr(items=[]):
            return True
        case CallExpr(callee=RefExpr(fullname=name), args=args, arg_names=names):
            given = [one for one, keyword in zip(args, names, strict=True) if keyword is None]
            if name == "collections.defaultdict":
                given = given[1:]
            return name in QUEUES or (name in _MAKERS and all(map(_is_empty, given)))
    return False


def _is_empty_at(made: Expression | None, index: object) -> bool:
    """Tell whether a new container is empty that stands in a new dict under an index."""
    match made:
        case CallExpr(callee=RefExpr(fullname="collections.defaultdict"), args=[maker]):
            return isinstance(maker, RefExpr) and maker.fullname in _MAKERS
        case DictExpr(items=pairs):
            held = [value for key, value in pairs if _may_be(key, index)]
            return len(held) == 1 and _is_empty(held[0])
    return False


def _may_be(key: Expression | None, index: object) -> bool:
    """Tell whether a key of a dict that is written down may be an index."""
    return key.value == index if isinstance(key, IntExpr | StrExpr) else True
