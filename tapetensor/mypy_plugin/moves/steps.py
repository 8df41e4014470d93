"""What the calls and operators of a function do to tensors: steps, each at a point of its graph."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from mypy.nodes import FuncItem, MypyFile, Node

from tapetensor.mypy_plugin.moves.aliases import Aliases, Value
from tapetensor.mypy_plugin.moves.effects import Effects
from tapetensor.mypy_plugin.moves.keys import Key, is_constant, replaced, root
from tapetensor.mypy_plugin.moves.loops import Loops
from tapetensor.mypy_plugin.moves.paths import Paths
from tapetensor.mypy_plugin.moves.points import Point
from tapetensor.mypy_plugin.moves.statements import graph_of


class Place(NamedTuple):
    """A tensor or tape that a step works on.

    Attributes:
        spelled: how the program spells it.
        key: the key under which it is followed.
        within: the function of this file that works on it, if it is not the step itself.
        left: whether it is what the key names after the step, and is spent then.
    """

    spelled: Key
    key: Key
    within: FuncItem | None = None
    left: bool = False


class Step(NamedTuple):
    """The effect of a call or operator on one tensor or tape.

    Attributes:
        op: the name of the call or operator, as errors say it.
        node: where it is executed.
        point: the same in the graph, where it may be more than once (as `finally` blocks are).
        key: the tensor or tape, as spelled.
        values: the keys that name it there, under which it is followed.
        moves: whether its tape is taken, or it is only refused when spent.
        within: the function defined in this one that does it, when it is called.
        renamed: whether what is said is that the value, moved before, gets another name.
    """

    op: str
    node: Node
    point: Point
    key: Key
    values: list[Value]
    moves: bool
    within: FuncItem | None = None
    renamed: bool = False


class Steps:
    """Makes the steps of an outermost function, or of the top level of a module."""

    def __init__(self, checker: Any, unit: FuncItem | MypyFile) -> None:
        self.graph = graph_of(unit)
        self.effects = Effects(checker, self.graph)
        self.paths = Paths(self.graph, self.effects)
        self.aliases = Aliases(self.graph, self.paths, self.effects)
        self.loops = Loops(self.graph, self.paths)

    def made(
        self, node: Node, op: str, moves: Iterable[Place], uses: Iterable[Place]
    ) -> list[Step]:
        """Return the steps of a call or operator."""
        moves = [*moves]
        return [
            Step(
                op,
                node,
                point,
                place.spelled,
                [Value(place.key)] if place.left else self._values(place, point),
                place in moves,
                place.within,
                place.left,
            )
            for point in self.graph.of_node[node]
            for place in dict.fromkeys([*moves, *uses])
        ]

    def _values(self, place: Place, point: Point) -> list[Value]:
        """Return the keys that name what a place does at a point."""
        # What the call returned last is forgotten as it returns again.
        found = [
            one for one in self.aliases.values(place.key, point) if root(one.key) is not point.node
        ]
        return [*found, *self.loops.first_items(found, point)]

    def followed_on(self, step: Step) -> Iterator[Step]:
        """Yield what a step does to other values than those that it names."""
        values = [one.key for one in step.values if not one.by and not one.loop]
        for point, value in self.loops.done_at(values, step.point):
            yield step._replace(point=point, values=[value])
        if not step.moves:
            return
        values = [one.key for one in step.values if not one.loop and is_constant(one.key)]
        for link in self.graph.links:
            for key in values:
                target = replaced(key, link.source, link.target)
                # What it took the tape of gets another name later, or is put into a container.
                if (
                    target is not None
                    and link.point.fragment is step.point.fragment
                    and step.point.regions == link.point.regions[: len(step.point.regions)]
                    and self.paths.leads(step.point, link.point, key)
                ):
                    yield step._replace(point=link.point, values=[Value(target)], renamed=True)

    def is_as_given(self, key: Key, point: Point) -> bool:
        """Tell whether a key names at a point what it named when the function was called.

        Of an attribute or item, whether it does so when the function returns, too.
        """
        lost = [one for one in self.graph.points if self.paths.loses(one, key)]
        if point in self.paths.reached_from(lost):
            return False
        return key[0] == "name" or self.stays(key, point)

    def stays(self, key: Key, point: Point) -> bool:
        """Tell whether a key names when the function returns what it names after a point."""
        later = self.paths.reached_from([point])
        return not any(one in later and self.paths.loses(one, key) for one in self.graph.points)

    def returns_only_by(self, points: set[Point]) -> bool:
        """Tell whether the function returns, and on every way to there it comes by one of these."""
        entry = self.graph.fragments[0].entry
        ends = [one for one in self.graph.ends if self.paths.comes_to(entry, one)]
        return bool(ends) and not any(self.paths.comes_to(entry, one, points) for one in ends)
