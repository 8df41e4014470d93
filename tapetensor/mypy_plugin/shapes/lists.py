"""How many items a list has, where the program says so: ``[f(x) for x in range(n)]``, appends.

mypy's type of a list says nothing of its length. So the expression is read, and for a local name
what the function does with it: a list that is built in plain sight, and of which nothing else is
asked but its items, has as many items as were put into it.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from functools import reduce

from mypy.checker import TypeChecker
from mypy.nodes import (
    ARG_POS,
    LDEF,
    AssignmentStmt,
    Block,
    BreakStmt,
    CallExpr,
    Context,
    ContinueStmt,
    DelStmt,
    Expression,
    ExpressionStmt,
    ForStmt,
    FuncItem,
    GeneratorExpr,
    IndexExpr,
    ListComprehension,
    ListExpr,
    MemberExpr,
    NameExpr,
    RefExpr,
    RevealExpr,
    SliceExpr,
    StarExpr,
    Statement,
)
from mypy.server.subexpr import get_subexpressions
from mypy.types import TupleType, UnpackType, get_proper_type

from tapetensor.mypy_plugin import flow
from tapetensor.mypy_plugin.assignments import statements
from tapetensor.mypy_plugin.shapes.calls import type_of
from tapetensor.mypy_plugin.shapes.reading import read_tensor
from tapetensor.mypy_plugin.shapes.sizes import size_of
from tapetensor.rules.dims import ANY, Dim, Size, computed, total

# What looks at the items of a list, and leaves it as it is.
_LOOKING = (
    *[f"builtins.{name}" for name in ("len", "zip", "enumerate", "sum", "reversed", "tuple")],
    *[f"tapetensor.tensor.joining.{name}" for name in ("concat", "stack")],
)


def length_of(found: Expression, used: Context, api: TypeChecker) -> Dim:
    """Return how many items an iterable has; ANY where that is not known.

    Args:
        used: the expression in which it is used, behind what builds it.
    """
    known = get_proper_type(type_of(found, api))
    if isinstance(known, TupleType):
        is_open = any(isinstance(item, UnpackType) for item in known.items)
        return ANY if is_open else Size.of(len(known.items))
    tensor = read_tensor(known)
    if tensor is not None and tensor.shape:
        return tensor.shape[0]
    if isinstance(found, ListExpr):
        is_open = any(isinstance(item, StarExpr) for item in found.items)
        return ANY if is_open else Size.of(len(found.items))
    if isinstance(found, ListComprehension):
        generator = found.generator
        if len(generator.sequences) > 1 or any(generator.condlists) or any(generator.is_async):
            return ANY
        return length_of(generator.sequences[0], used, api)
    if isinstance(found, CallExpr) and isinstance(found.callee, RefExpr):
        return _length_of_call(found, found.callee.fullname, used, api)
    return _length_of_name(found, used, api) if isinstance(found, NameExpr) else ANY


def _length_of_call(call: CallExpr, called: str, used: Context, api: TypeChecker) -> Dim:
    if not all(kind is ARG_POS for kind in call.arg_kinds if called != "builtins.zip"):
        return ANY
    if called == "builtins.range" and len(call.args) < 3:
        ends = [size_of(one, api) for one in call.args]
        return computed(lambda *known: reduce(operator.sub, reversed(known)), *ends)
    if called in ("builtins.enumerate", "builtins.reversed", "builtins.list", "builtins.sorted"):
        return length_of(call.args[0], used, api) if call.args else ANY
    if called == "builtins.zip":
        lengths = [
            length_of(one, used, api)
            for one, kind in zip(call.args, call.arg_kinds, strict=True)
            if kind is ARG_POS
        ]
        return lengths[0] if lengths and all(one == lengths[0] for one in lengths) else ANY
    return ANY


def _length_of_name(name: NameExpr, used: Context, api: TypeChecker) -> Dim:
    """Return the length of a local list; ANY where more is done with it than to build it."""
    unit = flow.unit(api)
    if name.kind != LDEF or not isinstance(unit, FuncItem):
        return ANY
    for block in _blocks_of(unit.body):
        for place, statement in enumerate(block.body):
            made = _assigned(statement, name)
            if made is None:
                continue
            later = block.body[place + 1 :]
            ends = [at for at, one in enumerate(later) if used in get_subexpressions(one)]
            if not ends or isinstance(made, NameExpr):
                return ANY
            appends = [_appended(one, name, used, api) for one in later[: ends[0]]]
            counts = [count for found, count in appends if found]
            uses = 1 + sum(found for found, _ in appends)
            if _count_uses(unit.body, name) != uses:
                return ANY
            return total([length_of(made, used, api), *counts])
    return ANY


def _blocks_of(body: Block) -> Iterator[Block]:
    yield body
    for statement in statements(body.body):
        if isinstance(statement, ForStmt):
            yield statement.body


def _assigned(statement: Statement, name: NameExpr) -> Expression | None:
    if isinstance(statement, AssignmentStmt) and len(statement.lvalues) == 1:
        target = statement.lvalues[0]
        if isinstance(target, NameExpr) and target.node is name.node:
            return statement.rvalue
    return None


def _appended(
    statement: Statement, name: NameExpr, used: Context, api: TypeChecker
) -> tuple[int, Dim]:
    """Return how many appends a statement has, and how many items they add."""
    if isinstance(statement, ExpressionStmt):
        return (1, Size.of(1)) if _is_append(statement.expr, name) else (0, ANY)
    if not isinstance(statement, ForStmt):
        return 0, ANY
    inner = [one.expr for one in statement.body.body if isinstance(one, ExpressionStmt)]
    appends = sum(_is_append(one, name) for one in inner)
    if not appends:
        return 0, ANY
    leaves = any(
        isinstance(one, BreakStmt | ContinueStmt) for one in statements(statement.body.body)
    )
    turns = ANY if leaves else length_of(statement.expr, used, api)
    return appends, computed(operator.mul, Size.of(appends), turns)


def _is_append(expression: Expression, name: NameExpr) -> bool:
    if not isinstance(expression, CallExpr) or not isinstance(expression.callee, MemberExpr):
        return False
    owner = expression.callee.expr
    is_his = isinstance(owner, NameExpr) and owner.node is name.node
    return is_his and expression.callee.name == "append"


def _count_uses(body: Block, name: NameExpr) -> int:
    """Return how often a function speaks of a list, other than to look at its items."""
    looks: list[Expression] = [
        one.expr for one in statements(body.body) if isinstance(one, ForStmt)
    ]
    uses = 0
    deletes = any(isinstance(one, DelStmt) for one in statements(body.body))
    for one in get_subexpressions(body):
        match one:
            case NameExpr(node=node) if node is name.node:
                uses += 1
            case CallExpr(callee=RefExpr(fullname=called), args=args) if called in _LOOKING:
                looks += args
            case RevealExpr(expr=base) if base is not None:
                looks.append(base)
            case GeneratorExpr(sequences=sequences):
                looks += sequences
            case IndexExpr(base=base, index=index) if not isinstance(index, SliceExpr):
                looks += [] if deletes else [base]
    return uses - sum(isinstance(one, NameExpr) and one.node is name.node for one in looks)
