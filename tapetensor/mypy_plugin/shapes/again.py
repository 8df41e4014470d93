"""Names that are used again: ``h = strided(h)``, which has open dims where `h` had none.

mypy infers the type of a variable from its first value. An open dim of a later value meets a known
one there, and mypy takes the known one, which is a false claim. So what the variable is declared
to be is opened, and the known dims of each value are left to mypy's narrowing. In a loop this is
done for dims that differ, too: ``x = concat((x, row))`` grows.
"""

from __future__ import annotations

from typing import Final

from mypy.checker import TypeChecker
from mypy.nodes import (
    AssignmentStmt,
    ConditionalExpr,
    Context,
    Expression,
    ForStmt,
    MypyFile,
    NameExpr,
    Statement,
    TupleExpr,
    Var,
    WhileStmt,
)
from mypy.plugin import FunctionContext, MethodContext
from mypy.subtypes import is_subtype
from mypy.types import AnyType, Instance, TupleType, Type, get_proper_type

from tapetensor.mypy_plugin import flow
from tapetensor.mypy_plugin.assignments import statements
from tapetensor.mypy_plugin.kinds import ANYTHING
from tapetensor.mypy_plugin.names import TENSOR
from tapetensor.mypy_plugin.shapes.reading import read_dim
from tapetensor.mypy_plugin.shapes.unions import distributed
from tapetensor.rules.dims import differ

_SETTING: Final = (
    "tapetensor.mypy_plugin: a name keeps the shape of its first tensor; with "
    "`allow_redefinition = True` in mypy.ini it takes another one"
)


class _Values:
    """What is stored in names in the file that is being checked, by the expression."""

    def __init__(self) -> None:
        self.statements: list[Statement] | None = None
        self.names: dict[Context, NameExpr] = {}
        self.looped: set[Context] = set()


_found = _Values()


def open_name(context: FunctionContext | MethodContext, *, may_grow: bool = False) -> Type:
    """Open the dims of a variable that the result of a call, which is stored in it, has not.

    Args:
        may_grow: whether the dims of the variable may differ from one turn of a loop to the next:
            whether plain typing leaves those of the result open.
    """
    result = get_proper_type(context.default_return_type)
    if not isinstance(result, Instance) or result.type.fullname != TENSOR:
        return context.default_return_type
    api = context.api
    assert isinstance(api, TypeChecker)
    if _found.statements is not api.tree.defs:
        _read(api.tree)
    name = _found.names.get(context.context)
    node = None if name is None else name.node
    if name is None or not isinstance(node, Var) or node.is_final:
        return distributed(result)
    grows = may_grow and context.context in _found.looped
    # What is annotated stays what that says; a parameter says what it is given.
    is_parameter = flow.is_parameter(api, node)
    declared = get_proper_type(node.type)
    may_change = node.is_inferred or is_parameter
    if not may_change or not isinstance(declared, Instance) or declared.type is not result.type:
        return result
    if is_parameter and not grows:
        return _kept(api, name, declared, result)
    opened = _opened(declared.args[0], result.args[0], grows=grows)
    if opened is not None:
        declared = declared.copy_modified(args=[opened, *declared.args[1:]])
        flow.redeclare(api, name, declared)
    shape = (grows and _opened(result.args[0], declared.args[0], grows=True)) or result.args[0]
    return _kept(api, name, declared, result.copy_modified(args=[shape, *result.args[1:]]))


def _kept(api: TypeChecker, name: NameExpr, declared: Instance, result: Instance) -> Instance:
    """Return the result; note which setting lets the name take it, where mypy will refuse it."""
    if not api.options.allow_redefinition and not is_subtype(result, declared):
        flow.note_once(api, _SETTING, name)
    return result


def _opened(declared: Type, found: Type, *, grows: bool) -> Type | None:
    """Return a shape with open dims where the other has some; None if it has them already."""
    known, new = get_proper_type(declared), get_proper_type(found)
    if not isinstance(known, TupleType):
        return None
    if not isinstance(new, TupleType) or len(new.items) != len(known.items):
        return ANYTHING if isinstance(new, AnyType) else None
    items = [
        ANYTHING if _is_open(one, two, grows=grows) else one
        for one, two in zip(known.items, new.items, strict=True)
    ]
    changed = any(one is not two for one, two in zip(items, known.items, strict=True))
    return known.copy_modified(items=items) if changed else None


def _is_open(known: Type, new: Type, *, grows: bool) -> bool:
    if isinstance(get_proper_type(known), AnyType):
        return False
    lhs, rhs = read_dim(known), read_dim(new)
    if isinstance(get_proper_type(new), AnyType):
        return lhs is not None
    return grows and lhs is not None and rhs is not None and differ(lhs, rhs)


def _read(tree: MypyFile) -> None:
    _found.statements = tree.defs
    _found.names, _found.looped = {}, set()
    for statement in statements(tree.defs):
        if isinstance(statement, AssignmentStmt):
            for lvalue in statement.lvalues:
                _add(lvalue, statement.rvalue)
        elif isinstance(statement, ForStmt | WhileStmt):
            for inner in statements(statement.body.body):
                if isinstance(inner, AssignmentStmt):
                    _found.looped.update(_values(inner.rvalue))


def _add(lvalue: Expression, rvalue: Expression) -> None:
    if isinstance(lvalue, NameExpr):
        for one in _values(rvalue):
            _found.names[one] = lvalue
    elif isinstance(lvalue, TupleExpr) and isinstance(rvalue, TupleExpr):
        for one, two in zip(lvalue.items, rvalue.items, strict=False):
            _add(one, two)


def _values(rvalue: Expression) -> list[Expression]:
    """Return what an expression may be the value of."""
    if isinstance(rvalue, ConditionalExpr):
        return [*_values(rvalue.if_expr), *_values(rvalue.else_expr)]
    if isinstance(rvalue, TupleExpr):
        return [value for one in rvalue.items for value in _values(one)]
    return [rvalue]
