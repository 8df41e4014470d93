"""The statements of a file, what they store into names, and which names are read.

What is said here needs no following of the program: a variable that is assigned once has one value,
wherever it is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

from mypy.nodes import (
    AssignmentExpr,
    AssignmentStmt,
    Block,
    ClassDef,
    Context,
    Decorator,
    Expression,
    ExpressionStmt,
    ForStmt,
    FuncDef,
    IfStmt,
    LambdaExpr,
    Lvalue,
    MatchStmt,
    MemberExpr,
    MypyFile,
    NameExpr,
    Node,
    OperatorAssignmentStmt,
    OverloadedFuncDef,
    Statement,
    TryStmt,
    TupleExpr,
    WhileStmt,
    WithStmt,
)
from mypy.server.subexpr import get_subexpressions


def statements(body: Sequence[Statement]) -> Iterator[Statement]:
    """Yield the statements of a function, those of blocks and of functions in it included."""
    for statement in body:
        yield statement
        for inner in _blocks(statement):
            if inner is not None:
                yield from statements(inner.body)


def _blocks(statement: Statement) -> list[Block | None]:
    match statement:
        case IfStmt(body=bodies, else_body=rest):
            return [*bodies, rest]
        case ForStmt(body=body, else_body=rest) | WhileStmt(body=body, else_body=rest):
            return [body, rest]
        case TryStmt(body=body, handlers=handlers, else_body=rest, finally_body=last):
            return [body, *handlers, rest, last]
        case MatchStmt(bodies=bodies):
            return [*bodies]
        case WithStmt(body=body) | ClassDef(defs=body):
            return [body]
        case Block():
            return [statement]
        case OverloadedFuncDef(items=parts, impl=last):
            parts = parts if last is None else [*parts, last]
            return [block for part in parts for block in _blocks(part)]
    function = function_of(statement)
    return [] if function is None else [function.body]


def function_of(definition: Statement | None) -> FuncDef | None:
    """Return the function that a definition, decorated or overloaded, has a body for."""
    match definition:
        case FuncDef():
            return definition
        case Decorator(func=function):
            return function
        case OverloadedFuncDef(impl=inner):
            return function_of(inner)
    return None


def targets(statement: Statement) -> list[Lvalue]:
    """Return what a statement stores into, patterns aside."""
    match statement:
        case AssignmentStmt(lvalues=found):
            return found
        case OperatorAssignmentStmt(lvalue=found) | ForStmt(index=found):
            return [found]
        case WithStmt(target=several) | TryStmt(vars=several):
            return [one for one in several if one is not None]
    return []


class Assignments:
    """What the names of a file are assigned, and where they are read."""

    def __init__(self, tree: MypyFile) -> None:
        self.statements = tree.defs
        values: dict[Node | None, Expression] = {}
        stored: list[NameExpr] = []
        self._dropped: set[Context] = set()
        self._targets: list[Expression] = []
        for statement in statements(tree.defs):
            self._targets += targets(statement)
            if isinstance(statement, AssignmentStmt):
                for target in statement.lvalues:
                    values.update(_pairs(target, statement.rvalue))
            elif isinstance(statement, ExpressionStmt):
                self._dropped.add(statement.expr)
            elif isinstance(statement, MatchStmt):
                stored += [name for one in statement.patterns for name in _names(one)]
        used = get_subexpressions(tree)
        stored += [name for one in self._targets for name in _names(one)]
        stored += [one.target for one in used if isinstance(one, AssignmentExpr)]
        counts: dict[Node | None, int] = {}
        for name in stored:
            counts[name.node] = counts.get(name.node, 0) + 1
        self.values = {node: value for node, value in values.items() if counts.get(node) == 1}
        self._stored = set(counts)
        is_stored = set(stored)
        # What is asked of a variable, by its name: `x.resize`.
        self.asked = {
            (one.expr.node, one.name)
            for one in used
            if isinstance(one, MemberExpr) and isinstance(one.expr, NameExpr)
        }
        self.reads = [one for one in used if isinstance(one, NameExpr) and one not in is_stored]

    def value(self, found: Expression) -> Expression:
        """Return what a name is assigned, if it is assigned once; else the expression itself."""
        return self.values.get(found.node, found) if isinstance(found, NameExpr) else found

    def is_dropped(self, value: Context) -> bool:
        """Tell whether nobody reads a value: it has no name, or one that the file never reads."""
        names = [node for node, one in self.values.items() if one is value]
        read = {one.node for one in self.reads}
        return value in self._dropped or any(one not in read for one in names)

    def is_stored(self, node: Node | None) -> bool:
        """Tell whether a variable is assigned anything, as a parameter may be."""
        return node in self._stored

    def is_changed(self, node: Node | None) -> bool:
        """Tell whether an attribute of what a variable holds is assigned."""
        return any(
            isinstance(target, MemberExpr) and any(one.node is node for one in _names(target))
            for target in self._targets
        )

    @cached_property
    def in_vain(self) -> dict[Expression, OperatorAssignmentStmt]:
        """The ``p -= ...`` of names of a ``for`` loop that nobody reads after it, by the `p`."""
        return {
            statement.lvalue: statement
            for loop in statements(self.statements)
            if isinstance(loop, ForStmt)
            for statement in _of_one_turn(loop.body)
            if isinstance(statement, OperatorAssignmentStmt)
            and isinstance(statement.lvalue, NameExpr)
            and statement.lvalue.node in {name.node for name in _names(loop.index)}
            and not self._is_read_later(statement.lvalue.node, loop, statement)
        }

    def _is_read_later(self, variable: Node | None, loop: ForStmt, statement: Statement) -> bool:
        """Tell whether a variable of a loop may be read after a statement of its body."""
        inside = get_subexpressions(loop.body)
        later: list[Node] = [one for one in inside if isinstance(one, LambdaExpr)]
        later += [one for one in statements(loop.body.body) if function_of(one) is not None]
        kept = {name for one in later for name in _names(one)}
        known = {one for one in inside if _end(one) <= _end(statement) and one not in kept}
        for other in statements(self.statements):
            # Another loop gives its name a value of its own.
            match other:
                case ForStmt(index=index, body=body) if loop not in [
                    other,
                    *statements(body.body),
                ] and variable in {one.node for one in _names(index)}:
                    known.update(get_subexpressions(body))
        return any(one.node is variable and one not in known for one in self.reads)


_last: list[Assignments] = []


def assignments_of(tree: MypyFile) -> Assignments:
    """Return what is known of a file, which is read once; files are checked one after another."""
    # The file may be an old one: the daemon puts new statements into it.
    if not _last or _last[0].statements is not tree.defs:
        _last[:] = [Assignments(tree)]
    return _last[0]


def _end(node: Context) -> tuple[int, int]:
    return node.end_line or node.line, node.end_column or node.column


def _of_one_turn(body: Block | None) -> Iterator[Statement]:
    """Yield the statements that a turn of a loop runs at most once."""
    for statement in body.body if body is not None else ():
        yield statement
        if isinstance(statement, IfStmt | TryStmt | WithStmt | MatchStmt):
            for inner in _blocks(statement):
                yield from _of_one_turn(inner)


def _pairs(target: Expression, value: Expression) -> Iterator[tuple[Node | None, Expression]]:
    if isinstance(target, NameExpr):
        yield target.node, value
    elif isinstance(target, TupleExpr) and isinstance(value, TupleExpr):
        # mypy reports what is too many or too few.
        for one, two in zip(target.items, value.items, strict=False):
            yield from _pairs(one, two)


def _names(node: Node) -> list[NameExpr]:
    return [one for one in get_subexpressions(node) if isinstance(one, NameExpr)]
