"""Questions to a control-flow graph: whether a way leads from a move to a use."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from mypy.nodes import (
    CallExpr,
    ComparisonExpr,
    Expression,
    MemberExpr,
    NameExpr,
    OpExpr,
    UnaryExpr,
)

from tapetensor.mypy_plugin.moves.effects import Effects
from tapetensor.mypy_plugin.moves.graph import Graph
from tapetensor.mypy_plugin.moves.keys import Key, key_of, mentions, prefixes, root
from tapetensor.mypy_plugin.moves.points import Link, Point, Region


class Change(NamedTuple):
    """The keys that may name another value, or the same one changed, after some points.

    Attributes:
        keys: what is assigned to there, or given to code that may change it.
        anywhere: whether code runs there that may change attributes, items and globals.
    """

    keys: set[Key]
    anywhere: bool


class Way(NamedTuple):
    """What is asked for: a way from a move to a use.

    Attributes:
        came: the move, and where else execution came by before.
        use: the use.
        keys: what has to keep its value.
        names: by what a decision may ask for the value.
    """

    came: tuple[Point, ...]
    use: Point
    keys: tuple[Key, ...]
    names: tuple[Key, ...]


class Paths:
    """Answers for one graph."""

    def __init__(self, graph: Graph, effects: Effects) -> None:
        self._graph = graph
        self._effects = effects
        # Each move has what tells whether it was executed, and the points that are reached without.
        self._doubts: dict[Point, tuple[Change, set[Point]]] = {}
        # This holds for one question only, for mypy comes to know more types.
        self._changes: dict[Region, Change] = {}
        # Each link has the points to which a new value of one of its keys gets.
        self._overtaken: dict[Link, set[Point]] = {}
        # Whether each pass of the loop that begins at a decision gives a key a new value.
        self._renewed: dict[tuple[Point, Key], bool] = {}

    def leads(
        self,
        move: Point,
        use: Point,
        *keys: Key,
        since: Point | None = None,
        names: Collection[Key] = (),
    ) -> bool:
        """Tell whether the value that `move` took is certainly the one that `use` may find.

        Where a decision on the way may go hand in hand with the decision to move at all, as in
        ``if first: y = x.exp()`` and later ``if not first: y = x.sin()``, the answer is no.

        Args:
            move: where the way begins.
            use: where it ends.
            keys: what has to keep its value.
            since: where execution came by before, if a decision may go hand in hand with that, too.
            names: by which else a decision may ask for the value.
        """
        self._changes.clear()
        # The search goes on from both ends in turns: a chain of branches has many pairs, and either
        # the new value right after the move or the decision around the use ends it soon.
        came = (move,) if since is None else (move, since)
        way = Way(came, use, keys, (*keys, *names))
        both = zip(self._onwards(way), self._back(way), strict=False)
        return any(found for steps in both for found in steps)

    def _onwards(self, way: Way) -> Iterator[bool]:
        """Go from the move on; yield for each point whether it is the use."""
        seen: set[Point] = set()
        pending = self._after(way.came[0])
        while pending:
            one = pending.pop()
            yield one is way.use
            if one not in seen:
                seen.add(one)
                pending += self._ways(one, way)

    def _back(self, way: Way) -> Iterator[bool]:
        """Go back from the use; yield for each point whether it is right after the move."""
        starts = self._after(way.came[0])
        seen = {way.use}
        pending = [way.use]
        while pending:
            one = pending.pop()
            yield one in starts
            for before in self._graph.before[one]:
                if before not in seen and one in self._ways(before, way):
                    seen.add(before)
                    pending.append(before)

    def _ways(self, one: Point, way: Way) -> list[Point]:
        """Return where execution may go on from a point between a move and a use."""
        came, keys = way.came, way.keys
        if self._ends(one) or any(self.loses(one, key) for key in keys):
            return []
        if (answer := _answer(one.test, way.names)) is not None:
            return one.next[:1] if answer else one.next[1:]
        if one.differs:
            return one.next[:1]
        for move in came:
            if one.tests and self._is_in_doubt(one, move) and self._matters(one, way.use, keys):
                return self._same_way(one, move)
            if one.passes in move.regions and self._may_be_over(one):
                return one.next[1:]
        return one.next[:1] if self._is_renewed_by(one, came[0], keys) else one.next

    def _is_renewed_by(self, one: Point, move: Point, keys: tuple[Key, ...]) -> bool:
        """Tell whether a decision leads into a loop that gives a key a new value in each pass.

        That the loop has no pass is possible, and seldom meant.
        """
        if one.passes is None or one.passes in move.regions:
            return False
        for key in keys:
            if (one, key) not in self._renewed:
                stores = {
                    other
                    for other in self._graph.within(one.passes)
                    if self._graph.kills(other, key)
                }
                self._renewed[one, key] = bool(stores) and not self.comes_to(
                    one.next[0], one, stores
                )
            if self._renewed[one, key]:
                return True
        return False

    def is_certain(self, use: Point, key: Key, moves: Iterable[Point]) -> bool:
        """Tell whether every way to `use` goes through one of the moves."""
        stores = [one for one in self._graph.points if self._graph.kills(one, key)]
        return use not in self._reached([use.fragment.entry, *stores], set(moves))

    def is_rebound_after(self, point: Point, key: Key) -> bool:
        """Tell whether the key may get another value after a point."""
        return any(self._graph.kills(one, key) for one in self._reached(self._after(point), set()))

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
                skips = one.skipped_by is None or self._effects.suppresses(one.skipped_by)
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
        if point.suppressor is not None and self._effects.suppresses(point.suppressor):
            return True
        if point.without_else is not None and self._effects.is_exhaustive(point.without_else):
            return True
        return isinstance(point.node, CallExpr) and self._effects.never_returns(point.node)

    def holds(self, link: Link, at: Point) -> bool:
        """Tell whether the two keys of a link surely mean one value at a point, by every way.

        The point is in the code of the link.
        """
        keys = (link.target, link.source)
        if at in self._overtaken_of(link):
            return False
        changing = [
            one
            for one in self._graph.points
            if one is not link.point
            and not all(self._effects.is_fixed(key, one) for key in keys)
            and self._effects.may_change(one)
        ]
        return not changing or at not in self._reached(_following(changing), {link.point})

    def _overtaken_of(self, link: Link) -> set[Point]:
        """Return the points to which a link does not hold for what is assigned to its keys.

        What there is to know of types does not matter to it, so that it is worked out once.
        """
        if link not in self._overtaken:
            stores = [
                one
                for one in self._graph.points
                if one.stores
                and one is not link.point
                and (self._graph.kills(one, link.target) or self._graph.kills(one, link.source))
            ]
            starts = _following(stores)
            variable, code = root(link.target), link.point.fragment
            if variable in code.arguments or variable not in code.bound:
                starts.append(code.entry)
            self._overtaken[link] = self._reached(starts, {link.point})
        return self._overtaken[link]

    def is_met_first(self, link: Link, at: Point) -> bool:
        """Tell whether a link is sure to hold at a point in the first pass of the loops there.

        That they have no pass is possible, and seldom meant.
        """
        if link.after is not None or at.fragment is not link.point.fragment:
            return False
        if not {*link.point.regions} <= {*at.regions}:
            return False
        around = [one for one in at.regions if one not in link.point.regions]
        if not all(one.loop for one in around):
            return False
        seen: set[Point] = set()
        pending = [*link.point.next]
        while pending:
            one = pending.pop()
            if one is at or one is link.point or one in seen:
                continue
            if any(self.loses(one, key) for key in (link.target, link.source)):
                return False
            seen.add(one)
            is_first = one.passes is not None and one.passes in around
            pending += one.next[:1] if is_first else [*one.next, *one.maybe]
        return True

    def absent(self, key: Key) -> set[Point]:
        """Return where execution goes on when what a key names is None."""
        ways = [
            one.next[1:] if _is_there(one.test, (key,)) else one.next[:1]
            for one in self._graph.points
            if _is_there(one.test, (key,)) is not None
        ]
        return {way for several in ways for way in several}

    def comes_to(self, start: Point, end: Point, without: Iterable[Point] = ()) -> bool:
        """Tell whether a way leads from one point to another, and not through certain ones."""
        return end in self._reached([start], set(without))

    def reached_from(self, points: Iterable[Point]) -> set[Point]:
        """Return what may be executed after some points."""
        return self._reached(_following(points), set())

    def loses(self, point: Point, key: Key) -> bool:
        """Tell whether the key may name another value after a point."""
        if self._graph.kills(point, key):
            return True
        return not self._effects.is_fixed(key, point) and self._effects.may_change(point)

    def _is_in_doubt(self, branch: Point, move: Point) -> bool:
        """Tell whether a decision may depend on whether a move was executed."""
        if move not in self._doubts:
            entangled = self._entangled(move)
            start = [move.fragment.entry]
            without = self._reached(start, {move}) if move.regions else set()
            self._doubts[move] = entangled, without
        entangled, without = self._doubts[move]
        return branch in without and self._reads(branch, branch.tests or (), entangled)

    def _reads(self, branch: Point, tests: Iterable[Key], change: Change) -> bool:
        """Tell whether a decision reads what has changed."""
        return any(
            one in change.keys or (change.anywhere and not self._effects.is_local(one, branch))
            for one in tests
        )

    def _changed_in(self, region: Region) -> Change:
        if region not in self._changes:
            points = self._graph.within(region)
            keys = {part for one in points for key in one.stores for part in prefixes(key)}
            changing = [one.node for one in points if self._effects.may_change(one)]
            keys.update(*[mentions(node) for node in changing if isinstance(node, CallExpr)])
            self._changes[region] = Change(keys, anywhere=bool(changing))
        return self._changes[region]

    def _entangled(self, move: Point) -> Change:
        """Return all from which one may know whether a move was executed."""
        if not move.regions:
            return Change(set(), anywhere=False)
        # The outermost region holds the others.
        changed, anywhere = self._changed_in(move.regions[0])
        known = changed.union(*(one.tests for one in move.regions), *self._left_out_by(move))
        derived = [one for one in self._graph.points if one.stores and one.sources]
        grown = True
        while grown:
            grown = False
            for one in derived:
                if not known.issuperset(one.stores) and not known.isdisjoint(one.sources):
                    known.update(one.stores)
                    grown = True
            for link in self._graph.links:
                if link.target in known and link.source not in known:
                    known.add(link.source)
                    grown = True
        return Change(known, anywhere)

    def _left_out_by(self, move: Point) -> Iterator[frozenset[Key]]:
        """Yield what the decisions before a move read that may lead on without it: `break`."""
        for one in self._graph.points[move.regions[0].start : move.index]:
            is_beside = one.region is not None and one.region not in move.regions
            if one.tests and one.region is not None and is_beside:
                within = self._graph.within(one.region)
                yield one.tests if any(other.abrupt for other in within) else frozenset()

    def _matters(self, branch: Point, use: Point, keys: tuple[Key, ...]) -> bool:
        """Tell whether it matters to the use which way a decision goes."""
        if branch.region is None:
            return True
        return any(
            one is use
            or one.abrupt
            or any(self._graph.kills(one, key) for key in keys)
            or self._ends(one)
            for one in self._graph.within(branch.region)
        )

    def _same_way(self, branch: Point, move: Point) -> list[Point]:
        """Return the way that led to the move, if the decision is sure to be the same again."""
        if branch.region not in move.regions and branch.tests is not None:
            for one in self._graph.points:
                if one.region in move.regions and self._asks_again(branch, one):
                    return [
                        same
                        for same, way in zip(branch.next, one.next, strict=False)
                        if way.index <= move.index < _end(one, way)
                    ]
        if branch.region not in move.regions or branch.tests is None:
            return []
        if not branch.repeats:
            return []
        loops = [one for one in move.regions if one.loop]
        if loops and self._reads(branch, branch.tests, self._changed_in(loops[0])):
            return []
        return [way for way in branch.next if way.index <= move.index < _end(branch, way)]

    def _asks_again(self, branch: Point, earlier: Point) -> bool:
        """Tell whether a decision is one that was made before, of variables that are the same."""
        if branch.question is None or branch.question != earlier.question:
            return False
        tests = branch.tests or frozenset()
        started = min([earlier.index, *[one.start for one in earlier.regions if one.loop]])
        return all(self._effects.is_local(key, branch) for key in tests) and not any(
            self._graph.kills(one, key) for one in self._graph.points[started:] for key in tests
        )

    def _may_be_over(self, decision: Point) -> bool:
        """Tell whether what a `while` loop does once may be all that it is to do.

        A counter says that there are several passes; what it looks for and finds does not.
        """
        loop = decision.passes
        if loop is None or decision.runs is not None:
            return False
        steps = [one for one in self._graph.within(loop) if one.counts]
        counted = {key for one in steps for key in one.stores}
        others = loop.tests - counted
        return self._reads(self._graph.points[loop.start], others, self._changed_in(loop))


def _answer(test: Expression | None, names: tuple[Key, ...]) -> bool | None:
    """Return what a test says of a spent tensor of one of these names; None if that is not known.

    It is not None, and owns no tape.
    """
    match test:
        case ComparisonExpr():
            return _is_there(test, names)
        case MemberExpr(expr=asked, name="owns_tape") if key_of(asked) in names:
            return False
        case UnaryExpr(op="not", expr=inner):
            answer = _answer(inner, names)
            return None if answer is None else not answer
        case OpExpr(op="and" | "or" as op, left=left, right=right):
            answers = {_answer(left, names), _answer(right, names)}
            is_or = op == "or"
            return is_or if is_or in answers else None if None in answers else not is_or
    return None


def _is_there(test: Expression | None, names: tuple[Key, ...]) -> bool | None:
    """Return what a test says of a tensor of one of these names that is not None."""
    match test:
        case ComparisonExpr(
            operators=["is" | "is not" as op],
            operands=[asked, NameExpr(fullname="builtins.None")],
        ) if key_of(asked) in names:
            return op == "is not"
    return None


def _following(points: Iterable[Point]) -> list[Point]:
    """Return where execution may come to right after some points."""
    return [after for one in points for after in (*one.next, *one.maybe)]


def _end(branch: Point, way: Point) -> int:
    later = [one.index for one in branch.next if one.index > way.index]
    region_end = branch.region.end if branch.region is not None else way.index
    return min(later, default=region_end)
