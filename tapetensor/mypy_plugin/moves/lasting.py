"""Whether reading an expression twice gives the same object: a property may make a new one."""

from __future__ import annotations

from typing import Any

from mypy.nodes import AssignmentExpr, Expression, IndexExpr, MemberExpr, NameExpr, Var
from mypy.types import Instance, ProperType, TupleType, TypeVarType, get_proper_type

from tapetensor.mypy_plugin import flow

_CONTAINERS = frozenset({"builtins.dict", "builtins.list", "builtins.tuple"})


def is_lasting(checker: Any, expression: Expression) -> bool:
    """Tell whether a name, an attribute or an item is the same object until it is assigned to."""
    match expression:
        case NameExpr():
            return True
        case MemberExpr(expr=base, name=name):
            return is_lasting(checker, base) and _is_variable(_type(checker, base), name)
        case IndexExpr(base=base):
            return is_lasting(checker, base) and _is_container(_type(checker, base))
        case AssignmentExpr(target=target):
            return is_lasting(checker, target)
    inner = getattr(expression, "analyzed", None) or getattr(expression, "expr", None)
    return isinstance(inner, Expression) and is_lasting(checker, inner)


def _type(checker: Any, expression: Expression) -> ProperType | None:
    found = flow.type_of(checker, expression)
    return get_proper_type(found.upper_bound) if isinstance(found, TypeVarType) else found


def _is_variable(owner: ProperType | None, name: str) -> bool:
    """Tell whether an attribute is a plain variable: no property, no other descriptor."""
    if isinstance(owner, TupleType):
        owner = owner.partial_fallback
    if not isinstance(owner, Instance):
        return False
    symbol = owner.type.get(name)
    # `is_property` of a variable says that it is a field of a named tuple or frozen data class.
    if symbol is None or not isinstance(symbol.node, Var):
        return False
    held = get_proper_type(symbol.node.type)
    return not (isinstance(held, Instance) and held.type.get("__get__"))


def _is_container(owner: ProperType | None) -> bool:
    if isinstance(owner, TupleType):
        return True
    return isinstance(owner, Instance) and owner.type.fullname in _CONTAINERS
