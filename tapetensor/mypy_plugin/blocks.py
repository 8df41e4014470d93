"""The statements of a function, and what they store into."""

from __future__ import annotations

from collections.abc import Iterator

from mypy.nodes import (
    AssignmentStmt,
    Block,
    ClassDef,
    Decorator,
    ForStmt,
    FuncDef,
    IfStmt,
    Lvalue,
    MatchStmt,
    OperatorAssignmentStmt,
    OverloadedFuncDef,
    Statement,
    TryStmt,
    WhileStmt,
    WithStmt,
)


def statements(body: Block) -> Iterator[Statement]:
    """Yield the statements of a function, those of blocks and of functions in it included."""
    for statement in body.body:
        yield statement
        for inner in _blocks(statement):
            if inner is not None:
                yield from statements(inner)


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
