"""What the calls and operators of a function do to tensors: steps, each at a point of its graph."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from mypy.nodes import FuncItem, MypyFile, Node

from tapetensor.mypy_plugin.moves.aliases import Aliases, Value
from tapetensor.mypy_plugin.moves.effects import Effects
from tapetensor.mypy_plugin.moves.gathered import Gathered
from tapetensor.mypy_plugin.moves.keys import Key, is_constant, root
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
        since: where it was moved, then.
    """

    op: str
    node: Node
    point: Point
    key: Key
    values: list[Value]
    moves: bool
    within: FuncItem | None = None
    renamed: bool = False
    since: Point | None = None


class Steps:
    """Makes the steps of an outermost function, or of the top level of a module."""

    def __init__(self, checker: Any, unit: FuncItem | MypyFile) -> None:
        self.graph = graph_of(unit)
        self.effects = Effects(checker, self.graph)
        self.paths = Paths(self.graph, self.effects)
        self.aliases = Aliases(self.graph, self.paths, self.effects)
        self.loops = Loops(self.graph, self.paths, self.aliases)
        self.gathered = Gathered(self.graph, self.paths)

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
        if step.moves:
            spent = [one for one in step.values if not one.loop and is_constant(one.key)]
            for later, key in self.gathered.filled_with(step.values, step.point):
                yield (again := self._named_anew(step, later, key))
                yield from self._put_elsewhere(again, [Value(key)])
            yield from self._put_elsewhere(step, spent)

    def _named_anew(self, step: Step, at: Point, key: Key) -> Step:
        since = step.since or step.point
        return step._replace(point=at, values=[Value(key)], renamed=True, since=since)

    def _put_elsewhere(self, step: Step, spent: list[Value]) -> Iterator[Step]:
        """Yield what gets another name, or is put into a container, when its tape is gone."""
        for link in self.graph.links:
            around = [each for each in step.point.regions if each not in link.point.regions]
            if link.point.fragment is not step.point.fragment or link.after is not None:
                continue
            if not all(region.loop for region in around):
                continue
            is_result = link.node in self.graph.looked_at
            for one in spent:
                if around and self.is_doubtful(one, step.point):
                    continue
                same, new = self.aliases.renamed(one.key, link) or (None, None)
                if (
                    new
                    and same
                    # What a call returns is what something was when it returned.
                    and not (is_result and self.paths.loses(link.point, same))
                    and self.paths.leads(step.point, link.point, same, since=step.since)
                ):
                    yield self._named_anew(step, link.point, new)

    def is_doubtful(self, value: Value, point: Point) -> bool:
        """Tell whether a decision before a point is needed for a value to be named there."""
        return value.by is not None and not self.paths.is_met_first(value.by, point)

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

    def is_spent(self, key: Key, at: Point, moves: set[Point]) -> bool:
        """Tell whether what a key names at a point is sure to have been moved by then.

        What has no value yet is not asked for, nor are the items of what is empty.
        """
        starts = self.gathered.put_at(key)
        if not starts:
            starts = [one for one in self.graph.points if self.paths.loses(one, key)]
            if root(key) in at.fragment.arguments or root(key) not in at.fragment.bound:
                starts.append(at.fragment.entry)
        met = moves | set(self._loops_that_move(moves, starts))
        return not any(self.paths.comes_to(one, at, met) for one in starts)

    def _loops_that_move(self, moves: set[Point], starts: list[Point]) -> Iterator[Point]:
        """Yield where the loops decide to go on that move in each pass, as they are taken to do."""
        for region in {one for move in moves for one in move.regions if one.loop}:
            head, decision, *body = self.graph.within(region)
            inside = [body[0], *[one for one in starts if region in one.regions]] if body else []
            if decision.runs is not None and not any(
                self.paths.comes_to(one, head, moves) for one in inside
            ):
                yield decision

    def returns_only_by(self, points: set[Point]) -> bool:
        """Tell whether the function returns, and on every way to there it comes by one of these."""
        entry = self.graph.fragments[0].entry
        ends = [one for one in self.graph.ends if self.paths.comes_to(entry, one)]
        return bool(ends) and not any(self.paths.comes_to(entry, one, points) for one in ends)
