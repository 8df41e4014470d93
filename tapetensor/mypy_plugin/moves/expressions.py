"""Building the control-flow graph: expressions."""

from __future__ import annotations

from abc import abstractmethod
from contextlib import contextmanager
from typing import TYPE_CHECKING

from mypy.literals import literal_hash
from mypy.nodes import (
    AssignmentExpr,
    AwaitExpr,
    CallExpr,
    ComparisonExpr,
    ConditionalExpr,
    DictionaryComprehension,
    Expression,
    FuncDef,
    FuncItem,
    GeneratorExpr,
    IndexExpr,
    IntExpr,
    LambdaExpr,
    ListComprehension,
    ListExpr,
    MemberExpr,
    NameExpr,
    Node,
    OpExpr,
    RefExpr,
    SetComprehension,
    StarExpr,
    TupleExpr,
    Var,
    YieldFromExpr,
)
from typing_extensions import override

from tapetensor.mypy_plugin.moves.contents import (
    is_of_neighbours,
    loops_over,
    parts_of,
    rest_of,
    unpacked,
)
from tapetensor.mypy_plugin.moves.filling import Filling
from tapetensor.mypy_plugin.moves.graph import Graph
from tapetensor.mypy_plugin.moves.keys import (
    Key,
    Passed,
    asks_for_tape,
    children,
    has_call,
    index_of,
    item_of,
    key_of,
    mentions,
    place,
    root,
)
from tapetensor.mypy_plugin.moves.points import Fragment, Link, Pass, Point, Region

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# The points that execution comes from, and whether it surely can.
Ends = list[tuple[Point, bool]]

# Builtins that run a generator to its end at once; others may keep it for later.
CONSUMERS = frozenset(
    f"builtins.{name}"
    for name in ("all", "any", "dict", "list", "max", "min", "set", "sorted", "sum", "tuple")
) | {"collections.deque"}
# Functions that run the coroutines that they are given, when their own is awaited.
_AWAITERS = frozenset({"asyncio.tasks.gather", "asyncio.tasks.wait_for", "asyncio.tasks.shield"})


def lead(ends: Ends, to: Point) -> None:
    """Let execution go on at a point."""
    for end, sure in ends:
        (end.next if sure else end.maybe).append(to)


