"""Module classes: which are some, how they are constructed, what fields they have, in words.

`build` reads the values of fields at run time. mypy keeps of a class in another file its types
only, so the kinds of its fields are written into one: that of an attribute, a literal string. So
they come back from mypy's cache, and whoever depends on the class is checked anew when they change.
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
    FuncBase,
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
from mypy.types import (
    AnyType,
    CallableType,
    Instance,
    LiteralType,
    ParamSpecType,
    ProperType,
    TupleType,
    Type,
    TypeVarLikeType,
    TypeVarTupleType,
    UnpackType,
    get_proper_type,
)

from tapetensor.mypy_plugin import names
from tapetensor.mypy_plugin.names import class_named, member_of
from tapetensor.mypy_plugin.reading import is_int, is_module
from tapetensor.mypy_plugin.shapes.computed import respelled
from tapetensor.mypy_plugin.shapes.elementwise import dtype_name


def derives(fullname: str, base: str) -> bool:
    """Tell whether a name is that of the class `base`, or of one derived from it.

    A hook for every name there is would answer in place of other plugins, hence this question.
    """
    if fullname == base:
        return True
    info = class_named(fullname)
    return info is not None and info.has_base(base)


def with_constructor(info: TypeInfo) -> TypeInfo | None:
    """Return the class whose constructor, written by hand, makes a module; None for fields."""
    for base in info.mro:
        if base.fullname == names.MODULE:
            return None
        symbol = base.names.get("__init__")
        if symbol is not None and not symbol.plugin_generated:
            return base
    return None


def signature_of_constructor(owner: TypeInfo) -> CallableType | None:
    """Return the signature of a constructor as it is implemented, `self` included."""
    node: Any = owner.names["__init__"].node
    if isinstance(node, OverloadedFuncDef):
        node = node.impl
    if isinstance(node, Decorator):
        node = node.func
    found = get_proper_type(node.type) if isinstance(node, FuncBase) else None
    return found if isinstance(found, CallableType) else None


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


_USUAL_DTYPE = "float32"


def module_in_words(module: Type) -> str:
    """Return a module as ``Linear[784, 512]``; the usual dtype goes without saying."""
    module = get_proper_type(module)
    if not isinstance(module, Instance):
        return part_in_words(module)
    arguments = [
        module_in_words(one) if is_module(one) else part_in_words(one) for one in module.args
    ]
    while arguments and arguments[-1] == _USUAL_DTYPE:
        arguments.pop()
    return f"{module.type.name}[{', '.join(arguments)}]" if arguments else module.type.name


def tensor_in_words(tensor: Type, other: Type | None = None) -> str:
    """Return a tensor by its shape, and by what else tells it from the other one, if any."""
    tensor, other = get_proper_type(tensor), get_proper_type(other)
    if not _is_tensor(tensor) or not isinstance(tensor, Instance):
        return f"a {part_in_words(tensor)}"
    shape, tape, dtype = tensor.args
    words = _shape_in_words(shape)
    if isinstance(other, Instance) and _is_tensor(other):
        if _differ(dtype, other.args[2]):
            words += f" {part_in_words(dtype)}"
        if _differ(tape, other.args[1]):
            words += f" {part_in_words(tape)}"
    return words


def part_in_words(part: Type) -> str:
    """Return a dim, a tape state or a dtype."""
    part = get_proper_type(part)
    if isinstance(part, LiteralType):
        return str(part.value)
    if isinstance(part, TypeVarTupleType | UnpackType):
        return "..."
    if isinstance(part, TypeVarLikeType | ParamSpecType):
        return part.name
    if isinstance(part, AnyType):
        return "?"
    if isinstance(part, CallableType):
        return f"the class {part.type_object().name}" if part.is_type_obj() else "function"
    if isinstance(part, Instance):
        if is_int(part):
            return "?"
        arguments = f"[{', '.join(map(_argument, part.args))}]" if part.args else ""
        return dtype_name(part) or f"{part.type.name}{arguments}"
    return str(part)


def _shape_in_words(shape: Type) -> str:
    shape = get_proper_type(shape)
    if not isinstance(shape, TupleType):
        return "any shape"
    dims = [part_in_words(one) for one in shape.items]
    return f"({dims[0]},)" if len(dims) == 1 and dims != ["..."] else f"({', '.join(dims)})"


def _argument(argument: Type) -> str:
    argument = get_proper_type(argument)
    return argument.type.name if isinstance(argument, Instance) else part_in_words(argument)


def _is_tensor(value: object) -> bool:
    return isinstance(value, Instance) and value.type.fullname == names.TENSOR


def _differ(one: Type, other: Type) -> bool:
    one, other = get_proper_type(one), get_proper_type(other)
    return isinstance(one, Instance) and isinstance(other, Instance) and one != other
