"""Sizes that are computed in the program: ``c // h`` in a shape, the length of a list.

For mypy the result of arithmetic on ints is `int`, and a list has no length. So expressions are
read, names that are assigned once for what they were assigned, and for a local list what the
function does with it: one that is built in plain sight has as many items as were put into it.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from functools import reduce

from mypy import nodes
from mypy.checker import TypeChecker
from mypy.server.subexpr import get_subexpressions
from mypy.types import TupleType, UnpackType, get_proper_type

from tapetensor.mypy_plugin import reporting
from tapetensor.mypy_plugin.reading import read_dim, read_tensor
from tapetensor.mypy_plugin.shapes.calls import type_of
from tapetensor.mypy_plugin.statements import assignments_of, statements
from tapetensor.rules.dims import ANY, INT, Dim, Dims, Open, Size, computed, total

# So many names are followed: `n = m`, `m = k`, ...
_MOST_NAMES = 10


def sharpened(shape: Dims, asked: nodes.Expression | None, api: TypeChecker) -> Dims:
    """Return a shape with sizes in the place of ints that are computed from known ones."""
    if INT not in shape or asked is None:
        return shape
    display = value_of(asked, api) or asked
    if not isinstance(display, nodes.TupleExpr) or len(display.items) != len(shape):
        return shape
    if any(isinstance(item, nodes.StarExpr) for item in display.items):
        return shape
    return tuple(
        size_of(item, api) if dim is INT else dim
        for dim, item in zip(shape, display.items, strict=True)
    )


def size_of(expression: nodes.Expression, api: TypeChecker) -> Dim:
    """Return the size that an expression stands for; INT for one that is not known."""
    return _computed(expression, api, _MOST_NAMES)


def _computed(expression: nodes.Expression, api: TypeChecker, names: int) -> Dim:
    dim = read_dim(reporting.type_of(api, expression) or type_of(expression, api))
    if dim is not INT:
        return INT if dim is None or dim is ANY else dim
    if isinstance(expression, nodes.OpExpr):
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


def value_of(expression: nodes.Expression, api: TypeChecker) -> nodes.Expression | None:
    """Return what a name is assigned, if it is assigned once."""
    value = assignments_of(reporting.tree(api)).value(expression)
    return None if value is expression else value


# What looks at the items of a list, and leaves it as it is.
_LOOKING = (
    *[f"builtins.{name}" for name in ("len", "zip", "enumerate", "sum", "reversed", "tuple")],
    *[f"tapetensor.tensor.joining.{name}" for name in ("concat", "stack")],
)


def length_of(found: nodes.Expression, used: nodes.Context, api: TypeChecker) -> Dim:
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
    if isinstance(found, nodes.ListExpr):
        is_open = any(isinstance(item, nodes.StarExpr) for item in found.items)
        return ANY if is_open else Size.of(len(found.items))
    if isinstance(found, nodes.ListComprehension):
        generator = found.generator
        if len(generator.sequences) > 1 or any(generator.condlists) or any(generator.is_async):
            return ANY
        return length_of(generator.sequences[0], used, api)
    if isinstance(found, nodes.CallExpr) and isinstance(found.callee, nodes.RefExpr):
        return _length_of_call(found, found.callee.fullname, used, api)
    return _length_of_name(found, used, api) if isinstance(found, nodes.NameExpr) else ANY


def _length_of_call(
    call: nodes.CallExpr, called: str, used: nodes.Context, api: TypeChecker
) -> Dim:
    if not all(kind is nodes.ARG_POS for kind in call.arg_kinds if called != "builtins.zip"):
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
            if kind is nodes.ARG_POS
        ]
        return lengths[0] if lengths and all(one == lengths[0] for one in lengths) else ANY
    return ANY


def _length_of_name(name: nodes.NameExpr, used: nodes.Context, api: TypeChecker) -> Dim:
    """Return the length of a local list; ANY where more is done with it than to build it."""
    unit = reporting.unit(api)
    if name.kind != nodes.LDEF or not isinstance(unit, nodes.FuncItem):
        return ANY
    for block in _blocks_of(unit.body):
        for place, statement in enumerate(block.body):
            made = _assigned(statement, name)
            if made is None:
                continue
            later = block.body[place + 1 :]
            ends = [at for at, one in enumerate(later) if used in get_subexpressions(one)]
            if not ends or isinstance(made, nodes.NameExpr):
                return ANY
            appends = [_appended(one, name, used, api) for one in later[: ends[0]]]
            counts = [count for found, count in appends if found]
            uses = 1 + sum(found for found, _ in appends)
            if _count_uses(unit.body, name) != uses:
                return ANY
            return total([length_of(made, used, api), *counts])
    return ANY


def _blocks_of(body: nodes.Block) -> Iterator[nodes.Block]:
    yield body
    for statement in statements(body.body):
        if isinstance(statement, nodes.ForStmt):
            yield statement.body


def _assigned(statement: nodes.Statement, name: nodes.NameExpr) -> nodes.Expression | None:
    if isinstance(statement, nodes.AssignmentStmt) and len(statement.lvalues) == 1:
        target = statement.lvalues[0]
        if isinstance(target, nodes.NameExpr) and target.node is name.node:
            return statement.rvalue
    return None


def _appended(
    statement: nodes.Statement, name: nodes.NameExpr, used: nodes.Context, api: TypeChecker
) -> tuple[int, Dim]:
    """Return how many appends a statement has, and how many items they add."""
    if isinstance(statement, nodes.ExpressionStmt):
        return (1, Size.of(1)) if _is_append(statement.expr, name) else (0, ANY)
    if not isinstance(statement, nodes.ForStmt):
        return 0, ANY
    inner = [one.expr for one in statement.body.body if isinstance(one, nodes.ExpressionStmt)]
    appends = sum(_is_append(one, name) for one in inner)
    if not appends:
        return 0, ANY
    leaves = any(
        isinstance(one, nodes.BreakStmt | nodes.ContinueStmt)
        for one in statements(statement.body.body)
    )
    turns = ANY if leaves else length_of(statement.expr, used, api)
    return appends, computed(operator.mul, Size.of(appends), turns)


def _is_append(expression: nodes.Expression, name: nodes.NameExpr) -> bool:
    if not isinstance(expression, nodes.CallExpr) or not isinstance(
        expression.callee, nodes.MemberExpr
    ):
        return False
    owner = expression.callee.expr
    is_his = isinstance(owner, nodes.NameExpr) and owner.node is name.node
    return is_his and expression.callee.name == "append"


def _count_uses(body: nodes.Block, name: nodes.NameExpr) -> int:
    """Return how often a function speaks of a list, other than to look at its items."""
    looks: list[nodes.Expression] = [
        one.expr for one in statements(body.body) if isinstance(one, nodes.ForStmt)
    ]
    uses = 0
    deletes = any(isinstance(one, nodes.DelStmt) for one in statements(body.body))
    for one in get_subexpressions(body):
        match one:
            case nodes.NameExpr(node=node) if node is name.node:
                uses += 1
            case nodes.CallExpr(callee=nodes.RefExpr(fullname=called), args=args) if (
                called in _LOOKING
            ):
                looks += args
            case nodes.RevealExpr(expr=base) if base is not None:
                looks.append(base)
            case nodes.GeneratorExpr(sequences=sequences):
                looks += sequences
            case nodes.IndexExpr(base=base, index=index) if not isinstance(index, nodes.SliceExpr):
                looks += [] if deletes else [base]
    return uses - sum(isinstance(one, nodes.NameExpr) and one.node is name.node for one in looks)
