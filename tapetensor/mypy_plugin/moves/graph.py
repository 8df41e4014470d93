"""The control-flow graph of a function: what may be executed after what.

Why not mypy's own flow analysis, the binder: it works on types, drops what happens within an
expression's branches and forgets a narrowing on *every* path once the variable is assigned on one.
A graph of our own answers exactly what is asked - does a way lead from this move to that use - for
`finally`, loops, comprehensions and lambdas too, and depends on mypy's syntax tree alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from mypy.nodes import CallExpr, Context, Expression, IfStmt, IndexExpr, MypyFile, Node, Var

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


@dataclass(eq=False)
class Region:
    """A statement or expression that decides whether, or how often, a part of it runs.

    Attributes:
        tests: what the decision reads.
        start: the number of the first point within.
        end: the number of the first point behind it; that of the first one while it grows.
        loop: whether a part may run several times.
    """

    tests: frozenset[Key]
    start: int
    end: int
    loop: bool


@dataclass(eq=False, slots=True)
class Point:
    """One step of execution.

    Attributes:
        fragment: the code that it belongs to.
        node: the call, operator, return ... that is executed here, if it is one.
        regions: the regions around it, the outermost first.
        index: its number in the graph.
    """

    fragment: Fragment
    node: Node | None
    regions: tuple[Region, ...]
    index: int = -1
    # Execution goes on there: surely, or perhaps (an exception, say), which is not enough for an
    # error but makes "was moved" a "may have been".
    next: list[Point] = field(default_factory=list)
    maybe: list[Point] = field(default_factory=list)
    # These keys get a new value here, which is computed from those.
    stores: tuple[Key, ...] = ()
    sources: frozenset[Key] = frozenset()
    # This says that the new value is arithmetic on the one before, as of a counter.
    counts: bool = False
    # Code from elsewhere that runs here: that of a value (an iterator, what has its items assigned
    # to), or of whatever it may be, as at the start of a `with`.
    runs: Expression | None = None
    foreign: bool = False
    # A branch has what the decision reads (None elsewhere), and the region that it opens.
    tests: frozenset[Key] | None = None
    region: Region | None = None
    # The same decision is made again while all that it reads stays the same.
    repeats: bool = False
    # The decision of a `while`, the first way of which is the body, has the loop.
    until: Region | None = None
    # This leaves a block early: return, raise, break, continue.
    abrupt: bool = False
    # The end of a `with` has the manager, which may have swallowed an exception.
    suppressor: Expression | None = None
    # Its start has the same manager, which may lead from here to the end.
    skipped_by: Expression | None = None
    # The way past an `if` has the statement; mypy may know that there is no such way.
    without_else: IfStmt | None = None


@dataclass(eq=False, frozen=True)
class Link:
    """From a point on, one key is another name of the value of another one.

    Attributes:
        target: what is assigned to, or a part of that: ``pair = x, y`` makes two links.
        source: what it is assigned.
        point: where.
        node: the expression that is assigned, or a call that puts it into a container.
    """

    target: Key
    source: Key
    point: Point
    node: Expression | None = None


@dataclass(eq=False)
class Pass:
    """A loop over the items of a container.

    Attributes:
        item: the key of the item that the loop has come to.
        start: where it gets to the next item, or to the end.
        body: the first point of a pass.
        whole: whether the loop comes to every item if nothing breaks it off.
        first: whether it begins with the item of index 0.
        end: where it goes on after the last item.
    """

    item: Key
    start: Point
    body: Point
    whole: bool
    first: bool
    end: Point | None = None


class Graph:
    """All points of an outermost function, or of the top level of a module."""

    def __init__(self, unit: Node) -> None:
        self.is_module = isinstance(unit, MypyFile)
        self.points: list[Point] = []
        self.fragments: list[Fragment] = []
        # A decision is made by asking a tensor of either kind whether it owns a tape.
        self.asks_for_tape = False
        # Names that an inner function assigns to: any call may change them.
        self.shared: set[str] = set()
        self.of_node: dict[Node, list[Point]] = {}
        # Calls that are statements: what they return is dropped.
        self.dropped: set[Context] = set()
        # `x += y` by y: mypy checks it as an expression of its own making.
        self.augmented: dict[Expression, Node] = {}
        # The `if`s that are written `elif`.
        self.elifs: set[IfStmt] = set()
        # Other names of values, `y = x`, and of parts of them, `pair = x, y`.
        self.links: list[Link] = []
        self.passes: list[Pass] = []
        # What each name is assigned, wherever it is.
        self.assigned: dict[Key, list[Expression | None]] = {}
        # Where the function returns; what the last of them leads from is its last statement.
        self.ends: list[Point] = []
        # The first argument of a method.
        self.me: Var | None = None
        # The value of a default argument, which is made once, has a name of its own.
        self.defaults: dict[Var, Var] = {}
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

    @cached_property
    def private(self) -> frozenset[Key]:
        """The names of containers that no other code can reach."""
        from tapetensor.mypy_plugin.moves.private import private_names

        return private_names(self)

    @cached_property
    def calls_of_items(self) -> list[CallExpr]:
        """The calls of what stands in a container."""
        return [
            node
            for node in self.of_node
            if isinstance(node, CallExpr) and isinstance(node.callee, IndexExpr)
        ]

    def kills(self, point: Point, key: Key) -> bool:
        """Tell whether the key names another value after a point.

        What is assigned to an item of a container that no other name reaches is no item of another.
        """
        return any(
            may_be(stored, part)
            and not (stored[0] == part[0] == "item" and self._are_apart(stored[1], part[1]))
            for stored in point.stores
            for part in prefixes(key)
        )

    def _are_apart(self, one: Key, other: Key) -> bool:
        return one != other and (one in self.private or other in self.private)

    def default_of(self, parameter: Var) -> Var:
        """Return what stands for the value of a default argument."""
        if parameter not in self.defaults:
            self.defaults[parameter] = Var(parameter.name, parameter.type)
        return self.defaults[parameter]

    def within(self, region: Region) -> list[Point]:
        """Return the points of a region."""
        return self.points[region.start : region.end]
