"""The room of contexts: one that is made and never entered, which does nothing."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path
from typing import Final

from mypy.nodes import Context
from mypy.plugin import FunctionContext
from mypy.types import Type

from tapetensor.mypy_plugin import flow
from tapetensor.mypy_plugin.codes import TAPE_DROPPED

_CONTEXT: Final = "tapetensor.tape.context.GradientContext"


def function_result(fullname: str) -> Callable[[FunctionContext], Type] | None:
    """Answer for the constructor of `GradientContext`."""
    return bare_context if fullname == _CONTEXT else None


def bare_context(context: FunctionContext) -> Type:
    """Report a context that nothing can enter, for nobody reads the name it is given."""
    if _is_bare(flow.tree(context.api).path, context.context):
        flow.fail(
            context.api,
            "GradientContext: this one is never entered, so no tape belongs to it; write "
            "`with tt.GradientContext():` around what it is for",
            context.context,
            TAPE_DROPPED,
        )
    return context.default_return_type


def _is_bare(path: str, where: Context) -> bool:
    """Tell whether the value of a call is dropped, or given to a name that the file never reads."""
    try:
        tree = ast.parse(Path(path).read_bytes())
    except (OSError, SyntaxError, ValueError):
        return False
    read = {
        one.id
        for one in ast.walk(tree)
        if isinstance(one, ast.Name) and not isinstance(one.ctx, ast.Store)
    }
    for statement in ast.walk(tree):
        match statement:
            case ast.Expr(value=ast.Call() as call):
                is_lost = True
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=ast.Call() as call)
                | ast.AnnAssign(target=ast.Name(id=name), value=ast.Call() as call)
            ):
                is_lost = name not in read
            case _:
                continue
        if (call.lineno, call.col_offset) == (where.line, where.column):
            return is_lost
    return False
