"""What a loop over a container does to all of its items, and to the first."""

from __future__ import annotations

from collections.abc import Iterator

from tapetensor.mypy_plugin.moves.aliases import Value
from tapetensor.mypy_plugin.moves.graph import Graph, Pass, Point
from tapetensor.mypy_plugin.moves.keys import EACH, Key, item_of
from tapetensor.mypy_plugin.moves.paths import Paths


class Loops:
    """Answers for the loops of one graph."""

    def __init__(self, graph: Graph, paths: Paths) -> None:
        self._graph = graph
        self._paths = paths

    def first_items(self, values: list[Value], point: Point) -> Iterator[Value]:
        """Yield the items that a step is certain to work on in the first pass of a loop."""
        for one in self._loops_of([value.key for value in values], point):
            if one.first:
                yield Value(item_of(one.base, 0))

    def done_at(self, values: list[Key], point: Point) -> Iterator[tuple[Point, Key]]:
        """Yield where all items were worked on, if a step is certain in each pass of a loop.

        That is where the loop comes to its end: one that is left early has not met all.
        """
        for one in self._loops_of(values, point):
            if one.whole:
                yield one.start, item_of(one.base, EACH)

    def _loops_of(self, values: list[Key], point: Point) -> Iterator[Pass]:
        """Yield the loops over whose items a step works in every pass."""
        for one in self._graph.passes:
            if item_of(one.base, one.index) in values and self._is_in_each(one, point):
                yield one

    def _is_in_each(self, loop: Pass, point: Point) -> bool:
        return point.fragment is loop.start.fragment and self._paths.comes_by(
            loop.body, loop.start, point
        )
