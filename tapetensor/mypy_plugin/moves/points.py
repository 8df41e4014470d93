"""The steps of execution that a graph is made of, and what leads from one to the next."""

from __future__ import annotations

from dataclasses import dataclass, field

from mypy.nodes import Expression, IfStmt, Node, Var

from tapetensor.mypy_plugin.moves.keys import Key, Root


class Fragment:
    """Code that runs as one: a module, a function, a lambda or a generator expression.

    Args:
        outer: the point that makes the closure in the fragment around it; None for the outermost.
        name: that of the function, if it is one.
    """

    def __init__(self, outer: Point | None, name: str = "") -> None:
        self.name = name
        self.outer = outer
        self.bound: set[Root] = set()
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
    # It asks whether two items are not one, to which most pairs of items say yes.
    differs: bool = False
    # The same decision is made again while all that it reads stays the same.
    repeats: bool = False
    # The test itself, if its first way is that of yes.
    test: Expression | None = None
    # What it asks, the same for the same words; its first way is that of yes.
    question: object = None
    # The decision of a loop, the first way of which is the body, has the loop.
    passes: Region | None = None
    # This leaves a block early: return, raise, break, continue.
    abrupt: bool = False
    # The end of a `with` has the manager, which may have swallowed an exception.
    suppressor: Expression | None = None
    # Its start has the same manager, which may lead from here to the end.
    skipped_by: Expression | None = None
    # A loop is over here.
    loop_end: bool = False
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
        after: another link, if this is so only where execution came by that before.
    """

    target: Key
    source: Key
    point: Point
    node: Expression | None = None
    after: Link | None = None


@dataclass(eq=False)
class Pass:
    """A loop over the items of a container.

    Attributes:
        item: the key of the item that the loop has come to.
        start: where it gets to the next item, or to the end.
        body: the first point of a pass.
        whole: whether the loop comes to every item if nothing breaks it off.
        first: the index of the item with which it begins, if that is known.
        count: how many items it comes to, if a number says that.
        end: where it goes on after the last item.
    """

    item: Key
    start: Point
    body: Point
    whole: bool
    first: int | None
    count: int | None = None
    end: Point | None = None
