"""Building the control-flow graph: statements."""

from __future__ import annotations

from functools import partial

from mypy.nodes import (
    AssertStmt,
    AssignmentStmt,
    Block,
    BreakStmt,
    CallExpr,
    ClassDef,
    ContinueStmt,
    Decorator,
    DelStmt,
    Expression,
    ExpressionStmt,
    ForStmt,
    FuncDef,
    FuncItem,
    GlobalDecl,
    IfStmt,
    IndexExpr,
    ListExpr,
    MatchStmt,
    MemberExpr,
    MypyFile,
    NameExpr,
    NonlocalDecl,
    OperatorAssignmentStmt,
    OverloadedFuncDef,
    RaiseStmt,
    RefExpr,
    ReturnStmt,
    Statement,
    TryStmt,
    TupleExpr,
    TypeInfo,
    WhileStmt,
    WithStmt,
)
from mypy.patterns import AsPattern
from typing_extensions import override

from tapetensor.mypy_plugin.blocks import function_of, statements
from tapetensor.mypy_plugin.moves.contents import captured
from tapetensor.mypy_plugin.moves.expressions import Ends, Expressions, counts, lead, truth
from tapetensor.mypy_plugin.moves.graph import Graph
from tapetensor.mypy_plugin.moves.keys import APPEND, children, item_of, key_of, mentions
from tapetensor.mypy_plugin.moves.patterns import bound_by
from tapetensor.mypy_plugin.moves.points import Pass, Point


def graph_of(unit: FuncItem | MypyFile) -> Graph:
    """Return the graph of an outermost function, or of the top level of a module."""
    builder = Statements(unit)
    if isinstance(unit, MypyFile):
        builder.block(unit.defs)
    else:
        builder.arguments(unit, builder.fragment)
        builder.graph.me = unit.arguments[0].variable if unit.arguments else None
        builder.body(unit)
        builder.graph.ends.append(builder.point())
    return builder.graph


class _Loop:
    """The ways out of a loop, and how many `finally` blocks are around it."""

    def __init__(self, depth: int) -> None:
        self.breaks: Ends = []
        self.continues: Ends = []
        self.depth = depth