class Expressions(Filling):
    """Adds the points of expressions to a graph."""

    def __init__(self, unit: Node) -> None:
        super().__init__(Graph(unit))
        self.fragment = Fragment(None, unit.name if isinstance(unit, FuncDef) else "")
        self.graph.fragments.append(self.fragment)
        self.ends: Ends = [(self.fragment.entry, True)]
        self.regions: tuple[Region, ...] = ()
        # The containers that are made where a loop over them begins.
        self.names: dict[Expression, Key] = {}
        # What the loops have come to, by what the loops are over.
        self.items: dict[frozenset[Key], set[Key | None]] = {}
        # An exception at this point may lead there, within the function.
        self.landing: Point | None = None

    @override
    def point(self, node: Node | None = None) -> Point:
        """Add a point that follows on where execution has come to."""
        one = Point(self.fragment, node, self.regions, len(self.graph.points))
        self.graph.points.append(one)
        lead(self.ends, one)
        self.ends = [(one, True)]
        if node is not None:
            self.graph.of_node.setdefault(node, []).append(one)
        if self.landing is not None:
            one.maybe.append(self.landing)
        return one

    @contextmanager
    def region(self, tests: frozenset[Key], *, loop: bool = False) -> Iterator[Region]:
        """Mark the points that are added as those of a region."""
        start = len(self.graph.points)
        inside = Region(tests, start, start, loop)
        outside, self.regions = self.regions, (*self.regions, inside)
        try:
            yield inside
        finally:
            self.regions = outside
            inside.end = len(self.graph.points)

    def branch(self, test: Expression, region: Region | None) -> Point:
        """Add a point after which execution goes one way or another, as a test decides."""
        one = self.point()
        one.tests = mentions(test)
        match test:
            case ComparisonExpr(operators=["is not" | "!="], operands=operands) if any(
                {*map(key_of, operands)} <= several for several in self.items.values()
            ):
                one.differs = True
        one.repeats = not has_call(test)
        one.test = test
        one.question = literal_hash(test) if one.repeats else None
        one.region = region
        return one

    def expression(self, expression: Expression | None) -> None:
        """Add what evaluating an expression does."""
        match expression:
            case None:
                pass
            case CallExpr(analyzed=Expression() as meant):
                self.expression(meant)
            case OpExpr(op="and" | "or", left=left, right=right):
                ways = (right, None) if expression.op == "and" else (None, right)
                self._alternatives(left, ways)
            case ConditionalExpr(cond=condition, if_expr=yes, else_expr=no):
                self._alternatives(condition, (yes, no))
            case ComparisonExpr(operands=[first, second, *others]) if others:
                self.expression(first)
                self.expression(second)
                self._links(expression, others)
                self.point(expression)
            case ListComprehension(generator=inner) | SetComprehension(generator=inner):
                self._comprehension(inner, [inner.left_expr])
            case DictionaryComprehension(key=name, value=value):
                self._comprehension(expression, [name, value])
            case GeneratorExpr() if expression in self.graph.consumed:
                self._comprehension(expression, [expression.left_expr])
            case GeneratorExpr():
                self.expression(expression.sequences[0])
                with self.closure():
                    self._comprehension(expression, [expression.left_expr], started=True)
            case LambdaExpr():
                self.function(expression)
            case _:
                if isinstance(expression, CallExpr) and isinstance(expression.callee, RefExpr):
                    called = expression.callee.fullname
                    self.graph.consumed.update(expression.args if called in CONSUMERS else ())
                    if called == "asyncio.runners.run" or (
                        called in _AWAITERS and expression in self.graph.awaited
                    ):
                        self.graph.awaited.update(expression.args)
                if isinstance(expression, AwaitExpr):
                    self.graph.awaited.add(expression.expr)
                elif isinstance(expression, StarExpr | YieldFromExpr):
                    self.graph.consumed.add(expression.expr)
                for part in children(expression):
                    self.expression(part)
                one = self.point(expression)
                if isinstance(expression, MemberExpr):
                    self.graph.members[expression.expr] = expression
                self.graph.asks_for_tape |= asks_for_tape(expression)
                if isinstance(expression, AssignmentExpr):
                    self.assign(expression.target, expression.value, one)
                elif isinstance(expression, CallExpr):
                    self._called(expression, one)

    def _alternatives(
        self,
        test: Expression,
        ways: tuple[Expression | None, ...],
        then: Callable[[Expression], None] | None = None,
    ) -> None:
        """Add a test and what is evaluated if it says yes, and if no, and what is done then."""
        self.expression(test)
        with self.region(mentions(test)) as region:
            one = self.branch(test, region)
            joined: Ends = []
            for way in ways:
                self.ends = [(one, True)]
                self.point()
                self.expression(way)
                if then is not None and way is not None:
                    then(way)
                joined += self.ends
        self.ends = joined

    def evaluated(self, value: Expression, then: Callable[[Expression], None]) -> None:
        """Add what evaluating an expression does, and what is done with what it chooses."""
        if isinstance(value, ConditionalExpr):
            self._alternatives(value.cond, (value.if_expr, value.else_expr), then)
        else:
            self.expression(value)
            then(value)

    def _links(self, chain: ComparisonExpr, operands: list[Expression]) -> None:
        """Add the last operands of ``a < b < c``, which are evaluated while all before is true."""
        if not operands:
            return
        with self.region(mentions(chain)) as region:
            one = self.branch(chain, region)
            self.point()
            self.expression(operands[0])
            self._links(chain, operands[1:])
            joined = self.ends
            self.ends = [(one, True)]
            self.point()
        self.ends = joined + self.ends

    def _comprehension(
        self,
        inner: GeneratorExpr | DictionaryComprehension,
        elements: list[Expression | None],
        *,
        started: bool = False,
    ) -> None:
        """Add the loops of a comprehension; the first is `started` if its iterable is evaluated."""

        def level(depth: int) -> None:
            if depth == len(inner.sequences):
                for element in elements:
                    self.expression(element)
                return
            sequence = inner.sequences[depth]
            if depth or not started:
                self.iterable(inner.indices[depth], sequence)
            conditions = inner.condlists[depth]
            with self.region(mentions(sequence, *conditions), loop=True):
                head = self.point()
                head.runs, head.foreign = sequence, inner.is_async[depth]
                self.point()
                new = self.pairwise(inner.indices[depth], sequence)
                at = self.point()
                self.store(new, sequence, at)
                passes = self.iterate(inner.indices[depth], sequence, head, at)
                skipped: Ends = []
                for condition in conditions:
                    self.expression(condition)
                    skipped.append((self.branch(condition, None), True))
                level(depth + 1)
                self.ends += skipped
                # A generator that is kept for later may be asked for no more than one item.
                if depth or not started:
                    lead(self.ends, head)
            self.ends = [(head, True)]
            passes += self.counted(inner.indices[depth], sequence, head, at)
            self.over(head, passes)

        level(0)

    def assign(self, target: Expression, value: Expression, at: Point) -> None:
        """Note at a point that a value is assigned to a target."""
        if (
            isinstance(target, TupleExpr | ListExpr)
            and isinstance(value, TupleExpr | ListExpr)
            and len(target.items) == len(value.items)
            and not any(isinstance(one, StarExpr) for one in (*target.items, *value.items))
        ):
            for part, its_value in zip(target.items, value.items, strict=True):
                self.assign(part, its_value, at)
            return
        name = key_of(target)
        if name is not None and name[0] == "name" and name == key_of(value):
            # As in `x, twin = x, x`, the name keeps its value.
            self.fragment.bound.add(root(name))
        else:
            self.store(target, value, at)
        self.link(target, value, at)

    def link(self, target: Expression, value: Expression | Key, at: Point) -> None:
        """Note at a point that a target, or parts of it, are other names of a value."""
        base = value if isinstance(value, tuple) else place(value)
        if isinstance(target, TupleExpr | ListExpr):
            if base is not None:
                for part, source in unpacked(target, base):
                    self.link(part, source, at)
                self.graph.links += [Link(*pair, at) for pair in rest_of(target, base)]
            return
        name = key_of(target)
        if name is None:
            return
        pairs = [(name, value)] if isinstance(value, tuple) else parts_of(name, value)
        node = None if isinstance(value, tuple) else value
        # A part of a new object may be that of the one of the same name before.
        new = [pair for pair in pairs if pair[0] != pair[1] or pair[0][0] != "name"]
        self.graph.links += [Link(*pair, at, node) for pair in new]
        if not isinstance(value, tuple):
            self.graph.assigned.setdefault(name, []).append(value)

    def iterate(self, target: Expression, items: Expression, start: Point, at: Point) -> list[Pass]:
        """Note at a point that the targets of a loop have got the next items."""
        passes = []
        targets = target.items if isinstance(target, TupleExpr) else [target]
        if over := mentions(items):
            self.items.setdefault(over, set()).update(map(key_of, targets))
        # Those that begin with the first item come to the same index at the same time; so do those
        # that begin with the last.
        together = {0: Passed(), -1: Passed()}
        for loop in loops_over(target, items):
            base = place(loop.base) or self.names.get(loop.base)
            if base is None:
                continue
            item = item_of(base, Passed() if loop.first is None else together[loop.first])
            count = None if loop.most is None else min(loop.most, 8)
            passes.append(Pass(item, start, at, loop.whole, loop.first, count))
            if loop.item is not None:
                self.link(loop.item, item, at)
            if (name := key_of(loop.number)) is not None:
                self.graph.links.append(Link(item_of(base, name), item, at))
        self.graph.passes += passes
        return passes

    def pairwise(self, target: Expression, items: Expression) -> Expression:
        """Return what a loop gives new items; of one over pairs the first gets the last second."""
        match target:
            case TupleExpr(items=[first, second]) if is_of_neighbours(items):
                self.assign(first, second, self.point())
                return second
        return target

    def iterable(self, target: Expression, items: Expression) -> None:
        """Add what evaluating the iterable of a loop does; a container that is new gets a name."""
        self.expression(items)
        for loop in loops_over(target, items):
            made = loop.base
            name: Key = ("name", Var(""))
            pairs = [] if place(made) is not None else [*parts_of(name, made)]
            if pairs:
                at = self.point()
                at.stores = (name,)
                self.fragment.bound.add(name[1])
                self.graph.assigned[name] = [made]
                self.graph.links += [Link(*pair, at, made) for pair in pairs]
                self.names[made] = name

    def counted(self, target: Expression, items: Expression, start: Point, at: Point) -> list[Pass]:
        """Return the loops over what a counter that begins with 0 has indexed.

        It comes to the first items, or by ``-1 - i`` to the last one first.
        """
        index, most = counter(target, items)
        read = [one.node for one in self.graph.points[start.index :]]
        passes = []
        for base, which in dict.fromkeys(
            (key_of(one.base), index_of(one.index)) for one in read if isinstance(one, IndexExpr)
        ):
            is_last = which == ("last", index)
            if base is None or index is None or not (is_last or which == index):
                continue
            item = item_of(base, Passed())
            is_whole = most is not None and not is_last
            passes.append(Pass(item, start, at, is_whole, -1 if is_last else 0, most))
            self.graph.links.append(Link(item_of(base, which), item, at))
        self.graph.passes += passes
        return passes

    def over(self, start: Point, passes: list[Pass], *, left: bool = False) -> None:
        """Add the point after the last pass of a loop, which may be `left` before that."""
        end = self.point()
        end.loop_end = True
        for one in passes:
            one.end = end
            one.whole &= not left
        # A loop that assigns to items by a variable is taken to come to all of them.
        end.stores = tuple(
            item_of(key[1], None)
            for one in self.graph.points[start.index : end.index]
            for key in one.stores
            if key[0] == "item" and isinstance(key[2], tuple)
        )

    def _called(self, call: CallExpr, at: Point) -> None:
        """Note at a point what a call returns there, and what it changes."""
        result: Key = ("name", call)
        at.stores = (result,)
        self.fragment.bound.add(call)
        self.graph.links += [Link(*pair, at, call) for pair in parts_of(result, call)]
        self.change(call, at)

    def store(self, target: Expression, value: Expression | None, at: Point) -> None:
        """Note at a point that a target gets a new value; `value` is what it is computed from."""
        if isinstance(target, TupleExpr | ListExpr):
            for item in target.items:
                self.store(item, value, at)
        elif isinstance(target, StarExpr):
            self.store(target.expr, value, at)
        else:
            self.bind(target, at)
            read = mentions(value)
            at.sources |= read
            if isinstance(value, OpExpr) and key_of(target) in read:
                at.counts = counts(value.op, value)

    def bind(self, target: Expression, at: Point) -> None:
        """Note at a point that a name, an attribute or an item gets a new value."""
        key = key_of(target)
        if isinstance(target, IndexExpr):
            at.runs = target.base
            if key is None and (base := key_of(target.base)) is not None:
                key = ("item", base, None)
        if key is not None:
            at.stores = (*at.stores, key)
            if key[0] == "name":
                self.fragment.bound.add(root(key))

    @contextmanager
    def closure(self, name: str = "") -> Iterator[Fragment]:
        """Mark the points that are added as code that runs later, and maybe not at all."""
        made = self.point()
        kept = self.fragment, self.ends, self.landing, self.regions
        self.fragment = Fragment(made, name)
        self.graph.fragments.append(self.fragment)
        self.ends, self.landing, self.regions = [(self.fragment.entry, True)], None, ()
        try:
            yield self.fragment
        finally:
            self.fragment, self.ends, self.landing, self.regions = kept

    def function(self, function: FuncItem) -> None:
        """Add a function that is defined within another one."""
        for argument in function.arguments:
            self.expression(argument.initializer)
            if argument.initializer is not None:
                name: Key = ("name", self.graph.default_of(argument.variable))
                at = self.point()
                at.stores = (*at.stores, name)
                self.graph.links += [
                    Link(*pair, at) for pair in parts_of(name, argument.initializer)
                ]
        with self.closure(function.name) as inside:
            self.arguments(function, inside)
            self.body(function)

    def arguments(self, function: FuncItem, inside: Fragment) -> None:
        """Note the arguments of a function."""
        inside.arguments.update(argument.variable for argument in function.arguments)
        inside.bound |= inside.arguments

    @abstractmethod
    def body(self, function: FuncItem) -> None:
        """Add what a function does when it is called."""


def counter(target: Expression, items: Expression) -> tuple[Key | None, int | None]:
    """Return what counts the passes of a loop from 0, and how many a number says there are."""
    match items, target:
        case CallExpr(callee=RefExpr(fullname="builtins.range"), args=[count]), _:
            return key_of(target), min(count.value, 8) if isinstance(count, IntExpr) else None
        case (
            CallExpr(callee=RefExpr(fullname="builtins.enumerate"), args=[_]),
            TupleExpr(items=[number, _]),
        ):
            return key_of(number), None
    return None, None


def counts(operator: str, operand: Expression) -> bool:
    """Tell whether ``n += operand`` is what one does with counters."""
    return operator in ("+", "-", "*", "/", "//") and not has_call(operand)


def truth(expression: Expression) -> bool | None:
    """Return the truth value that an expression spells, as of an endless loop; None for others."""
    match expression:
        case NameExpr(fullname="builtins.True"):
            return True
        case NameExpr(fullname="builtins.False"):
            return False
        case IntExpr(value=number):
            return bool(number)
    return None
