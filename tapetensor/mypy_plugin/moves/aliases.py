"""Two names of one tensor: after ``y = x`` a move of either spends both."""

from __future__ import annotations

from collections import Counter

from tapetensor.mypy_plugin.moves.graph import Graph, Point, Region
from tapetensor.mypy_plugin.moves.keys import Key, root


class Aliases:
    """The names of a function that stand for one value for as long as both exist.

    Only what is certain counts: both names are assigned once, and in a loop in the same pass of it.
    So does a tuple display: after ``pair = x, y``, ``pair[0]`` is another name of x.
    """

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._assigned: Counter[Key] = Counter()
        self._bound_at: dict[Key, Point] = {}
        self._arguments = {one for each in graph.fragments for one in each.arguments}
        for point in graph.points:
            for key in point.stores:
                self._assigned[key] += 1
                self._bound_at[key] = point

    def value(self, key: Key, at: Point) -> Key:
        """Return the key under which the value is followed that a key means at a point."""
        # Each name is assigned before what is made of it, so this comes to an end; a bound all the
        # same, for code that could never run.
        for _ in range(len(self._graph.copies)):
            source = self._source(key, at)
            if source is None:
                break
            key = source
        return key

    def _source(self, key: Key, at: Point) -> Key | None:
        """Return what the key is another name of."""
        name: Key = ("name", root(key))
        copied = self._graph.copies.get(name)
        if copied is None or self._assigned[name] != 1:
            return None
        if isinstance(copied, list):
            # ("item", ("name", pair), 0): the first of a tuple display, and what is read from it.
            return self._item(key, name, copied, at)
        if not self._is_lasting(copied, name, at):
            return None
        return _replaced(key, name, copied)

    def _item(self, key: Key, name: Key, items: list[Key | None], at: Point) -> Key | None:
        for position, item in enumerate(items):
            for spelling in (position, position - len(items)):
                part: Key = ("item", name, spelling)
                replaced = None if item is None else _replaced(key, part, item)
                if replaced is not None and item is not None and self._is_lasting(item, name, at):
                    return replaced
        return None

    def _is_lasting(self, source: Key, name: Key, at: Point) -> bool:
        """Tell whether a name and what it was copied from mean one value at a point."""
        copy = self._bound_at[name]
        variable = root(source)
        if source[0] != "name" or variable not in copy.fragment.bound or self._is_shared(name):
            return False
        assignments = self._assigned[source] + (variable in self._arguments)
        if assignments != 1 or self._is_shared(source):
            return False
        bound = self._bound_at.get(source)
        around = () if bound is None else _loops(bound)
        if not around:
            return True
        return (
            _loops(copy) == around
            and at.fragment is copy.fragment
            and _loops(at)[: len(around)] == around
            and at.index > copy.index
        )

    def _is_shared(self, key: Key) -> bool:
        return root(key).name in self._graph.shared


def _loops(point: Point) -> tuple[Region, ...]:
    return tuple(one for one in point.regions if one.loop)


def _replaced(key: Key, part: Key, by: Key) -> Key | None:
    """Return the key with a part of it replaced, or None if it has no such part."""
    if key == part:
        return by
    if key[0] == "name":
        return None
    inner = _replaced(key[1], part, by)
    return None if inner is None else (key[0], inner, *key[2:])
