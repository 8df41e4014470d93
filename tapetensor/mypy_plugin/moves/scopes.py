"""What functions declare as global."""

from __future__ import annotations

from collections.abc import Iterator

from mypy.nodes import Block, Decorator, FuncDef, GlobalDecl, OverloadedFuncDef, Statement


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


def declared_global(block: Block) -> Iterator[str]:
    """Yield the names that are declared global somewhere in a block."""
    pending: list[Block] = [block]
    while pending:
        for statement in pending.pop().body:
            if isinstance(statement, GlobalDecl):
                yield from statement.names
            function = function_of(statement)
            if function is not None:
                pending.append(function.body)
            for name in ("body", "else_body", "finally_body", "handlers", "bodies", "defs"):
                inner = getattr(statement, name, None)
                blocks = inner if isinstance(inner, list) else [inner]
                pending += [one for one in blocks if isinstance(one, Block)]
