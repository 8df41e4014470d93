"""What a loop over a container does to all of its items, and to the first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from tapetensor.mypy_plugin.moves.aliases import Aliases, Value
from tapetensor.mypy_plugin.moves.graph import Graph
from tapetensor.mypy_plugin.moves.keys import EACH, Key, item_of, prefixes, replaced
from tapetensor.mypy_plugin.moves.paths import Paths
from tapetensor.mypy_plugin.moves.points import Pass, Point


class Loops:
    """Answers for the loops of one graph."""

    def __init__(self, graph: Graph, paths: Paths, aliases: Aliases) -> None:
        self._graph = graph
        self._paths = paths
        self._aliases = aliases

    def first_items(self, values: list[Value], point: Point) -> Iterator[Value]:
        """Yield the items that a step is certain to work on in the first pass of a loop, or in any.

        One that comes to all items comes to those of which the program speaks.
        """
        for one, key in self._loops_of([value.key for value in values], point):
            named = self._graph.indices if one.whole and one.count is None else []
            for index in dict.fromkeys([*([] if one.first is None else [one.first]), *named]):
                item = replaced(key, one.item, item_of(one.item[1], index))
                if item is not None:
                    yield Value(item, None, one)

    def done_at(self, values: list[Key], point: Point) -> Iterator[tuple[Point, Value]]:
        """Yield where all items were worked on, if a step is certain in each pass of a loop.

        That is where the loop comes to its end: one that is left early has not met all.
        """
        for one, key in self._loops_of(values, point):
            met: Sequence[object] = (EACH,) if one.count is None else range(one.count)
            for index in met if one.whole else ():
                item = replaced(key, one.item, item_of(one.item[1], index))
                if one.end and item is not None and not self._renews(one, item):
                    yield one.end, Value(item, None, one)

    def _renews(self, loop: Pass, every: Key) -> bool:
        """Tell whether a loop may put other items into the container."""
        return any(
            self.is_within(one, loop) and self._graph.kills(one, every)
            for one in self._graph.points
        )

    def is_within(self, point: Point, loop: Pass) -> bool:
        """Tell whether a point is in the body of a loop."""
        return loop.end is not None and loop.start.index < point.index < loop.end.index

    def _loops_of(self, values: list[Key], point: Point) -> Iterator[tuple[Pass, Key]]:
        """Yield the loops over whose items a step works in every pass, with what it works on."""
        for one in self._graph.passes:
            item = self._aliases.canonical(one.item)
            keys = [] if item is None else [key for key in values if item in prefixes(key)]
            if item is not None and item != one.item:
                one = replace(one, item=item)
            if (
                keys
                and self._paths.comes_to(one.body, one.start)
                and point.fragment is one.start.fragment
                and not self._paths.comes_to(one.body, one.start, [point])
            ):
                yield from ((one, key) for key in keys)
