"""`build` cannot work out everything from annotations; the messages are those at run time.

They are reported where `build` is called and not where the class is defined: there is nothing wrong
with a class whose constructor is called with every field. ``defining`` has the fields that this
cannot be given either.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mypy.expandtype import expand_type, expand_type_by_instance
from mypy.maptype import map_instance_to_supertype
from mypy.nodes import Expression, IndexExpr, RefExpr, TupleExpr, TypeInfo
from mypy.nodes import TypeAlias as TypeAliasNode
from mypy.plugin import FunctionContext
from mypy.types import (
    AnyType,
    CallableType,
    Instance,
    LiteralType,
    Overloaded,
    ProperType,
    TupleType,
    Type,
    TypeVarTupleType,
    TypeVarType,
    UnionType,
    UnpackType,
    get_proper_type,
)

from tapetensor.mypy_plugin import flow, names
from tapetensor.mypy_plugin.codes import MODULE_DIMS
from tapetensor.mypy_plugin.kinds import is_int, is_module
from tapetensor.mypy_plugin.modules.classes import signature_of_constructor, with_constructor
from tapetensor.mypy_plugin.modules.defining import (
    DEEPEST,
    Files,
    impossible,
    refused_tape,
    unsized,
)
from tapetensor.mypy_plugin.modules.fields import Field, fields_of
from tapetensor.mypy_plugin.modules.wording import part_in_words

# Fields of these types are built from nothing but a default.
_PLAIN = {f"builtins.{one}" for one in ("int", "float", "bool", "str", "complex", "dict", "set")}


def check_build(context: FunctionContext) -> Type:
    """Report the first field of the class that `build` cannot make; return what it makes."""
    expression = context.args[0][0] if context.args and context.args[0] else None
    if expression is None or not context.arg_types[0]:
        return context.default_return_type
    info = _class_named(expression)
    if info is None or not info.has_base(names.MODULE):
        # A variable: it may hold a derived class that can be built.
        return context.default_return_type
    made = _with_defaults(expression, context.default_return_type)
    complaint = _incomplete(expression, info)
    if complaint is None:
        given = _instance(context.arg_types[0][0])
        if given is None:
            return made
        instance = _with_defaults(expression, given)
        checker: Any = context.api
        files = frozenset([checker.tree.fullname, *[one.module_name for one in info.mro]])
        path = given.type.name
        complaint = _module(files, instance, frozenset(), path) or impossible(files, instance, path)
    if complaint is not None:
        flow.fail(context.api, f"build: {complaint}", expression, MODULE_DIMS)
    return made


def _with_defaults(expression: Expression, made: Type) -> Type:
    """Return what is made with the defaults of the type variables that are given nothing.

    mypy 2.0 leaves the variables themselves there, which then fit no argument of `forward`.
    """
    result = get_proper_type(made)
    if not isinstance(expression, IndexExpr) or not isinstance(result, Instance):
        return made
    given = len(expression.index.items) if isinstance(expression.index, TupleExpr) else 1
    variables = result.type.defn.type_vars
    if len(result.args) != len(variables):
        return made
    values = dict(zip([one.id for one in variables], result.args, strict=True))
    for one in variables[given:]:
        if isinstance(one, TypeVarType) and one.has_default() and values[one.id] == one:
            values[one.id] = expand_type(one.default, values)
    return result.copy_modified(args=list(values.values()))


def _class_named(expression: Expression) -> TypeInfo | None:
    """Return the class that an expression spells out: ``Mlp``, ``nn.Linear[L[3], L[2]]``."""
    if isinstance(expression, IndexExpr):
        expression = expression.base
    node = expression.node if isinstance(expression, RefExpr) else None
    if isinstance(node, TypeAliasNode):
        target = get_proper_type(node.target)
        return target.type if isinstance(target, Instance) else None
    return node if isinstance(node, TypeInfo) else None


def _incomplete(expression: Expression, info: TypeInfo) -> str | None:
    """Return a complaint about a generic class that is given without its dims."""
    if not (isinstance(expression, RefExpr) and isinstance(expression.node, TypeInfo)):
        return None
    variables = info.defn.type_vars
    required = [one for one in variables if not one.has_default()]
    if not required:
        return None
    given = ["..." if isinstance(one, TypeVarTupleType) else "Literal[64]" for one in required]
    return (
        f"{info.name}: {info.name}[{', '.join([one.name for one in variables])}] needs a value "
        f"for {required[0].name}; write {info.name}[{', '.join(given)}], say"
    )


def _instance(cls: Type) -> Instance | None:
    """Return what a class makes when it is called."""
    cls = get_proper_type(cls)
    made = cls.items[-1] if isinstance(cls, Overloaded) else cls
    result = get_proper_type(made.ret_type) if isinstance(made, CallableType) else None
    return result if isinstance(result, Instance) else None


def _module(files: Files, module: Type, options: frozenset[str], path: str) -> str | None:
    """Return what is wrong with the first field of a module that cannot be built."""
    module = get_proper_type(module)
    if isinstance(module, AnyType | TypeVarType) or path.count(".") > DEEPEST:
        return None
    if not isinstance(module, Instance) or not module.type.has_base(names.MODULE):
        written = _named(module)
        return f"{path} is annotated {written}, which is not a Module"
    info = module.type
    if info.fallback_to_any or not (
        info.module_name in files or info.module_name.startswith("tapetensor.")
    ):
        return None
    owner = with_constructor(info)
    if owner is not None:
        return _constructor(files, module, owner, options, path)
    for field in fields_of(module):
        if field.name in options:
            continue
        if field.annotation is None:
            return None
        complaint = _field(files, field, field.annotation, f"{path}.{field.name}")
        if complaint is not None:
            return complaint
    return None


def _modules(
    files: Files, modules: Sequence[Type], options: frozenset[str], path: str
) -> str | None:
    """Return what is wrong with the first of several modules."""
    if any(isinstance(get_proper_type(one), UnpackType) for one in modules):
        return None
    complaints = [
        _module(files, one, options, f"{path}.{index}") for index, one in enumerate(modules)
    ]
    return next(filter(None, complaints), None)


def _field(files: Files, field: Field, annotation: ProperType, path: str) -> str | None:
    name, kind, options, _ = field
    if isinstance(annotation, UnionType | LiteralType):
        return _without_default(annotation, path)
    if isinstance(annotation, TupleType):
        return _misused(kind, ("options",), annotation, path) or _modules(
            files, annotation.items, options, path
        )
    if not isinstance(annotation, Instance):
        return None
    origin = annotation.type.fullname
    if origin in ("builtins.list", "builtins.tuple"):
        return _misused(kind, ("repeat",), annotation, path) or (
            f"{path} is a {annotation.type.name} of unknown length; "
            f"write {name}: {annotation.type.name}[...] = nn.repeat(3), say"
            if not kind
            else _module(files, annotation.args[0], options, f"{path}.0")
        )
    if origin == names.TENSOR:
        return _misused(kind, ("parameter", "buffer"), annotation, path) or _tensor(
            name, kind, annotation, path
        )
    if annotation.type.has_base(names.MODULE):
        return _misused(kind, ("options",), annotation, path) or _module(
            files, annotation, options, path
        )
    return _without_default(annotation, path) if origin in _PLAIN else None


def _misused(kind: str, allowed: tuple[str, ...], annotation: Type, path: str) -> str | None:
    if not kind or kind in allowed:
        return None
    cures = " or ".join([f"nn.{one}(...)" for one in allowed])
    return (
        f"{path} is annotated {_named(annotation)}, for which nn.{kind}(...) has no meaning; "
        f"write {cures}, or nothing"
    )


def _without_default(annotation: Type, path: str) -> str:
    return (
        f"{path} is annotated {_named(annotation)}; give it a default, or make it a module, "
        "a list or tuple of modules, or a tensor with nn.parameter(...)"
    )


def _tensor(name: str, kind: str, annotation: Instance, path: str) -> str | None:
    if not kind:
        return (
            f"{path} is a tensor without first values; "
            f"write {name}: Tensor... = nn.parameter(nn.init.zeros), say"
        )
    shape, tape, dtype = [get_proper_type(one) for one in annotation.args]
    dims = shape.items if isinstance(shape, TupleType) else []
    complaints = [refused_tape(tape, path), *[_dim(dim, path) for dim in dims]]
    complaint = next(filter(None, complaints), None)
    if complaint is not None:
        return complaint
    if kind == "parameter" and isinstance(dtype, Instance) and dtype.type.has_base("numpy.integer"):
        return (
            f"{path} has dtype {part_in_words(dtype)}, and only floats are trained; "
            "declare it with nn.buffer(...)"
        )
    return None


def _dim(dim: Type, path: str) -> str | None:
    dim = get_proper_type(dim)
    if isinstance(dim, AnyType | LiteralType | UnpackType):
        return None
    return unsized(path, _named(dim))


def _constructor(
    files: Files, module: Instance, owner: TypeInfo, options: frozenset[str], path: str
) -> str | None:
    """Return what is wrong with the first argument that `build` cannot read off the dims."""
    signature = signature_of_constructor(owner)
    if signature is None or "*" in options:
        return None
    mapped = map_instance_to_supertype(module, owner)
    if owner.fullname == names.SEQUENTIAL:
        return _modules(files, mapped.args, frozenset(), path)
    arguments = zip(signature.arg_names, signature.arg_kinds, signature.arg_types, strict=True)
    for name, kind, annotation in [*arguments][1:]:
        if name is None or name in options or name in ("rng", "dtype") or kind.is_star():
            continue
        annotation = get_proper_type(annotation)
        if isinstance(annotation, TypeVarType) and annotation.id.namespace == owner.fullname:
            given = expand_type_by_instance(annotation, mapped)
            complaint = (
                _module(files, given, frozenset(), f"{path}.{name}")
                if is_module(annotation.upper_bound)
                else _dim(given, path)
            )
            if complaint is not None:
                return complaint
        elif kind.is_required() and not isinstance(annotation, TypeVarType):
            return (
                f"{path}: the argument {name} of {module.type.name} cannot be read from the "
                f"annotation; give it with nn.options({name}=...)"
            )
    return None


def _named(annotation: Type) -> str:
    """Return an annotation as its user would recognise it."""
    annotation = get_proper_type(annotation)
    if is_int(annotation):
        return "int"
    if isinstance(annotation, UnionType):
        return " | ".join([_named(one) for one in annotation.items])
    if isinstance(annotation, LiteralType):
        return f"Literal[{annotation.value!r}]"
    return part_in_words(annotation)
