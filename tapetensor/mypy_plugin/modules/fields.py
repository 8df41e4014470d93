"""The values of the fields of a module class are kept for the runs of mypy to come.

`build` reads them at run time. mypy keeps of a class in another file its types only, so the kinds
of its fields are written into one: that of an attribute, a literal string. So they come back from
mypy's cache, and whoever depends on the class is checked anew when they change.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from mypy.expandtype import expand_type_by_instance
from mypy.maptype import map_instance_to_supertype
from mypy.nodes import (
    ARG_STAR2,
    MDEF,
    AssignmentStmt,
    CallExpr,
    ClassDef,
    Decorator,
    Expression,
    ExpressionStmt,
    FuncDef,
    NameExpr,
    OverloadedFuncDef,
    PassStmt,
    RefExpr,
    Statement,
    StrExpr,
    SymbolTableNode,
    TempNode,
    TypeInfo,
    Var,
)
from mypy.plugin import ClassDefContext
from mypy.server.trigger import make_trigger
from mypy.types import Instance, LiteralType, ProperType, get_proper_type

from tapetensor.mypy_plugin import names
from tapetensor.mypy_plugin.shapes.computed import respelled
from tapetensor.mypy_plugin.symbols import member_of

_ATTRIBUTE = "__tapetensor_fields__"
_DEFAULT = "default"
_OPEN = "open"


def keep_kinds(context: ClassDefContext) -> None:
    """Write down the kinds of the fields that a class body declares."""
    cls, info = context.cls, context.cls.info
    variable = Var(_ATTRIBUTE, LiteralType(_kinds(cls), context.api.named_type("builtins.str")))
    variable.info = info
    variable._fullname = f"{info.fullname}.{_ATTRIBUTE}"
    info.names[_ATTRIBUTE] = SymbolTableNode(MDEF, variable, plugin_generated=True)
    for name in [_ATTRIBUTE, *assignments(cls)]:
        context.api.add_plugin_dependency(
            make_trigger(f"{info.fullname}.{name}"), make_trigger(info.fullname)
        )


class Field(NamedTuple):
    """A field of a module that has no default.

    Attributes:
        name: its name.
        kind: the name of a function of `tapetensor.nn.fields`, or empty.
        options: the names of what that is given.
        annotation: its type in this module; None if that is not known.
    """

    name: str
    kind: str
    options: frozenset[str]
    annotation: ProperType | None


def fields_of(module: Instance) -> Iterator[Field]:
    """Yield the fields of a module that have no default; none if they are not all known."""
    for name, (kind, options) in (kinds_of_fields(module.type) or {}).items():
        if kind == _DEFAULT:
            continue
        node = member_of(module.type, name)
        annotation = type_in(module, node) if isinstance(node, Var) else None
        yield Field(name, kind, options, annotation)


def type_in(module: Instance, field: Var) -> ProperType | None:
    """Return the type that a field has in a module; None if that is not known."""
    if field.type is None:
        return None
    holder = map_instance_to_supertype(module, field.info)
    return get_proper_type(respelled(expand_type_by_instance(field.type, holder)))


def kinds_of_fields(info: TypeInfo) -> dict[str, tuple[str, frozenset[str]]] | None:
    """Return, by field, its kind and the names of its options; None if they are not all known.

    The kind is the name of a function of `tapetensor.nn.fields`, "default" for another value, and
    empty for none.
    """
    found: dict[str, tuple[str, frozenset[str]]] = {}
    for base in reversed(info.mro):
        if base.fullname == names.MODULE or not base.has_base(names.MODULE):
            continue
        written = _written(base)
        if written is None or written == _OPEN:
            return None
        for entry in filter(None, written.split(";")):
            name, kind, *options = entry.split(",")
            # A base may say what the value is, and the class annotate it once more.
            if kind or name not in found:
                found[name] = (kind, frozenset(options))
    return found


def _written(info: TypeInfo) -> str | None:
    symbol = info.names.get(_ATTRIBUTE)
    node: Any = None if symbol is None else symbol.node
    kinds = None if node is None else get_proper_type(node.type)
    return kinds.value if isinstance(kinds, LiteralType) and isinstance(kinds.value, str) else None


def _kinds(cls: ClassDef) -> str:
    """Return ``name,kind,option,...`` of every field, or "open" if the body does more than that."""
    entries = [_kind(one) for one in cls.defs.body]
    if cls.decorators or None in entries:
        return _OPEN
    return ";".join(filter(None, entries))


def _kind(statement: Statement) -> str | None:
    """Return the entry of a field, empty for a statement that declares none; None if it may."""
    if not isinstance(statement, AssignmentStmt):
        return "" if _is_harmless(statement) else None
    target, value = statement.lvalues[0], statement.rvalue
    if len(statement.lvalues) != 1 or not isinstance(target, NameExpr):
        return None
    if isinstance(target.node, Var) and target.node.is_classvar:
        return ""
    if isinstance(value, TempNode) and value.no_rhs:
        return f"{target.name},"
    kind, options = declared(value)
    return ",".join([target.name, kind or _DEFAULT, *options])


def declared(value: Expression) -> tuple[str, list[str]]:
    """Return the kind and the names of the options of ``parameter(...)`` and the like."""
    if not (isinstance(value, CallExpr) and isinstance(value.callee, RefExpr)):
        return "", []
    room, _, kind = value.callee.fullname.rpartition(".")
    if room != names.FIELDS:
        return "", []
    # By its place only `repeat` takes an argument, how many there are.
    given = zip(value.arg_names, value.arg_kinds, strict=True)
    return kind, ["*" if how is ARG_STAR2 else name or "count" for name, how in given]


def _is_harmless(statement: Statement) -> bool:
    """Tell whether a statement in a class body declares no field."""
    if isinstance(statement, ExpressionStmt):
        return isinstance(statement.expr, StrExpr)
    return isinstance(statement, FuncDef | OverloadedFuncDef | Decorator | ClassDef | PassStmt)


def assignments(cls: ClassDef) -> dict[str, AssignmentStmt]:
    """Return the assignments of a class body, by the name that is assigned to first."""
    return {
        one.lvalues[0].name: one
        for one in cls.defs.body
        if isinstance(one, AssignmentStmt) and isinstance(one.lvalues[0], NameExpr)
    }