class Statements(Expressions):
    """Adds the points of statements to a graph."""

    def __init__(self, unit: FuncItem | MypyFile) -> None:
        super().__init__(unit)
        self._loops: list[_Loop] = []
        self._finallies: list[Block] = []
        self._handlers: list[list[tuple[Expression | None, Point]]] = []

    @override
    def body(self, function: FuncItem) -> None:
        """Add what a function does when it is called."""
        kept = self._loops, self._finallies, self._handlers
        self._loops, self._finallies, self._handlers = [], [], []
        self.block(function.body)
        self._loops, self._finallies, self._handlers = kept

    def block(self, block: Block | list[Statement] | None) -> None:
        """Add statements one after the other."""
        if block is None:
            return
        if isinstance(block, Block) and block.is_unreachable:
            self.ends = []
            return
        for statement in block.body if isinstance(block, Block) else block:
            if self.ends:
                self.statement(statement)

    def statement(self, statement: Statement) -> None:
        """Add what a statement does."""
        match statement:
            case ExpressionStmt(expr=value):
                self.expression(value)
                self.graph.dropped.add(value)
            case AssignmentStmt(lvalues=lvalues, rvalue=value):
                if any(isinstance(one, TupleExpr | ListExpr) for one in lvalues):
                    self.graph.consumed.add(value)
                self.evaluated(value, partial(self._assignment, statement))
            case OperatorAssignmentStmt(lvalue=target, rvalue=value):
                self._parts_of_target(target)
                self.expression(value)
                self.graph.augmented[value] = statement
                self.point(statement)
                one = self.point()
                base = key_of(target)
                if isinstance(value, ListExpr) and base is not None and statement.op == "+":
                    one.stores = (item_of(base, APPEND),)
                    self.extend(base, value, one)
                else:
                    self.store(target, value, one)
                    one.counts = counts(statement.op, value)
            case IfStmt():
                self._if(statement)
            case ForStmt(index=target, expr=items):
                self.iterable(target, items)
                with self.region(mentions(items), loop=True):
                    self._loop(statement, None)
            case WhileStmt(expr=test):
                self._asked(test)
                with self.region(mentions(test), loop=True):
                    self._loop(statement, test)
            case TryStmt():
                self._try(statement)
            case WithStmt():
                self._with(statement)
            case MatchStmt():
                self._match(statement)
            case ReturnStmt(expr=value):
                self.expression(value)
                one = self.point(statement)
                if one.fragment is self.graph.fragments[0]:
                    self.graph.ends.append(one)
                key = key_of(value)
                if key is not None:
                    self.graph.returns.setdefault(key, []).append(one)
                self._leave(0)
            case RaiseStmt(expr=value):
                self.expression(value)
                self._raise(value)
            case BreakStmt() if self._loops:
                self._leave(self._loops[-1].depth, self._loops[-1].breaks)
            case ContinueStmt() if self._loops:
                self._leave(self._loops[-1].depth, self._loops[-1].continues)
            case AssertStmt(expr=test):
                self.expression(test)
                one = self.branch(test, None)
                one.abrupt = True
                if truth(test) is False:
                    self.ends = []
            case DelStmt(expr=target):
                self.store(target, None, self.point())
            case FuncDef() | Decorator() | OverloadedFuncDef() | ClassDef():
                self._definition(statement)
            case GlobalDecl(names=names) | NonlocalDecl(names=names):
                self.graph.shared.update(names)
            case _:
                pass

    def _assignment(self, statement: AssignmentStmt, value: Expression) -> None:
        for target in statement.lvalues:
            self._parts_of_target(target)
            self.assign(target, value, self.point())
            if isinstance(target, NameExpr) and key_of(value) is None:
                # a = b = ...: two names of one value.
                value = target

    def _parts_of_target(self, target: Expression) -> None:
        """Add what is evaluated to find out what is assigned to."""
        if isinstance(target, MemberExpr | IndexExpr):
            for part in children(target):
                self.expression(part)
        if isinstance(target, MemberExpr):
            self.graph.members[target.expr] = target

    def _if(self, statement: IfStmt) -> None:
        if _never_runs(statement):
            return
        joined: Ends = []
        match statement.else_body:
            case Block(body=[IfStmt() as inner]):
                self.graph.elifs.add(inner)
        with self.region(mentions(*statement.expr)) as region:
            for test, block in zip(statement.expr, statement.body, strict=True):
                self._asked(test)
                self.expression(test)
                one = self.branch(test, region)
                self.point()
                self.block(block)
                joined += self.ends
                self.ends = [(one, True)]
            self.point().without_else = statement
            self.block(statement.else_body)
            joined += self.ends
        self.ends = joined

    def _asked(self, test: Expression) -> None:
        """Note that a name is only asked whether it is empty."""
        if isinstance(test, NameExpr):
            self.graph.dropped.add(test)

    def _loop(self, statement: ForStmt | WhileStmt, test: Expression | None) -> None:
        loop = _Loop(len(self._finallies))
        head = self.point()
        if test is not None:
            self.expression(test)
            # This is no `branch`: the search looks for ways round the loop, and out of it.
        decision = self.point()
        one = self.point()
        passes: list[Pass] = []
        if isinstance(statement, ForStmt):
            decision.runs, decision.foreign = statement.expr, statement.is_async
            new = self.pairwise(statement.index, statement.expr)
            one = self.point()
            self.store(new, statement.expr, one)
            self.graph.handed[statement.expr] = statement.index, one
            passes = self.iterate(statement.index, statement.expr, decision, one)
        decision.passes = self.regions[-1]
        self._loops.append(loop)
        self.block(statement.body)
        self._loops.pop()
        self.ends += loop.continues
        if isinstance(statement, ForStmt) and self.ends:
            # What the iterator does when it goes on, with what it has handed out.
            self.point(statement.index)
        lead(self.ends, head)
        self.ends = [] if test is not None and truth(test) else [(decision, True)]
        if isinstance(statement, ForStmt):
            passes += self.counted(statement.index, statement.expr, decision, one)
            self.over(decision, passes, left=bool(loop.breaks))
        self.block(statement.else_body)
        self.ends += loop.breaks

    def _leave(self, depth: int, ends: Ends | None = None) -> None:
        """Leave blocks early, by way of the `finally` blocks beyond a depth."""
        self.point().abrupt = True
        kept = self._finallies, self._loops
        while len(self._finallies) > depth:
            inner, self._finallies = self._finallies[-1], self._finallies[:-1]
            self._loops = []
            self.block(inner)
        self._finallies, self._loops = kept
        if ends is not None:
            ends += self.ends
        self.ends = []

    def _raise(self, value: Expression | None) -> None:
        """Raise: to a handler of this very class in the `try` around, or out of the function."""
        raised = _class(value)
        for caught, handler in self._handlers[-1] if self._handlers else ():
            wanted = _class(caught)
            if caught is None or (raised and wanted and raised.has_base(wanted.fullname)):
                one = self.point()
                one.abrupt = True
                one.next.append(handler)
                self.ends = []
                return
        self._leave(0)

    def _try(self, statement: TryStmt) -> None:
        if statement.finally_body is not None:
            self._finallies = [*self._finallies, statement.finally_body]
        outer = self.landing
        with self.region(frozenset()):
            before = self.point()
            here, kept = self.ends, self.regions
            self.ends = []
            landing = self.point()
            if outer is not None:
                landing.maybe.append(outer)
            handlers = []
            for caught in statement.types:
                self.ends = [(landing, False)]
                handlers.append((caught, self.point()))
            self.ends, self.regions = here, kept
            before.maybe.append(landing)
            self.landing = landing
            self._handlers.append(handlers)
            self.block(statement.body)
            self._handlers.pop()
            self.landing = outer
            self.block(statement.else_body)
            joined = self.ends
            for (_, start), name, block in zip(
                handlers, statement.vars, statement.handlers, strict=True
            ):
                self.ends = [(start, True)]
                if name is not None:
                    self.bind(name, self.point())
                self.block(block)
                joined += self.ends
            self.ends = joined
            if statement.finally_body is not None:
                self._finallies = self._finallies[:-1]
                self.block(statement.finally_body)

    def _with(self, statement: WithStmt) -> None:
        before = []
        for manager, target in zip(statement.expr, statement.target, strict=True):
            self.expression(manager)
            one = self.point()
            one.foreign = True
            before.append(one)
            if target is not None:
                self.store(target, manager, one)
                if isinstance(manager, CallExpr):
                    self.link(target, manager, one)
            self.graph.handed[manager] = target or statement, one
        self.block(statement.body)
        managers = zip(statement.expr, statement.target, before, strict=True)
        for manager, target, start in managers:
            leaving = self.point(target or statement)
            leaving.suppressor, leaving.foreign = manager, True
            start.skipped_by = manager
            self.ends.append((start, False))

    def _match(self, statement: MatchStmt) -> None:
        self.expression(statement.subject)
        joined: Ends = []
        cases = zip(statement.patterns, statement.guards, statement.bodies, strict=True)
        with self.region(mentions(statement.subject)) as region:
            for pattern, guard, block in cases:
                one = self.branch(statement.subject, region)
                inside = self.point()
                for name in bound_by(pattern):
                    self.store(name, statement.subject, inside)
                for name, source in captured(pattern, statement.subject):
                    self.link(name, source, inside)
                ways: Ends = [(one, True)]
                if guard is not None:
                    self.expression(guard)
                    ways.append((self.branch(guard, region), True))
                self.block(block)
                joined += self.ends
                # `_`, or a name, never fails to match.
                matches_all = isinstance(pattern, AsPattern) and pattern.pattern is None
                self.ends = [] if guard is None and matches_all else ways
            # mypy knows whether the cases are exhaustive: there is no error on the way past them.
            joined += [(end, False) for end, _ in self.ends]
        self.ends = joined

    def _definition(self, statement: Statement) -> None:
        function = function_of(statement)
        if isinstance(statement, ClassDef):
            self._decorated(statement.decorators)
            self.block(statement.defs)
        elif function is None:
            return
        elif self.graph.is_module:
            # It has a graph of its own; here counts what it does to the module's variables.
            inner = graph_of(function)
            self.graph.shared |= inner.shared
            self.graph.reached |= {one.node for one in inner.of_node if isinstance(one, NameExpr)}
        else:
            if isinstance(statement, Decorator):
                self._decorated(statement.original_decorators)
            self.function(function)

    def _decorated(self, decorators: list[Expression]) -> None:
        for one in decorators:
            self.expression(one)


def names_in(tree: MypyFile) -> set[str]:
    """Return the names that a file reads, those of attributes too."""
    found = [function_of(one) for one in statements(Block(tree.defs))]
    functions = [one for one in found if one is not None]
    return {
        one.name
        for graph in (graph_of(tree), *map(graph_of, functions))
        for one in graph.of_node
        if isinstance(one, NameExpr | MemberExpr)
    }


def _never_runs(statement: IfStmt) -> bool:
    """Tell whether an `if` is for type checkers alone.

    Where it has an `else`, at which mypy does not look, it stands for that.
    """
    test, rest = statement.expr[0], statement.else_body
    # mypy puts an empty `else` where it knows that it is never come to.
    if rest is not None and rest.body:
        return False
    return isinstance(test, NameExpr | MemberExpr) and test.name in ("MYPY", "TYPE_CHECKING")


def _class(expression: Expression | None) -> TypeInfo | None:
    """Return the class that is raised or caught, if that is plain to see."""
    match expression:
        case RefExpr(node=TypeInfo() as info):
            return info
    callee = getattr(expression, "callee", None)
    return _class(callee) if isinstance(callee, RefExpr) else None
