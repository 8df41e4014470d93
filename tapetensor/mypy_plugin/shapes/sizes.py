"""Sizes that are computed in the program: ``c // h`` and ``2 * n`` in a shape that is asked for.

For mypy the result of arithmetic on ints is `int`. So the expressions are read, and names that are
assigned once for what they were assigned. What they are computed from are names and literals in
types, whose values never change.
"""

from __future__ import annotations

from mypy.checker import TypeChecker
from mypy.nodes import Expression, OpExpr, StarExpr, TupleExpr

from tapetensor.mypy_plugin import flow
from tapetensor.mypy_plugin.assignments import assignments_of
from tapetensor.mypy_plugin.shapes.calls import type_of
from tapetensor.mypy_plugin.shapes.reading import read_dim
from tapetensor.rules.dims import ANY, INT, Dim, Dims, Open, Size

# So many names are followed: `n = m`, `m = k`, ...
_MOST_NAMES = 10


def sharpened(shape: Dims, asked: Expression | None, api: TypeChecker) -> Dims:
    """Return a shape with sizes in the place of ints that are computed from known ones."""
    if INT not in shape or asked is None:
        return shape
    display = value_of(asked, api) or asked
    if not isinstance(display, TupleExpr) or len(display.items) != len(shape):
        return shape
    if any(isinstance(item, StarExpr) for item in display.items):
        return shape
    return tuple(
        size_of(item, api) if dim is INT else dim
        for dim, item in zip(shape, display.items, strict=True)
    )


def size_of(expression: Expression, api: TypeChecker) -> Dim:
    """Return the size that an expression stands for; INT for one that is not known."""
    return _computed(expression, api, _MOST_NAMES)


def _computed(expression: Expression, api: TypeChecker, names: int) -> Dim:
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
    """Return what a name is assigned, if it is assigned once."""
    value = assignments_of(flow.tree(api)).value(expression)
    return None if value is expression else value
