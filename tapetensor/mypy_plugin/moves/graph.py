"""The control-flow graph of a function: what may be executed after what.

Why not mypy's own flow analysis, the binder: it works on types, drops what happens within an
expression's branches and forgets a narrowing on *every* path once the variable is assigned on one.
A graph of our own answers exactly what is asked - does a way lead from this move to that use - for
`finally`, loops, comprehensions and lambdas too, and depends on mypy's syntax tree alone.
"""

from __future__ import annotations

from functools import cached_property

from mypy.nodes import Context, Expression, IfStmt, MypyFile, Node, Var

from tapetensor.mypy_plugin.moves.keys import Key, may_be, prefixes


class Fragment:
    """Code that runs as one: a module, a function, a lambda or a generator expression.

    Args:
        outer: the point that makes the closure in the fragment around it; None for the outermost.
    """

    def __init__(self, outer: Point | None) -> None:
        self.outer = outer
        self.bound: set[Var] = set()
        self.arguments: set[Var] = set()
        self.entry = Point(self, None, ())


class Region:
    """A statement or expression that decides whether, or how often, a part of it runs.

    Args:
        tests: what the decision reads.
        loop: whether a part may run several times.
        start: the number of the first point within.
    """

    def __init__(self, tests: frozenset[Key], start: int, *, loop: bool = False) -> None:
        self.tests = tests
        self.loop = loop
        self.start = start
        self.end = start


class Point:
    """One step of execution.

    Args:
        fragment: the code that it belongs to.
        node: the call, operator, return ... that is executed here, if it is one.
        regions: the regions around it, the outermost first.
    """

    __slots__ = (
        "abrupt",
        "counts",
        "foreign",
        "fragment",
        "index",
        "maybe",
        "next",
        "node",
        "region",
        "regions",
        "repeats",
        "runs",
        "skipped_by",
        "sources",
        "stores",
        "suppressor",
        "tests",
        "until",
        "without_else",
    )

    def __init__(
        self, fragment: Fragment, node: Node | None, regions: tuple[Region, ...], index: int = -1
    ) -> None:
        self.fragment = fragment
        self.node = node
        self.regions = regions
        self.index = index
        # Where execution goes on: surely possible, and perhaps (an exception, say), which is not
        # enough for an error but makes "was moved" a "may have been".
        self.next: list[Point] = []
        self.maybe: list[Point] = []
        # What gets a new value here, and what that is computed from.
        self.stores: tuple[Key, ...] = ()
        self.sources: frozenset[Key] = frozenset()
        # Whether that is arithmetic on the value before, as of a counter.
        self.counts = False
        # Code from elsewhere that runs here: that of a value (an iterator, what has its items
        # assigned to), or of whatever it may be, as at the start of a `with`.
        self.runs: Expression | None = None
        self.foreign = False
        # Of a branch: what the decision reads (None elsewhere), and the region that it opens.
        self.tests: frozenset[Key] | None = None
        self.region: Region | None = None
        # Whether the same decision is made again while all that it reads stays the same.
        self.repeats = False
        # Of the decision of a `while`, the first way of which is the body: the loop.
        self.until: Region | None = None
        # Whether this leaves a block early: return, raise, break, continue.
        self.abrupt = False
        # At the end of a `with`: the manager, which may have swallowed an exception.
        self.suppressor: Expression | None = None
        # At its start: the same manager, which may lead from here to the end.
        self.skipped_by: Expression | None = None
        # At the way past an `if`: the statement, of which mypy may know that it has no such way.
        self.without_else: IfStmt | None = None

    def kills(self, key: Key) -> bool:
        """Tell whether the key names another value after this point."""
        return any(may_be(stored, part) for stored in self.stores for part in prefixes(key))


class Graph:
    """All points of an outermost function, or of the top level of a module."""

    def __init__(self, unit: Node) -> None:
        self.unit = unit
        self.points: list[Point] = []
        self.fragments: list[Fragment] = []
        # Whether a decision is made by asking a tensor of either kind whether it owns a tape.
        self.asks_for_tape = False
        # Names that an inner function assigns to: any call may change them.
        self.shared: set[str] = set()
        self.of_node: dict[Node, list[Point]] = {}
        # Calls that are statements: what they return is dropped.
        self.dropped: set[Context] = set()
        # `x += y` by y: mypy checks it as an expression of its own making.
        self.augmented: dict[Expression, Node] = {}
        # Those of the `if`s that are written `elif`.
        self.elifs: set[IfStmt] = set()
        # `y = x` by y: the key of x, or those of a tuple display.
        self.copies: dict[Key, Key | list[Key | None]] = {}
        # `return x`, by the key of x: a use that is no call.
        self.returns: dict[Key, list[Point]] = {}

    @cached_property
    def before(self) -> dict[Point, list[Point]]:
        """The points from which there is a sure way to a point; asked for when all are there."""
        found: dict[Point, list[Point]] = {one: [] for one in self.points}
        for one in self.points:
            for following in one.next:
                found[following].append(one)
        return found

    @property
    def is_module(self) -> bool:
        """Whether this is the top level of a module."""
        return isinstance(self.unit, MypyFile)

    def within(self, region: Region) -> list[Point]:
        """Return the points of a region."""
        return self.points[region.start : region.end]
