"""Whether reading an expression twice gives the same object: a property may make a new one."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from mypy.nodes import (
    AssignmentExpr,
    AssignmentStmt,
    Block,
    CallExpr,
    Decorator,
    Expression,
    ExpressionStmt,
    FuncDef,
    IndexExpr,
    MemberExpr,
    NameExpr,
    OverloadedFuncDef,
    RefExpr,
    ReturnStmt,
    Statement,
    StrExpr,
    SymbolNode,
    TypeInfo,
    Var,
)
from mypy.types import AnyType, Instance, TupleType, Type, TypeOfAny, get_proper_type

from tapetensor.mypy_plugin import flow
from tapetensor.mypy_plugin.kinds import bounded
from tapetensor.mypy_plugin.moves.keys import Each, Key, Passed, item_of, key_of, place, replaced
from tapetensor.mypy_plugin.moves.owners import is_container, is_iterator
from tapetensor.mypy_plugin.moves.sequences import listed
from tapetensor.mypy_plugin.symbols import member_of


def place_of(checker: Any, expression: Expression) -> Key | None:
    """Return the key of an expression that is the same object until it is assigned to.

    Another spelling of one place has the same key: that of a field of a named tuple is the item,
    that of a property which only returns an attribute is the attribute.
    """
    match expression:
        case NameExpr():
            return key_of(expression)
        case MemberExpr(expr=inner, name=name):
            base = place_of(checker, inner)
            return None if base is None else attribute(base, flow.type_of(checker, inner), name)
        case IndexExpr(base=inner):
            base, key = place_of(checker, inner), place(expression)
            if base is None or key is None:
                return None
            return item(base, listed(checker, flow.type_of(checker, inner)), key[2])
        case AssignmentExpr(target=inner):
            return place_of(checker, inner)
        case CallExpr(analyzed=Expression() as inner):
            return place_of(checker, inner)
        case CallExpr():
            return place(expression)
    within = getattr(expression, "expr", None)
    is_same = isinstance(within, Expression) and key_of(expression) is not None
    return place_of(checker, within) if is_same and isinstance(within, Expression) else None


def attribute(base: Key, owner: Type | None, name: object) -> Key | None:
    """Return the key of an attribute; None if it may be another object at each reading."""
    if not isinstance(name, str):
        # That of several fields at once, which Aliases compare one by one.
        return None
    owner = object_of(base[1]) if isinstance(base[1], TypeInfo) else bounded(owner)
    if isinstance(owner, TupleType):
        owner = owner.partial_fallback
        fields = names_of_items(owner.type)
        if name in fields:
            return item_of(base, fields.index(name))
    if not isinstance(owner, Instance):
        return None
    node = member_of(owner.type, name)
    if isinstance(node, Var):
        # `is_property` of a variable says that it is a field of a frozen data class.
        held = get_proper_type(node.type)
        is_plain = not (isinstance(held, Instance) and held.type.get("__get__"))
        return ("member", base, name) if is_plain else None
    if isinstance(node, Decorator) and any(
        isinstance(one, RefExpr) and one.fullname == "functools.cached_property"
        for one in node.original_decorators
    ):
        return ("member", base, name)
    return returned_by(base, node)


def object_of(info: TypeInfo) -> Instance:
    """Return the type of the objects of a class: what it says of attributes holds of the class."""
    return Instance(info, [AnyType(TypeOfAny.special_form) for _ in info.type_vars])


def names_of_items(info: TypeInfo) -> list[str]:
    """Return the names of the fields of a named tuple."""
    found = info.get("__new__") if info.is_named_tuple else None
    declared = getattr(found.node, "type", None) if found is not None else None
    return [name or "" for name in getattr(declared, "arg_names", [""])[1:]]


def is_carried(owner: Type | None, field: object, new: Collection[str]) -> bool:
    """Tell whether a changed copy of a record has the same value in a field.

    Args:
        owner: the type of the record.
        field: the name of the field, or its number in a named tuple.
        new: the fields that are given anew.
    """
    owner = bounded(owner)
    if isinstance(owner, TupleType):
        names = names_of_items(owner.partial_fallback.type)
        return isinstance(field, int) and field < len(names) and names[field] not in new
    if not isinstance(owner, Instance) or owner.type.get("__post_init__"):
        return False
    declared = owner.type.metadata.get("dataclass", {}).get("attributes", [])
    kept = {one["name"] for one in declared if one["is_in_init"]}
    return field in kept and field not in new


def returned_by(base: Key, node: SymbolNode | None) -> Key | None:
    """Return the key of the attribute that a property does no more than return."""
    if isinstance(node, OverloadedFuncDef) and node.items:
        node = node.items[0]
    if not isinstance(node, Decorator) or not node.var.is_property or not node.func.body.body:
        return None
    match node.func.body.body:
        case [*_, ReturnStmt(expr=value)] if len(node.func.body.body) == 1:
            key = key_of(value)
            for argument in node.func.arguments[:1]:
                me: Key = ("name", argument.variable)
                return None if key is None or key == me else replaced(key, me, base)
    return None


def item(base: Key, owner: Type | None, index: object) -> Key | None:
    """Return the key of an item; None if it may be another object at each reading."""
    owner = bounded(owner)
    if is_iterator(owner) and isinstance(base[1], CallExpr) and isinstance(index, Each | Passed):
        # Who else could ask it for items?
        return item_of(base, index)
    if not is_container(owner):
        return _item_of_object(base, owner, index)
    if isinstance(owner, TupleType) and isinstance(index, int) and index < 0:
        index += len(owner.items)
    return item_of(base, index)


def _item_of_object(base: Key, owner: Type | None, index: object) -> Key | None:
    """Return the key of the item of a container that an object has and does no more than return."""
    if not isinstance(owner, Instance):
        return None
    if isinstance(index, Each | Passed):
        me, value = _only_value(member_of(owner.type, "__iter__"), 1)
        match value:
            case CallExpr(callee=RefExpr(fullname="builtins.iter"), args=[held]) if key_of(held):
                found = replaced(key_of(held) or base, ("name", me[0]), base)
                return None if found is None else item_of(found, index)
        return None
    me, value = _only_value(member_of(owner.type, "__getitem__"), 2)
    inner = key_of(value.base) if isinstance(value, IndexExpr) else None
    if not (isinstance(value, IndexExpr) and _is_last(me, value.index)):
        return None
    if not _puts_into(member_of(owner.type, "__setitem__"), inner):
        return None
    found = None if inner is None else replaced(inner, ("name", me[0]), base)
    return None if found is None else item_of(found, index)


def _only_value(node: SymbolNode | None, count: int) -> tuple[list[Var], Expression | None]:
    """Return the parameters of a function of so many, and what it does no more than return."""
    match node:
        case FuncDef(body=Block(body=[*others, ReturnStmt(expr=value)])) if (
            all(map(_is_docstring, others)) and len(node.arguments) == count
        ):
            return [one.variable for one in node.arguments], value
    return [], None


def _puts_into(setter: SymbolNode | None, container: Key | None) -> bool:
    """Tell whether to assign to an item of an object is to assign to one of its container."""
    if setter is None:
        return True
    match setter:
        case FuncDef(
            arguments=[me, at, new],
            body=Block(
                body=[
                    *others,
                    AssignmentStmt(
                        lvalues=[IndexExpr(base=held, index=NameExpr(node=index))],
                        rvalue=NameExpr(node=value),
                    ),
                ]
            ),
        ) if all(map(_is_docstring, others)) and (index, value) == (at.variable, new.variable):
            [first, *names] = _names(container)
            return _names(key_of(held)) == [me.variable, *names] and first is not None
    return False


def _names(key: Key | None) -> list[object]:
    """Return the variable that a key starts from, and the attributes that it goes by."""
    if key is None:
        return [None]
    return [key[1]] if key[0] == "name" else [*_names(key[1]), key[2]]


def _is_last(parameters: list[Var], index: Expression) -> bool:
    return isinstance(index, NameExpr) and index.node is parameters[-1]


def _is_docstring(statement: Statement) -> bool:
    return isinstance(statement, ExpressionStmt) and isinstance(statement.expr, StrExpr)
