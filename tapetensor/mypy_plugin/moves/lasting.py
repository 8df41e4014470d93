"""Whether reading an expression twice gives the same object: a property may make a new one."""

from __future__ import annotations

from typing import Any

from mypy.nodes import AssignmentExpr, Expression, IndexExpr, MemberExpr, NameExpr, Var
from mypy.types import Instance, TupleType, Type, get_proper_type

from tapetensor.mypy_plugin import flow
from tapetensor.mypy_plugin.kinds import bounded
from tapetensor.mypy_plugin.moves.keys import Key, key_of
from tapetensor.mypy_plugin.moves.owners import is_container
from tapetensor.mypy_plugin.symbols import member_of


def place_of(checker: Any, expression: Expression) -> Key | None:
    """Return the key of an expression that is the same object until it is assigned to."""
    key = key_of(expression)
    return key if key is not None and is_lasting(checker, expression) else None


def is_lasting(checker: Any, expression: Expression) -> bool:
    """Tell whether a name, an attribute or an item is the same object until it is assigned to."""
    match expression:
        case NameExpr():
            return True
        case MemberExpr(expr=base, name=name):
            owner = bounded(flow.type_of(checker, base))
            return is_lasting(checker, base) and is_variable(owner, name)
        case IndexExpr(base=base):
            owner = bounded(flow.type_of(checker, base))
            return is_lasting(checker, base) and is_container(owner)
        case AssignmentExpr(target=target):
            return is_lasting(checker, target)
    inner = getattr(expression, "analyzed", None) or getattr(expression, "expr", None)
    return isinstance(inner, Expression) and is_lasting(checker, inner)


def is_variable(owner: Type | None, name: str) -> bool:
    """Tell whether an attribute is a plain variable: no property, no other descriptor."""
    owner = bounded(owner)
    if isinstance(owner, TupleType):
        owner = owner.partial_fallback
    if not isinstance(owner, Instance):
        return False
    node = member_of(owner.type, name)
    # `is_property` of a variable says that it is a field of a named tuple or frozen data class.
    if not isinstance(node, Var):
        return False
    held = get_proper_type(node.type)
    return not (isinstance(held, Instance) and held.type.get("__get__"))
