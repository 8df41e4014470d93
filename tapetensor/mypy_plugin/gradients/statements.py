"""What statements do to the variables of a function, and the report on an outermost function."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Final

from mypy.nodes import (
    AssertStmt,
    AssignmentStmt,
    Block,
    BreakStmt,
    Context,
    ContinueStmt,
    Decorator,
    Expression,
    ExpressionStmt,
    ForStmt,
    FuncDef,
    FuncItem,
    IfStmt,
    Lvalue,
    MatchStmt,
    MypyFile,
    NameExpr,
    OperatorAssignmentStmt,
    OverloadedFuncDef,
    RaiseStmt,
    ReturnStmt,
    Statement,
    TempNode,
    TryStmt,
    Var,
    WhileStmt,
    WithStmt,
)
from mypy.server.subexpr import get_subexpressions
from mypy.types import CallableType, get_proper_type
from typing_extensions import override

from tapetensor.mypy_plugin.blocks import function_of, statements, targets
from tapetensor.mypy_plugin.codes import TAPE_DROPPED
from tapetensor.mypy_plugin.gradients.calls import Calls
from tapetensor.mypy_plugin.gradients.expressions import Variables, instance_of
from tapetensor.mypy_plugin.gradients.fields import declared, is_model
from tapetensor.mypy_plugin.gradients.ledger import Call, asks
from tapetensor.mypy_plugin.gradients.places import Place
from tapetensor.mypy_plugin.gradients.values import NOTHING, Function, Value, called, joined
from tapetensor.mypy_plugin.moves.patterns import bound_by

# Functions are looked into so deep, and so many calls and statements are gone through for one
# unit: loops within loops, in functions within functions, are many.
_DEEPEST: Final = 8
_MOST_CALLS: Final = 400
_MOST_STATEMENTS: Final = 20_000
# So many calls are gone through for one file, and for a unit that comes when they are used up.
_MOST_CALLS_OF_FILE: Final = 1000
_FEWEST_CALLS: Final = 20


class Allowance:
    """How many calls are left for the units of a file: each looks into the same functions."""

    def __init__(self) -> None:
        self._left = _MOST_CALLS_OF_FILE

    def of_unit(self) -> int:
        """Return how many calls the next unit may go through."""
        return max(_FEWEST_CALLS, min(_MOST_CALLS, self._left))

    def spend(self) -> None:
        """Take note of a call that is gone through."""
        self._left -= 1


class Statements(Calls):
    """Goes through the statements of a function."""

    def __init__(self, unit: FuncItem | MypyFile, tree: MypyFile, allowance: Allowance) -> None:
        super().__init__(unit, tree)
        # Execution does not come here: something was returned or raised.
        self._is_over = False
        self._returned: list[Value] = []
        self._loops: list[_Loop] = []
        # What has a name, by that, and where it was computed.
        self._computed: dict[Var, Expression] = {}
        self._allowance = allowance
        self._calls_left = allowance.of_unit()
        self._statements_left = _MOST_STATEMENTS

    def go(self) -> None:
        """Go through the unit."""
        if isinstance(self.unit, MypyFile):
            self._all(self.unit.defs)
        else:
            self._analyse(self.unit)
        for start in self.pending.values():
            self.ask(start, None)

    def _analyse(self, function: FuncItem) -> None:
        """Go through a function whose arguments are as it declares them."""
        self.calls.append(Call(function, None, asks(function)))
        for number in range(len(function.arguments)):
            self._declare(function, number)
        if function is self.unit and function.info:
            receiver = self.receiver(function)
            if receiver is not None and is_model(receiver.type):
                self.module = receiver.place
        self._body(function)
        for one in (*self._returned, *self.yielded):
            self.ask(one, None)
        if function is self.unit:
            self._say_what_is_not_read(function)
        self.calls.pop()

    def _note(self, lvalues: list[Lvalue], expression: Expression, assigned: Value) -> None:
        """Take note of what a method of a module computes with its parameters, by its name."""
        is_here = self.module is not None and len(self.calls) == 1
        met = [one for one in assigned.met if self.module and one.root == self.module.root]
        match lvalues:
            case [NameExpr(node=Var() as variable)] if is_here and assigned.owns and met:
                self._computed.setdefault(variable, expression)

    def _say_what_is_not_read(self, function: FuncItem) -> None:
        """Report what was computed with parameters and given a name that nothing reads."""
        if not self._computed:
            return
        stored = {one for each in statements(function.body) for one in targets(each)}
        names = [one for one in get_subexpressions(function.body) if isinstance(one, NameExpr)]
        read = {one.node for one in names if one not in stored}
        for variable, expression in self._computed.items():
            if variable not in read and not variable.name.startswith("_"):
                self.said[expression] = (
                    TAPE_DROPPED,
                    f'{function.name}: "{variable.name}" is not used after this: what it was '
                    "computed from gets no gradient by it; use it, or leave it out (or name it "
                    f'"_{variable.name}")',
                )

    def _declare(self, function: FuncItem, number: int) -> None:
        variable = function.arguments[number].variable
        signature = get_proper_type(function.type)
        place = Place(variable)
        if number == 0 and variable.is_self and function.info:
            self.variables[variable] = declared(instance_of(function.info), place, variable.name)
        elif isinstance(signature, CallableType) and number < len(signature.arg_types):
            self.variables[variable] = declared(signature.arg_types[number], place, variable.name)

    def _body(self, function: FuncItem) -> None:
        self._is_over, self._returned, self._loops, self.yielded = False, [], [], []
        self.block(function.body)

    @override
    def run(self, node: Context, function: Function, arguments: dict[int, Value]) -> Value | None:
        item = function.item
        known = any(one.function is item for one in self.calls)
        if known or len(self.calls) > _DEEPEST or not self._calls_left:
            return None
        self._calls_left -= 1
        self._allowance.spend()
        kept = self.variables, self._is_over, self._returned, self._loops, self.yielded
        self.variables = dict(function.around or {})
        is_inner = function.around is not None
        self.calls.append(Call(item, None if is_inner else node, asks(item)))
        for number, one in enumerate(item.arguments):
            value = arguments.get(number, NOTHING)
            if value == NOTHING:
                self._declare(item, number)
                value = self.variables.get(one.variable, NOTHING)
            self.variables[one.variable] = called(value, one.variable.name)
        with self.within(node):
            self._body(item)
        returned = [Value(items=tuple(self.yielded))] if self.yielded else self._returned
        self.calls.pop()
        self.variables, self._is_over, self._returned, self._loops, self.yielded = kept
        return joined(returned) if returned else None

    @override
    def define(self, function: FuncItem) -> Value:
        for one in get_subexpressions(function.body):
            if isinstance(one, NameExpr) and one.node in self.variables:
                self.use(self.variables[one.node])
        around = dict(self.variables)
        kept = self.variables, self._is_over, self._returned, self._loops, self.yielded
        self.variables = dict(around)
        self._analyse(function)
        self.variables, self._is_over, self._returned, self._loops, self.yielded = kept
        return Value(function=Function(function, None, around))

    # ------------------------------------------------------------------------------- statements

    def block(self, block: Block | None) -> None:
        """Go through a block."""
        if block is not None and not block.is_unreachable:
            self._all(block.body)

    def _all(self, statements: Iterable[Statement]) -> None:
        for one in statements:
            self._statements_left -= 1
            if self._is_over or self._statements_left < 0:
                return
            self._statement(one)

    def _statement(self, statement: Statement) -> None:
        match statement:
            case ExpressionStmt(expr=value):
                self.value(value)
            case AssignmentStmt(rvalue=TempNode()):
                pass
            case AssignmentStmt(lvalues=lvalues, rvalue=expression):
                assigned = self.value(expression)
                for target in lvalues:
                    self.bind(target, assigned)
                self._note(lvalues, expression, assigned)
            case OperatorAssignmentStmt(op=symbol, lvalue=target, rvalue=expression):
                # mypy makes an expression of its own of it, which has this part.
                self.bind(target, self.arithmetic(expression, symbol, target, expression))
            case IfStmt():
                self._if(statement)
            case ForStmt(expr=expression, index=target):
                self._loop(statement, self.value(expression), target)
            case WhileStmt():
                self._loop(statement, NOTHING, None)
            case TryStmt():
                self._try(statement)
            case WithStmt(expr=managers, target=names, body=body):
                for manager, name in zip(managers, names, strict=True):
                    entered = self.value(manager)
                    if name is not None:
                        self.bind(name, entered)
                self.block(body)
            case MatchStmt():
                self._match(statement)
            case ReturnStmt(expr=result):
                self._returned.append(self.value(result))
                self._is_over = True
            case RaiseStmt(expr=raised):
                self.value(raised)
                self._is_over = True
            case BreakStmt() | ContinueStmt() if self._loops:
                loop = self._loops[-1]
                ways = loop.breaks if isinstance(statement, BreakStmt) else loop.continues
                ways.append(dict(self.variables))
                self._is_over = True
            case AssertStmt(expr=test):
                self.value(test)
            case FuncDef() | Decorator() | OverloadedFuncDef():
                self._definition(statement)
            case Block():
                self.block(statement)
            case _:
                pass

    def _definition(self, statement: FuncDef | Decorator | OverloadedFuncDef) -> None:
        function = function_of(statement)
        # A function of the file is a unit of its own.
        if function is not None and (self.calls or not isinstance(self.unit, MypyFile)):
            self.variables[statement] = self.define(function)

    def _branches(self, blocks: Iterable[Block | None]) -> None:
        """Go through blocks of which one is executed."""
        before, after = self.variables, []
        for block in blocks:
            self.variables, self._is_over = dict(before), False
            self.block(block)
            if not self._is_over:
                after.append(self.variables)
        self._join(after)

    def _join(self, ways: list[Variables]) -> None:
        self._is_over = not ways
        if ways:
            self.variables = _joined(ways)

    def _if(self, statement: IfStmt) -> None:
        reached: list[Block | None] = []
        for test, block in zip(statement.expr, statement.body, strict=True):
            known = self.truth(test)
            if known is not False:
                reached.append(block)
            if known:
                break
        else:
            reached.append(statement.else_body)
        self._branches(reached)

    def _loop(
        self, statement: ForStmt | WhileStmt, items: Value, target: Expression | None
    ) -> None:
        """Go through a loop twice: what the first pass has left is found by the second."""
        ways = [dict(self.variables)]
        turns = [NOTHING] if target is None else self.turns(items, statement)
        if len(turns) == 1:
            turns *= 2
        for number, turn in enumerate(turns):
            loop = _Loop()
            self._loops.append(loop)
            with self.within(("pass", number)):
                if target is not None:
                    self.bind(target, turn)
                elif isinstance(statement, WhileStmt):
                    self.value(statement.expr)
                self.block(statement.body)
            self._loops.pop()
            ends = [*loop.continues, *([] if self._is_over else [self.variables])]
            ways += loop.breaks
            self._is_over = not ends
            if not ends:
                break
            is_last = number == len(turns) - 1
            self.variables = _joined(ends if is_last else [ways[0], *ends])
        if not self._is_over:
            ways.append(self.variables)
        self._join(ways)
        self.block(statement.else_body)

    def _try(self, statement: TryStmt) -> None:
        before = dict(self.variables)
        self.block(statement.body)
        if not self._is_over:
            self.block(statement.else_body)
        ways = [] if self._is_over else [self.variables]
        start = _joined([before, self.variables])
        for handler in statement.handlers:
            self.variables, self._is_over = dict(start), False
            self.block(handler)
            if not self._is_over:
                ways.append(self.variables)
        ended = not ways
        self._join(ways or [start])
        self.block(statement.finally_body)
        self._is_over |= ended

    def _match(self, statement: MatchStmt) -> None:
        subject = self.value(statement.subject)
        before, ways = self.variables, [dict(self.variables)]
        for pattern, guard, block in zip(
            statement.patterns, statement.guards, statement.bodies, strict=True
        ):
            self.variables, self._is_over = dict(before), False
            for name in bound_by(pattern):
                self.bind(name, self.part(subject, name) if subject.items else subject)
            self.value(guard)
            self.block(block)
            if not self._is_over:
                ways.append(self.variables)
        self._join(ways)


class _Loop:
    """The variables at the ways out of a pass of a loop."""

    def __init__(self) -> None:
        self.breaks: list[Variables] = []
        self.continues: list[Variables] = []


def _joined(ways: list[Variables]) -> Variables:
    """Return the variables after ways that come together."""
    names: dict[Hashable, None] = dict.fromkeys(name for one in ways for name in one)
    return {name: joined(one[name] for one in ways if name in one) for name in names}
