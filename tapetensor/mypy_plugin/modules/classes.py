"""Module classes: which are some, how they are constructed, what fields they have, in words.

`build` reads the values of fields at run time. mypy keeps of a class in another file its types
only, so the kinds of its fields are written into one: that of an attribute, a literal string. So
they come back from mypy's cache, and whoever depends on the class is checked anew when they change.
"""

from __future__ import annotations

import json
from typing import Final

from mypy import nodes, types
from mypy.plugin import ClassDefContext
from mypy.server.trigger import make_trigger

from tapetensor.mypy_plugin import names
from tapetensor.mypy_plugin.names import class_named
from tapetensor.mypy_plugin.reading import instance_of, is_int, is_module, read_literal
from tapetensor.mypy_plugin.shapes.broadcasting import dtype_name
from tapetensor.mypy_plugin.statements import function_of


def derives(fullname: str, base: str) -> bool:
    """Tell whether a name is that of the class `base`, or of one derived from it.

    A hook for every name there is would answer in place of other plugins, hence this question.
    """
    if fullname == base:
        return True
    info = class_named(fullname)
    return info is not None and info.has_base(base)


def with_constructor(info: nodes.TypeInfo) -> nodes.TypeInfo | None:
    """Return the class whose constructor, written by hand, makes a module; None for fields."""
    for base in info.mro:
        if base.fullname == names.MODULE:
            return None
        symbol = base.names.get("__init__")
        if symbol is not None and not symbol.plugin_generated:
            return base
    return None


def signature_of_constructor(owner: nodes.TypeInfo) -> types.CallableType | None:
    """Return the signature of a constructor as it is implemented, `self` included."""
    implemented = function_of(owner.names["__init__"].node)
    found = None if implemented is None else types.get_proper_type(implemented.type)
    return found if isinstance(found, types.CallableType) else None


# Fields of these types may hold several modules.
LISTS: Final = ("builtins.list", "builtins.tuple")
_ATTRIBUTE = "__tapetensor_fields__"
DEFAULT = "default"


def keep_kinds(context: ClassDefContext) -> None:
    """Write down the kinds of the fields that a class body declares."""
    cls, info = context.cls, context.cls.info
    variable = nodes.Var(
        _ATTRIBUTE,
        types.LiteralType(json.dumps(_kinds(cls)), context.api.named_type("builtins.str")),
    )
    variable.info = info
    variable._fullname = f"{info.fullname}.{_ATTRIBUTE}"
    info.names[_ATTRIBUTE] = nodes.SymbolTableNode(nodes.MDEF, variable, plugin_generated=True)
    for name in [_ATTRIBUTE, *assignments(cls)]:
        context.api.add_plugin_dependency(
            make_trigger(f"{info.fullname}.{name}"), make_trigger(info.fullname)
        )


def kinds_of_fields(info: nodes.TypeInfo) -> dict[str, tuple[str, frozenset[str]]] | None:
    """Return, by field, its kind and the names of its options; None if they are not all known.

    The kind is the name of a function of `tapetensor.nn.fields`, "default" for another value, and
    empty for none.
    """
    found: dict[str, tuple[str, frozenset[str]]] = {}
    for base in reversed(info.mro):
        if base.fullname == names.MODULE or not base.has_base(names.MODULE):
            continue
        symbol = base.names.get(_ATTRIBUTE)
        written = None if symbol is None else read_literal(symbol.type, str)
        entries: dict[str, list[str]] | None = json.loads(written or "null")
        if entries is None:
            return None
        for name, (kind, *options) in entries.items():
            # A base may say what the value is, and the class annotate it once more.
            if kind or name not in found:
                found[name] = (kind, frozenset(options))
    return found


def _kinds(cls: nodes.ClassDef) -> dict[str, list[str]] | None:
    """Return, by field, its kind and options; None if the body of the class does more than that."""
    found: dict[str, list[str]] = {}
    for statement in cls.defs.body:
        match statement:
            case nodes.AssignmentStmt(lvalues=[nodes.NameExpr(name=name, node=node)], rvalue=value):
                if not (isinstance(node, nodes.Var) and node.is_classvar):
                    is_absent = isinstance(value, nodes.TempNode) and value.no_rhs
                    kind, options = declared(value)
                    found[name] = ["" if is_absent else kind or DEFAULT, *options]
            case (
                nodes.ExpressionStmt(expr=nodes.StrExpr())
                | nodes.FuncDef()
                | nodes.OverloadedFuncDef()
                | nodes.Decorator()
                | nodes.ClassDef()
                | nodes.PassStmt()
            ):
                pass
            case _:
                return None
    return None if cls.decorators else found


def declared(value: nodes.Expression) -> tuple[str, list[str]]:
    """Return the kind and the names of the options of ``parameter(...)`` and the like."""
    if not (isinstance(value, nodes.CallExpr) and isinstance(value.callee, nodes.RefExpr)):
        return "", []
    room, _, kind = value.callee.fullname.rpartition(".")
    if room != names.FIELDS:
        return "", []
    # By its place only `repeat` takes an argument, how many there are.
    given = zip(value.arg_names, value.arg_kinds, strict=True)
    return kind, ["*" if how is nodes.ARG_STAR2 else name or "count" for name, how in given]


def assignments(cls: nodes.ClassDef) -> dict[str, nodes.AssignmentStmt]:
    """Return the assignments of a class body, by the name that is assigned to first."""
    return {
        one.lvalues[0].name: one
        for one in cls.defs.body
        if isinstance(one, nodes.AssignmentStmt) and isinstance(one.lvalues[0], nodes.NameExpr)
    }


_USUAL_DTYPE = "float32"


def in_words(found: types.Type) -> str:
    """Return a type by its parts: ``Linear[784, 512]``, the shape of a tensor, ``float64``, ``?``.

    The usual dtype of a module goes without saying.
    """
    part = types.get_proper_type(found)
    if isinstance(part, types.LiteralType):
        return str(part.value)
    if isinstance(part, types.TypeVarTupleType | types.UnpackType):
        return "..."
    if isinstance(part, types.TypeVarLikeType):
        return part.name
    if isinstance(part, types.AnyType) or is_int(part):
        return "?"
    if not isinstance(part, types.Instance):
        return str(part)
    if part.type.fullname == names.TENSOR:
        return _shape_in_words(part.args[0])
    arguments = list(map(in_words, part.args))
    while is_module(part) and arguments and arguments[-1] == _USUAL_DTYPE:
        arguments.pop()
    name = f"{part.type.name}[{', '.join(arguments)}]" if arguments else part.type.name
    return dtype_name(part) or name


def tensor_in_words(found: types.Type, beside: types.Type | None = None) -> str:
    """Return a tensor by its shape, and by what else tells it from the other one, if any."""
    tensor, other = [instance_of(one, names.TENSOR) for one in (found, beside)]
    if tensor is None:
        return f"a {in_words(found)}"
    words = [in_words(tensor)]
    for place in (2, 1) if other is not None else ():
        mine, its = [types.get_proper_type(one.args[place]) for one in (tensor, other) if one]
        both = isinstance(mine, types.Instance) and isinstance(its, types.Instance)
        if both and mine != its:
            words.append(in_words(mine))
    return " ".join(words)


def _shape_in_words(shape: types.Type) -> str:
    shape = types.get_proper_type(shape)
    if not isinstance(shape, types.TupleType):
        return "any shape"
    dims = list(map(in_words, shape.items))
    return f"({dims[0]},)" if len(dims) == 1 and dims != ["..."] else f"({', '.join(dims)})"
