"""What a call returns: which parts of it are which arguments, as a body in the file tells."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Final, Protocol, Self, TypeVar

from mypy.nodes import (
    CallExpr,
    Decorator,
    Expression,
    FuncDef,
    FuncItem,
    NameExpr,
    Node,
    RefExpr,
    ReturnStmt,
    SymbolNode,
    TupleExpr,
    Var,
    YieldExpr,
)
from mypy.types import Instance, Type

from tapetensor.mypy_plugin.moves.calls import Calls, arguments, is_exactly_meant
from tapetensor.mypy_plugin.moves.contents import parts_of, unpacked
from tapetensor.mypy_plugin.moves.keys import (
    EACH,
    Fields,
    Key,
    covers,
    has_variable_index,
    index_of,
    indices_in,
    is_constant,
    item_of,
    key_of,
    place,
    prefixes,
    replaced,
    root,
    with_indices,
)
from tapetensor.mypy_plugin.moves.known import Known, Part
from tapetensor.mypy_plugin.moves.points import Link, Point
from tapetensor.mypy_plugin.moves.steps import Place, Steps
from tapetensor.mypy_plugin.symbols import member_of

V = TypeVar("V")
# What a function returns, as it is told to those who call it.
_RESULT: Final[Key] = ("name", Var("result"))


class Reader(Protocol):
    """What is asked of the one that reads the calls in a function, on the floor above."""

    steps: Steps
    calls: Calls
    results: Results

    def type_of(self, expression: Expression) -> Type | None:
        """Return the type of an expression."""

    def places(self, parts: Iterable[Part]) -> list[Place]:
        """Return the places of parts that have one."""

    def body(self, node: SymbolNode | None) -> FuncDef | None:
        """Return the body of a function of this file."""

    def overriding(self, body: FuncItem) -> Iterator[FuncDef]:
        """Yield the methods of this file that may be meant where a method is called."""

    def moved_of(
        self, body: FuncItem, number: int, expressions: list[Expression], *, exact: bool = False
    ) -> Iterator[Place]:
        """Yield what the body of a function is sure to take of the arguments for a parameter."""

    def within(self, function: FuncItem) -> Self | None:
        """Return what reads the calls in another function."""

    def own_moves(self) -> Iterator[tuple[Key, Point]]:
        """Yield the keys that this function takes the tape of, with the points where it does."""

    def remembered(
        self,
        known: dict[FuncItem, tuple[V, bool]],
        which: FuncItem,
        body: FuncItem,
        unknown: V,
        read: Callable[[Self], V],
    ) -> V:
        """Return what is found in a function."""


class Results:
    """Tells what the calls of one function return.

    Args:
        reader: what reads the calls in the function.
        known: what is known of the functions of the file.
    """

    def __init__(self, reader: Reader, known: Known) -> None:
        self._reader = reader
        self._known = known

    def look_at(self, call: CallExpr) -> None:
        """Note in the graph what a call returns."""
        graph = self._reader.steps.graph
        body = self._body_of(call) if call not in graph.looked_at else None
        if body is None:
            return
        graph.looked_at.add(call)
        for at in graph.changed_at.pop(call, []):
            # It only has the name of a method of containers.
            at.stores = ()
        returned: Key = ("name", call)
        [callee] = self._reader.calls.called(call)
        given = zip(body.arguments, arguments(callee, call), strict=False)
        values: dict[Var, Key | None] = {}
        indices: dict[Key, object] = {}
        for one, args in given:
            if len(args) == 1:
                values[one.variable] = place(args[0])
                indices["name", one.variable] = index_of(args[0])
        for at in graph.of_node[call]:
            self._link(body, call, returned, values, at, indices)

    def _link(
        self,
        body: FuncItem,
        call: CallExpr,
        result: Key,
        given: Mapping[Var, Key | None],
        at: Point,
        indices: Mapping[Key, object] = MappingProxyType({}),
    ) -> None:
        """Note at a point that parts of what a function returns are what it is given."""
        for target, source in self.of(body):
            to, key = (
                None if one is None else _renamed(one, result, given)
                for one in (with_indices(target, indices), with_indices(source, indices))
            )
            if to is not None and key is not None:
                self._reader.steps.graph.links.append(Link(to, key, at, call))

    def of(self, body: FuncItem) -> list[tuple[Key, Key]]:
        """Return the parts of what a function returns with the parts of its parameters they are.

        Where two parts are one tensor that it was not given, the second key is that of a part, too.
        """
        if body.is_generator:
            return []
        parameters = {one.variable for one in body.arguments}
        return self._reader.remembered(
            self._known.returned,
            body,
            body,
            [],
            lambda inner: [*_returned(inner, parameters), *_kept(inner, parameters)],
        )

    def spent(self, call: CallExpr) -> list[Place]:
        """Return the parts of what a call returns that are spent by then."""
        body = self._body_of(call)
        if body is None:
            return []
        result: Key = ("name", call)
        keys = [replaced(key, _RESULT, result) for key in self._spent_in(body)]
        return [Place(key, key, left=True) for key in keys if key is not None]

    def _body_of(self, call: CallExpr) -> FuncDef | None:
        """Return the function of this file that a call is sure to mean."""
        callees = self._reader.calls.called(call)
        body = self._reader.body(callees[0].node) if len(callees) == 1 else None
        if body is not None and not is_exactly_meant(call) and [*self._reader.overriding(body)]:
            return None
        is_put_off = body is not None and body.is_coroutine and not body.is_generator
        return None if is_put_off and call not in self._reader.steps.graph.awaited else body

    def _spent_in(self, body: FuncItem) -> list[Key]:
        """Return the parts of what a function returns, or a generator yields, that are spent."""
        return self._reader.remembered(
            self._known.spent,
            body,
            body,
            [],
            lambda inner: _spent(inner, is_generator=body.is_generator),
        )

    def taken_back(self, call: CallExpr, target: Node, at: Point) -> list[Place]:
        """Return what is taken when execution comes back to an iterator or context manager.

        Args:
            call: what makes it.
            target: what gets the value that it hands out, or the statement if nothing does.
            at: where.
        """
        found = self._reader.type_of(call)
        if isinstance(found, Instance):
            start, end = (
                self._reader.body(member_of(found.type, name)) for name in ("__enter__", "__exit__")
            )
            got = key_of(target) if isinstance(target, Expression) else None
            made = self._reader.steps.graph.looked_at
            if start is not None and end is not None:
                if got is not None and target not in made:
                    made.add(target)
                    self._link(start, call, got, {start.arguments[0].variable: ("name", call)}, at)
                return [*self._reader.moved_of(end, 0, [call])]
        callees = self._reader.calls.called(call)
        body = self._reader.body(_undecorated(callees[0].node)) if len(callees) == 1 else None
        inner = self._reader.within(body) if body is not None and body.is_generator else None
        if body is None or inner is None:
            return []
        given = zip(body.arguments, arguments(callees[0], call), strict=False)
        values = {one.variable: args[0] for one, args in given if len(args) == 1}
        back = _taken_back(inner)
        taken = [values[one] for one in back if isinstance(one, Var) and one in values]
        if isinstance(target, Expression):
            for path in back:
                if path == _RESULT:
                    taken.append(target)
                elif not isinstance(path, Var) and isinstance(target, TupleExpr):
                    taken += [one for one, key in unpacked(target, _RESULT) if key == path]
        return self._reader.places([Part(one, None) for one in taken])

    def takes_back(self, node: SymbolNode | None) -> bool:
        """Tell whether a context manager takes, in the end, the tape of something it is given."""
        body = self._reader.body(_undecorated(node)) if isinstance(node, Decorator) else None
        inner = self._reader.within(body) if body is not None and body.is_generator else None
        return inner is not None and bool(_taken_back(inner))


def _undecorated(node: SymbolNode | None) -> SymbolNode | None:
    """Return the generator of a context manager."""
    if isinstance(node, Decorator) and [
        one.fullname for one in node.original_decorators if isinstance(one, RefExpr)
    ] in (["contextlib.contextmanager"], ["contextlib.asynccontextmanager"]):
        return node.func
    return node


def _renamed(key: Key, result: Key, given: Mapping[Var, Key | None]) -> Key | None:
    """Return a key of a function as it is that of its caller; None if it has none there."""
    start = root(key)
    by = result if start is _RESULT[1] else given.get(start) if isinstance(start, Var) else None
    return None if by is None else replaced(key, ("name", start), by)


def _taken_back(inner: Reader) -> list[Var | Key]:
    """Return what a generator is sure to take the tape of after each `yield`.

    That are parameters, and parts of what it has yielded.
    """
    steps = inner.steps
    moves = [*inner.own_moves()]
    yields = {
        points[0]: node.expr
        for node, points in steps.graph.of_node.items()
        if isinstance(node, YieldExpr) and points[0].fragment is steps.graph.fragments[0]
    }
    stops = [*yields, *steps.graph.ends]

    def takes(at: Point, names: Collection[Key]) -> bool:
        points = {
            point for name, point in moves if name in names and steps.paths.leads(at, point, name)
        }
        return bool(points) and not any(
            steps.paths.comes_to(start, stop, points) for start in at.next for stop in stops
        )

    parameters = [
        key[1]
        for key in dict.fromkeys(key for key, point in moves if steps.is_as_given(key, point))
        if key[0] == "name" and all(takes(at, [key]) for at in yields)
    ]
    yielded = [
        {
            part
            for part, key in ([] if value is None else parts_of(_RESULT, value))
            if takes(at, [one.key for one in steps.aliases.values(key, at)])
        }
        for at, value in yields.items()
    ]
    return [*parameters, *set.intersection(*yielded)] if yields else []


def _has_known_indices(key: Key, parameters: set[Var]) -> bool:
    """Tell whether who calls a function knows by which indices a key is read."""
    return all(one[1] in parameters for one in indices_in(key))


def _returned(inner: Reader, parameters: set[Var]) -> list[tuple[Key, Key]]:
    steps = inner.steps
    returns = [
        (points[0], node)
        for node, points in steps.graph.of_node.items()
        if isinstance(node, ReturnStmt) and points[0].fragment is steps.graph.fragments[0]
    ]
    found: dict[tuple[Key, Key], None] = {}
    if len(returns) != 1 or (value := returns[0][1].expr) is None:
        return []
    at = returns[0][0]
    taken = {key for key, _ in inner.own_moves()}
    # Where what the function has made itself is in what it returns.
    made: dict[Key, Key] = {}
    for target, source in parts_of(_RESULT, value):
        key = steps.aliases.canonical(source)
        for one in [] if key is None else steps.aliases.values(key, at):
            if one.by or one.loop or one.key in taken or not is_constant(one.key):
                continue
            if root(one.key) not in parameters:
                where = made.setdefault(one.key, target)
                found.update({(target, where): None} if where != target else {})
            elif _has_known_indices(one.key, parameters) and (
                steps.is_as_given(one.key, at)
                or (one.key[0] != "name" and steps.stays(one.key, at))
            ):
                found[target, one.key] = None
    return [*found]


def surely_moved(inner: Reader) -> tuple[list[Key], list[Key]]:
    """Return what a function, the calls in which are read, is sure to have taken the tape of.

    First what it was called with, then what it has put in the place of that.
    """
    moves: dict[tuple[Key, bool], set[Point]] = {}
    for key, point in inner.own_moves():
        if is_constant(key) and not has_variable_index(key):
            is_given = inner.steps.is_as_given(key, point)
            if is_given or (key[0] != "name" and inner.steps.stays(key, point)):
                moves.setdefault((key, is_given), set()).add(point)
    sure = [
        which
        for which, points in moves.items()
        if inner.steps.returns_only_by(points | inner.steps.paths.absent(which[0]))
    ]
    return [key for key, given in sure if given], [key for key, given in sure if not given]


def _spent(inner: Reader, *, is_generator: bool) -> list[Key]:
    """Return the parts of what a function returns, or a generator yields, that are surely spent."""
    steps = inner.steps
    kind = YieldExpr if is_generator else ReturnStmt
    result = item_of(_RESULT, EACH) if is_generator else _RESULT
    ends = [
        (points[0], node.expr)
        for node, points in steps.graph.of_node.items()
        if isinstance(node, kind) and points[0].fragment is steps.graph.fragments[0]
    ]
    # Of None there is no use.
    ends = [one for one in ends if not is_none(one[1])]
    moves: dict[Key, set[Point]] = {}
    for key, point in inner.own_moves():
        if is_constant(key) and not has_variable_index(key):
            moves.setdefault(key, set()).add(point)
    found: list[set[Key]] = []
    for at, value in ends:
        parts: set[Key] = set()
        for target, source in [] if value is None else parts_of(result, value):
            if isinstance(source[-1], Fields):
                parts.update(
                    (*target[:2], moved[2])
                    for moved, points in moves.items()
                    if moved[:2] == source[:2]
                    and source[-1].have(moved[2])
                    and steps.is_spent(moved, at, points)
                )
                continue
            held = steps.aliases.canonical(source)
            values = [] if held is None else steps.aliases.values(held, at)
            for name in {each.key for each in values if not each.by and not each.loop}:
                for moved, points in moves.items():
                    if covers(moved, name) and steps.is_spent(name, at, points):
                        parts.add(target)
                    elif name in prefixes(moved) and steps.is_spent(moved, at, points):
                        parts.add(replaced(moved, name, target) or target)
        found.append(parts)
    return [*set.intersection(*found)] if found else []


def is_none(value: Expression | None) -> bool:
    """Tell whether a value is None, as that of a `return` without one."""
    return value is None or (isinstance(value, NameExpr) and value.name == "None")


def _kept(inner: Reader, parameters: set[Var]) -> Iterator[tuple[Key, Key]]:
    """Yield the attributes and items of parameters that are other parameters in the end."""
    steps = inner.steps
    for link in steps.graph.links:
        target, source = steps.aliases.canonical(link.target), steps.aliases.canonical(link.source)
        if (
            target is not None
            and source is not None
            and target[0] != "name"
            and {root(target), root(source)} <= parameters
            and is_constant(target)
            and is_constant(source)
            and _has_known_indices(target, parameters)
            and _has_known_indices(source, parameters)
            and steps.is_as_given(source, link.point)
            and steps.stays(target, link.point)
            and steps.returns_only_by({link.point})
        ):
            yield target, source
