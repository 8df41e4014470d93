"""Questions to a control-flow graph: whether a way leads from a move to a use."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from mypy.nodes import CallExpr, Expression

from tapetensor.mypy_plugin.moves.graph import Graph, Point, Region
from tapetensor.mypy_plugin.moves.keys import Key, prefixes, root


class Paths:
    """Answers for one graph.

    Args:
        graph: the graph.
        never_returns: whether a call is known not to return.
        suppresses: whether a context manager may swallow exceptions.
        harmless: whether a call is known to change no attribute, item or global variable.
    """

    def __init__(
        self,
        graph: Graph,
        never_returns: Callable[[CallExpr], bool],
        suppresses: Callable[[Expression], bool],
        harmless: Callable[[CallExpr], bool],
    ) -> None:
        self._graph = graph
        self._never_returns = never_returns
        self._suppresses = suppresses
        self._harmless = harmless
        # By move: what tells whether it was executed, and the points that may be reached without.
        self._doubts: dict[Point, tuple[set[Key], set[Point]]] = {}

    def leads(self, move: Point, use: Point, key: Key) -> bool:
        """Tell whether the value that `move` took is certainly the one that `use` may find.

        Where a decision on the way may go hand in hand with the decision to move at all, as in
        ``if first: y = x.exp()`` and later ``if not first: y = x.sin()``, the answer is no.
        """
        seen: set[Point] = set()
        pending = self._after(move)
        while pending:
            one = pending.pop()
            if one in seen:
                continue
            seen.add(one)
            if one is use:
                return True
            if self._loses(one, key) or self._ends(one):
                continue
            if one.tests and self._is_in_doubt(one, move) and self._matters(one, use, key):
                pending += self._same_way(one, move)
            else:
                pending += one.next
        return False

    def is_certain(self, use: Point, key: Key, moves: Iterable[Point]) -> bool:
        """Tell whether every way to `use` goes through one of the moves."""
        stores = [one for one in self._graph.points if one.kills(key)]
        return use not in self._reached([use.fragment.entry, *stores], set(moves))

    def is_rebound_after(self, point: Point, key: Key) -> bool:
        """Tell whether the key may get another value after a point."""
        return any(one.kills(key) for one in self._reached(self._after(point), set()))

    def _reached(self, starts: list[Point], without: set[Point]) -> set[Point]:
        """Return the points that may be reached, by sure ways or others, not through `without`."""
        seen = set(starts)
        pending = [*starts]
        while pending:
            one = pending.pop()
            if one in without or self._ends(one):
                # An exception in the move itself leaves the tensor as it was.
                following = one.maybe if one in without else []
            else:
                skips = one.skipped_by is None or self._suppresses(one.skipped_by)
                following = [*one.next, *(one.maybe if skips else ())]
            for other in following:
                if other not in seen:
                    seen.add(other)
                    pending.append(other)
        return seen

    def _after(self, point: Point) -> list[Point]:
        return [] if self._ends(point) else [*point.next]

    def _ends(self, point: Point) -> bool:
        """Tell whether there is no sure way on from a point."""
        if point.suppressor is not None and self._suppresses(point.suppressor):
            return True
        if point.without_else is not None and point.without_else.unreachable_else:
            return True
        return isinstance(point.node, CallExpr) and self._never_returns(point.node)

    def _loses(self, point: Point, key: Key) -> bool:
        """Tell whether the key may name another value after a point."""
        if point.kills(key):
            return True
        enters_or_leaves = (point.suppressor or point.skipped_by) is not None
        if not isinstance(point.node, CallExpr) and not enters_or_leaves:
            return False
        variable = root(key)
        is_local = (
            key[0] == "name"
            and variable in point.fragment.bound
            and variable.name not in self._graph.shared
        )
        if is_local:
            return False
        return not isinstance(point.node, CallExpr) or not self._harmless(point.node)

    def _is_in_doubt(self, branch: Point, move: Point) -> bool:
        """Tell whether a decision may depend on whether a move was executed."""
        if move not in self._doubts:
            entangled = self._entangled(move)
            start = [move.fragment.entry]
            self._doubts[move] = entangled, self._reached(start, {move}) if entangled else set()
        entangled, without = self._doubts[move]
        return branch in without and not entangled.isdisjoint(branch.tests or ())

    def _entangled(self, move: Point) -> set[Key]:
        """Return all from which one may know whether a move was executed."""
        if not move.regions:
            return set()
        known = self._graph.bound_in(move.regions)
        for region in move.regions:
            known |= region.tests
        derived = [one for one in self._graph.points if one.stores and one.sources]
        grown = True
        while grown:
            grown = False
            for one in derived:
                if not known.issuperset(one.stores) and not known.isdisjoint(one.sources):
                    known.update(one.stores)
                    grown = True
        return known

    def _matters(self, branch: Point, use: Point, key: Key) -> bool:
        """Tell whether it matters to the use which way a decision goes."""
        if branch.region is None:
            return True
        return any(
            one is use or one.abrupt or one.kills(key) or self._ends(one)
            for one in self._graph.within(branch.region)
        )

    def _same_way(self, branch: Point, move: Point) -> list[Point]:
        """Return the way that led to the move, if the decision is sure to be the same again."""
        if branch.region not in move.regions or branch.tests is None:
            return []
        around: tuple[Region, ...] = tuple(one for one in move.regions if one.loop)
        changing = self._graph.bound_in(around)
        if any(part in changing for test in branch.tests for part in prefixes(test)):
            return []
        if any(test[0] != "name" for test in branch.tests) and self._calls_something(around):
            return []
        if not branch.repeats:
            return []
        return [way for way in branch.next if way.index <= move.index < _end(branch, way)]

    def _calls_something(self, regions: Iterable[Region]) -> bool:
        """Tell whether code runs in the regions that may change attributes."""
        points = [one for region in regions for one in self._graph.within(region)]
        return any(
            isinstance(one.node, CallExpr) and not self._harmless(one.node) for one in points
        )


def _end(branch: Point, way: Point) -> int:
    later = [one.index for one in branch.next if one.index > way.index]
    region_end = branch.region.end if branch.region is not None else way.index
    return min(later, default=region_end)
