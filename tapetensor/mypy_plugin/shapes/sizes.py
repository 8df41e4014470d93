"""Sizes that are computed in the program: ``c // h`` and ``2 * n`` in a shape that is asked for.

For mypy the result of arithmetic on ints is `int`. So the expressions are read, and names that are
assigned once for what they were assigned. What they are computed from are names and literals in
types, whose values never change.
"""

from __future__ import annotations

from collections.abc import Iterator

from mypy.checker import TypeChecker
from mypy.nodes import (
    LDEF,
    AssignmentExpr,
    AssignmentStmt,
    Block,
    ClassDef,
    Decorator,
    Expression,
    ForStmt,
    FuncItem,
    IfStmt,
    Lvalue,
    MatchStmt,
    NameExpr,
    Node,
    OperatorAssignmentStmt,
    OpExpr,
    OverloadedFuncDef,
    StarExpr,
    Statement,
    TryStmt,
    TupleExpr,
    Var,
    WhileStmt,
    WithStmt,
)
from mypy.server.subexpr import get_subexpressions

from tapetensor.mypy_plugin import flow
from tapetensor.mypy_plugin.shapes.calls import type_of
from tapetensor.mypy_plugin.shapes.dims import ANY, INT, Dim, Dims, Open, Size
from tapetensor.mypy_plugin.shapes.reading import read_dim

# How many names to follow: `n = m`, `m = k`, ...
_MOST_NAMES = 10


class _Assigned:
    """What the names of a function are assigned, for the function that is being checked."""

    def __init__(self) -> None:
        self.body: Block | None = None
        self.values: dict[Node, Expression] = {}


_found = _Assigned()


def sharpened(shape: Dims, asked: Expression | None, api: TypeChecker) -> Dims:
    """Return a shape with sizes in the place of ints that are computed from known ones.

    Args:
        shape: what mypy says of it.
        asked: the expression for it.
        api: the type checker.
    """
    if INT not in shape or asked is None:
        return shape
    display = value_of(asked, api) or asked
    if not isinstance(display, TupleExpr) or len(display.items) != len(shape):
        return shape
    if any(isinstance(item, StarExpr) for item in display.items):
        return shape
    return tuple(
        _computed(item, api, _MOST_NAMES) if dim is INT else dim
        for dim, item in zip(shape, display.items, strict=True)
    )


def _computed(expression: Expression, api: TypeChecker, names: int) -> Dim:
    """Return the size that an expression stands for; INT for one that is not known."""
    dim = read_dim(flow.type_of(api, expression) or type_of(expression, api))
    if dim is not INT:
        return INT if dim is None or dim is ANY else dim
    if isinstance(expression, OpExpr):
        lhs, rhs = [_computed(one, api, names) for one in (expression.left, expression.right)]
        if isinstance(lhs, Open) or isinstance(rhs, Open):
            return INT
        return _result(expression.op, lhs, rhs) or INT
    value = value_of(expression, api) if names else None
    return INT if value is None else _computed(value, api, names - 1)


def _result(op: str, lhs: Size, rhs: Size) -> Size | None:
    if op == "+":
        return lhs + rhs
    if op == "-":
        return lhs - rhs
    if op == "*":
        return lhs * rhs
    if op != "//" or rhs.literal == 0:
        return None
    if lhs.literal is not None and rhs.literal is not None:
        return Size.of(lhs.literal // rhs.literal)
    return lhs / rhs


def value_of(expression: Expression, api: TypeChecker) -> Expression | None:
    """Return what a local name is assigned, if it is assigned once."""
    if not isinstance(expression, NameExpr) or expression.kind != LDEF:
        return None
    unit = flow.unit(api)
    if not isinstance(unit, FuncItem) or not isinstance(expression.node, Var):
        return None
    # Not by the function itself: the daemon puts a new body into the old one.
    if _found.body is not unit.body:
        _found.body = unit.body
        _found.values = _assigned_once(unit.body)
    return _found.values.get(expression.node)


def _assigned_once(body: Block) -> dict[Node, Expression]:
    values: dict[Node, Expression] = {}
    stored: list[Node] = []
    for statement in statements(body):
        if isinstance(statement, MatchStmt):
            # Patterns assign too.
            return {}
        for target in targets(statement):
            stored += _names(target)
        if isinstance(statement, AssignmentStmt) and len(statement.lvalues) == 1:
            target = statement.lvalues[0]
            if isinstance(target, NameExpr) and target.node is not None:
                values[target.node] = statement.rvalue
    for expression in get_subexpressions(body):
        if isinstance(expression, AssignmentExpr):
            stored += _names(expression.target)
    return {name: value for name, value in values.items() if stored.count(name) == 1}


def statements(body: Block) -> Iterator[Statement]:
    """Yield the statements of a function, those of blocks and of functions in it included."""
    for statement in body.body:
        yield statement
        for inner in _blocks(statement):
            if inner is not None:
                yield from statements(inner)


def _blocks(statement: Statement) -> list[Block | None]:
    if isinstance(statement, IfStmt):
        return [*statement.body, statement.else_body]
    if isinstance(statement, ForStmt | WhileStmt):
        return [statement.body, statement.else_body]
    if isinstance(statement, TryStmt):
        return [
            statement.body,
            *statement.handlers,
            statement.else_body,
            statement.finally_body,
        ]
    if isinstance(statement, WithStmt):
        return [statement.body]
    if isinstance(statement, Block):
        return [statement]
    if isinstance(statement, ClassDef):
        return [statement.defs]
    if isinstance(statement, OverloadedFuncDef):
        return [block for item in statement.items for block in _blocks(item)]
    function = statement.func if isinstance(statement, Decorator) else statement
    return [function.body] if isinstance(function, FuncItem) else []


def targets(statement: Statement) -> list[Lvalue]:
    """Return what a statement stores into, patterns aside."""
    if isinstance(statement, AssignmentStmt):
        return statement.lvalues
    if isinstance(statement, OperatorAssignmentStmt):
        return [statement.lvalue]
    if isinstance(statement, ForStmt):
        return [statement.index]
    if isinstance(statement, WithStmt):
        return [one for one in statement.target if one is not None]
    if isinstance(statement, TryStmt):
        return [one for one in statement.vars if one is not None]
    return []


def _names(target: Expression) -> list[Node]:
    return [
        one.node
        for one in get_subexpressions(target)
        if isinstance(one, NameExpr) and one.node is not None
    ]
