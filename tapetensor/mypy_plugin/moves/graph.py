"""The control-flow graph of a function: what may be executed after what.

Why not mypy's own flow analysis, the binder: it works on types, drops what happens within an
expression's branches and forgets a narrowing on *every* path once the variable is assigned on one.
A graph of our own answers exactly what is asked - does a way lead from this move to that use - for
`finally`, loops, comprehensions and lambdas too, and depends on mypy's syntax tree alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from mypy.nodes import (
    CallExpr,
    Context,
    Expression,
    FuncItem,
    IfStmt,
    IndexExpr,
    MemberExpr,
    MypyFile,
    NameExpr,
    Node,
    Var,
)

from tapetensor.mypy_plugin.blocks import statements, targets
from tapetensor.mypy_plugin.moves.keys import Key, may_be, place, prefixes
from tapetensor.mypy_plugin.moves.points import Fragment, Link, Pass, Point, Region
from tapetensor.mypy_plugin.moves.private import handed_to_nobody, private_names


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
        # What an attribute is read of, or assigned to, with that.
        self.members: dict[Expression, MemberExpr] = {}
        # Names of a module that its functions read.
        self.reached: set[Node | None] = set()
        self.of_node: dict[Node, list[Point]] = {}
        # Calls that are statements: what they return is dropped. Names that are a test.
        self.dropped: set[Context] = set()
        # Iterators that are run to their end where they are made.
        self.consumed: set[Expression] = set()
        # Calls whose coroutines are run to their end there.
        self.awaited: set[Expression] = set()
        # What is taken out of containers, which have it no more afterwards.
        self.taken_out: list[Link] = []
        # Calls of functions whose bodies were asked what they return.
        self.looked_at: set[Node] = set()
        # What an iterator or a context manager hands out until execution comes back, and where.
        self.handed: dict[Expression, tuple[Node, Point]] = {}
        # `x += y` by y: mypy checks it as an expression of its own making.
        self.augmented: dict[Expression, Node] = {}
        # The `if`s that are written `elif`.
        self.elifs: set[IfStmt] = set()
        # Other names of values, `y = x`, and of parts of them, `pair = x, y`.
        self.links: list[Link] = []
        self.passes: list[Pass] = []
        # Where a call has changed a container, if it is a method of one, as its name says.
        self.changed_at: dict[CallExpr, list[Point]] = {}
        # Where an item is put into a container.
        self.put_at: dict[Key, list[Point]] = {}
        # What each name is assigned, wherever it is.
        self.assigned: dict[Key, list[Expression | None]] = {}
        # Where the function returns; what the last of them leads from is its last statement.
        self.ends: list[Point] = []
        # The first argument of a method.
        self.me: Var | None = None
        # The value of a default argument, which is made once, has a name of its own.
        self.defaults: dict[Var, Var] = {}
        self._bound: dict[CallExpr, dict[Var, Key]] = {}
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
        found = private_names(self.points, self.assigned, self.kept)
        return frozenset(one for one in found if one[1] not in self.reached)

    @cached_property
    def kept(self) -> set[Expression]:
        """The names and items that are read, and handed to no other code."""
        return handed_to_nobody(self.points, self.dropped)

    @cached_property
    def indices(self) -> list[object]:
        """The constants under which items of containers are read."""
        read = [place(node) for node in self.of_node if isinstance(node, IndexExpr)]
        found = [None if key is None else key[2] for key in read]
        return [*dict.fromkeys(one for one in found if isinstance(one, int | str))]

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
            and not (stored[0] == part[0] == "item" and self.are_apart(stored[1], part[1]))
            for stored in point.stores
            for part in prefixes(key)
        )

    def are_apart(self, one: Key, other: Key) -> bool:
        """Tell whether two containers are surely not one."""
        is_new = one in self.private or other in self.private
        is_made = any(a[1] in self.assigned.get(b, ()) for a, b in ((one, other), (other, one)))
        return one != other and is_new and not is_made

    def default_of(self, parameter: Var) -> Var:
        """Return what stands for the value of a default argument."""
        if parameter not in self.defaults:
            self.defaults[parameter] = Var(parameter.name, parameter.type)
        return self.defaults[parameter]

    def bind(self, call: CallExpr, body: FuncItem, given: list[list[Expression]]) -> dict[Var, Key]:
        """Return the keys that stand for the variables of one call of a function, as it binds them.

        Args:
            call: the call, which makes a closure.
            body: the function.
            given: what its parameters are given.
        """
        if call not in self._bound:
            inner = {one.variable for one in body.arguments}
            inner |= {one for one in _assigned_in(body) if isinstance(one, Var)}
            found = {one: ("name", Var(one.name, one.type)) for one in inner}
            for at in self.of_node[call]:
                at.stores = (*at.stores, *found.values())
                at.fragment.bound.update(key[1] for key in found.values())
                self.links += [
                    Link(found[one.variable], key, at, call)
                    for one, args in zip(body.arguments, given, strict=False)
                    if len(args) == 1 and (key := place(args[0])) is not None
                ]
            self._bound[call] = found
        return self._bound[call]

    def within(self, region: Region) -> list[Point]:
        """Return the points of a region."""
        return self.points[region.start : region.end]


def _assigned_in(body: FuncItem) -> Iterator[Node | None]:
    """Yield the variables that a function assigns to."""
    for statement in statements(body.body):
        for target in targets(statement):
            if isinstance(target, NameExpr):
                yield target.node
