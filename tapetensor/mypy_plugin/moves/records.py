"""The fields of new objects: named tuples, data classes and what `__init__` assigns."""

from __future__ import annotations

from collections.abc import Iterator

from mypy.argmap import map_actuals_to_formals
from mypy.nodes import (
    ARG_STAR,
    ARG_STAR2,
    AssignmentStmt,
    CallExpr,
    Expression,
    FuncDef,
    MemberExpr,
    NameExpr,
    Node,
    SymbolNode,
    TypeInfo,
    Var,
)
from mypy.types import CallableType, Type, get_proper_type

from tapetensor.mypy_plugin.blocks import statements, targets
from tapetensor.mypy_plugin.kinds import ANYTHING


def names_of_fields(node: SymbolNode | None) -> list[str]:
    """Return the names of the fields of a class whose fields are all given to its constructor."""
    if isinstance(node, TypeInfo) and ("dataclass" in node.metadata or node.is_named_tuple):
        maker = _constructor(node)
        return [] if maker is None else [name or "" for name in maker.arg_names[1:]]
    return []


def _constructor(info: TypeInfo) -> CallableType | None:
    """Return the signature of what makes the objects of a class."""
    found = info.get("__new__" if info.is_named_tuple else "__init__")
    node = None if found is None else found.node
    declared = node.type if isinstance(node, FuncDef | Var) else None
    proper = get_proper_type(declared)
    return proper if isinstance(proper, CallableType) else None


def _given(info: TypeInfo, call: CallExpr) -> dict[str, Expression]:
    """Return what a call of a class gives to each parameter of the constructor."""
    maker = _constructor(info)
    if maker is None or {ARG_STAR, ARG_STAR2} & {*call.arg_kinds}:
        return {}
    names = maker.arg_names[1:]
    mapped = map_actuals_to_formals(
        call.arg_kinds, call.arg_names, maker.arg_kinds[1:], names, lambda _: ANYTHING
    )
    return {
        name: call.args[actuals[0]]
        for name, actuals in zip(names, mapped, strict=True)
        if name is not None and len(actuals) == 1
    }


def fields_of(info: TypeInfo, call: CallExpr) -> Iterator[tuple[tuple[str, object], Expression]]:
    """Yield the fields of a new object that are what the constructor is given."""
    if info.typeddict_type is not None or info.fullname == "builtins.dict":
        for name, value in zip(call.arg_names, call.args, strict=True):
            if name is not None:
                yield ("item", name), value
        return
    given = _given(info, call)
    if info.is_named_tuple:
        for position, name in enumerate(names_of_fields(info)):
            if name in given:
                yield ("item", position), given[name]
    elif "dataclass" in info.metadata:
        if info.get("__post_init__") is None:
            yield from ((("member", name), value) for name, value in given.items())
    else:
        for field, name in _kept(info):
            if name in given:
                yield ("member", field), given[name]


def type_of_field(info: TypeInfo, field: str) -> Type | None:
    """Return the declared type of the parameter that a constructor assigns to an attribute."""
    maker = _constructor(info) if info else None
    for name, parameter in [] if maker is None else _kept(info):
        if name == field and maker is not None:
            return maker.arg_types[maker.arg_names.index(parameter)]
    return None


def _kept(info: TypeInfo) -> Iterator[tuple[str, str]]:
    """Yield the attributes to which a constructor assigns parameters, and does nothing else."""
    maker = info.get("__init__")
    node = maker.node if maker is not None else None
    # What mypy has taken from its cache has neither a body nor arguments.
    if not isinstance(node, FuncDef) or not node.body.body or not node.arguments:
        return
    parameters: dict[Node | None, str] = {one.variable: one.variable.name for one in node.arguments}
    me = node.arguments[0].variable
    stored: dict[str, list[str | None]] = {}
    reassigned = set()
    for one in statements(node.body):
        for target in targets(one):
            match target:
                case MemberExpr(expr=NameExpr(node=owner), name=field) if owner is me:
                    value = one.rvalue if isinstance(one, AssignmentStmt) else None
                    given = isinstance(value, NameExpr) and parameters.get(value.node)
                    top = one in node.body.body
                    stored.setdefault(field, []).append(given if given and top else None)
                case NameExpr(node=variable):
                    reassigned.add(variable)
    taken = {parameters.get(one) for one in reassigned}
    for field, values in stored.items():
        if len(values) == 1 and values[0] is not None and values[0] not in taken:
            yield field, values[0]
