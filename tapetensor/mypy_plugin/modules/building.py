"""`build` cannot work out everything from annotations; the messages are those at run time.

They are reported where `build` is called and not where the class is defined: there is nothing wrong
with a class whose constructor is called with every field. ``defining`` has the fields that this
cannot be given either.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

from mypy import types
from mypy.expandtype import expand_type, expand_type_by_instance
from mypy.maptype import map_instance_to_supertype
from mypy.nodes import Expression, IndexExpr, RefExpr, TupleExpr, TypeInfo
from mypy.nodes import TypeAlias as TypeAliasNode
from mypy.plugin import FunctionContext

from tapetensor.mypy_plugin import names, reporting
from tapetensor.mypy_plugin.modules.classes import (
    Field,
    fields_of,
    part_in_words,
    signature_of_constructor,
    with_constructor,
)
from tapetensor.mypy_plugin.modules.defining import (
    DEEPEST,
    Files,
    impossible,
    refused_tape,
    unsized,
)
from tapetensor.mypy_plugin.reading import is_int, is_module, on_axes
from tapetensor.mypy_plugin.reporting import MODULE_DIMS

# Fields of these types are built from nothing but a default.
_PLAIN = {f"builtins.{one}" for one in ("int", "float", "bool", "str", "complex", "dict", "set")}


def check_build(context: FunctionContext) -> types.Type:
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
        both = chain(_module(files, instance, frozenset(), path), impossible(files, instance, path))
        complaint = next(both, None)
    if complaint is not None:
        reporting.fail(context.api, f"build: {complaint}", expression, MODULE_DIMS)
    return made


def _with_defaults(expression: Expression, made: types.Type) -> types.Type:
    """Return what is made with the defaults of the type variables that are given nothing.

    mypy 2.0 leaves the variables themselves there, which then fit no argument of `forward`.
    """
    result = types.get_proper_type(made)
    if not isinstance(expression, IndexExpr) or not isinstance(result, types.Instance):
        return made
    given = len(expression.index.items) if isinstance(expression.index, TupleExpr) else 1
    variables = result.type.defn.type_vars
    if len(result.args) != len(variables):
        return made
    values = dict(zip([one.id for one in variables], result.args, strict=True))
    for one in variables[given:]:
        if isinstance(one, types.TypeVarType) and one.has_default() and values[one.id] == one:
            values[one.id] = expand_type(one.default, values)
    return result.copy_modified(args=list(values.values()))


def _class_named(expression: Expression) -> TypeInfo | None:
    """Return the class that an expression spells out: ``Mlp``, ``nn.Linear[L[3], L[2]]``."""
    if isinstance(expression, IndexExpr):
        expression = expression.base
    node = expression.node if isinstance(expression, RefExpr) else None
    if isinstance(node, TypeAliasNode):
        target = types.get_proper_type(node.target)
        return target.type if isinstance(target, types.Instance) else None
    return node if isinstance(node, TypeInfo) else None


def _incomplete(expression: Expression, info: TypeInfo) -> str | None:
    """Return a complaint about a generic class that is given without its dims."""
    if not (isinstance(expression, RefExpr) and isinstance(expression.node, TypeInfo)):
        return None
    variables = info.defn.type_vars
    required = [one for one in variables if not one.has_default()]
    if not required:
        return None
    given = [
        "..." if isinstance(one, types.TypeVarTupleType) else "Literal[64]" for one in required
    ]
    return (
        f"{info.name}: {info.name}[{', '.join([one.name for one in variables])}] needs a value "
        f"for {required[0].name}; write {info.name}[{', '.join(given)}], say"
    )


def _instance(cls: types.Type) -> types.Instance | None:
    cls = types.get_proper_type(cls)
    result = (
        types.get_proper_type(cls.items[-1].ret_type)
        if isinstance(cls, types.FunctionLike)
        else None
    )
    return result if isinstance(result, types.Instance) else None


def _module(files: Files, module: types.Type, options: frozenset[str], path: str) -> Iterator[str]:
    """Yield what is wrong with a module that cannot be built."""
    module = types.get_proper_type(module)
    if isinstance(module, types.AnyType | types.TypeVarType) or path.count(".") > DEEPEST:
        return
    if not isinstance(module, types.Instance) or not is_module(module):
        yield f"{path} is annotated {_named(module)}, which is not a Module"
        return
    info = module.type
    is_near = info.module_name in files or info.module_name.startswith("tapetensor.")
    if info.fallback_to_any or not is_near:
        return
    owner = with_constructor(info)
    if owner is not None:
        yield from _constructor(files, module, owner, options, path)
        return
    for field in fields_of(module):
        if field.name in options:
            continue
        if field.annotation is None:
            return
        yield from _field(files, field, field.annotation, f"{path}.{field.name}")


def _modules(
    files: Files, modules: Sequence[types.Type], options: frozenset[str], path: str
) -> Iterator[str]:
    if not any(isinstance(types.get_proper_type(one), types.UnpackType) for one in modules):
        for index, one in enumerate(modules):
            yield from _module(files, one, options, f"{path}.{index}")


def _field(files: Files, field: Field, annotation: types.ProperType, path: str) -> Iterator[str]:
    name, kind, options, _ = field
    if isinstance(annotation, types.TupleType):
        yield from _misused(kind, ("options",), annotation, path)
        yield from _modules(files, annotation.items, options, path)
        return
    origin = annotation.type.fullname if isinstance(annotation, types.Instance) else None
    if isinstance(annotation, types.UnionType | types.LiteralType) or origin in _PLAIN:
        yield (
            f"{path} is annotated {_named(annotation)}; give it a default, or make it a module, "
            "a list or tuple of modules, or a tensor with nn.parameter(...)"
        )
    if not isinstance(annotation, types.Instance):
        return
    if origin in ("builtins.list", "builtins.tuple"):
        yield from _misused(kind, ("repeat",), annotation, path)
        if not kind:
            yield (
                f"{path} is a {annotation.type.name} of unknown length; "
                f"write {name}: {annotation.type.name}[...] = nn.repeat(3), say"
            )
        yield from _module(files, annotation.args[0], options, f"{path}.0")
    elif origin == names.TENSOR:
        yield from _misused(kind, ("parameter", "buffer"), annotation, path)
        yield from _tensor(name, kind, annotation, path)
    elif is_module(annotation):
        yield from _misused(kind, ("options",), annotation, path)
        yield from _module(files, annotation, options, path)


def _misused(
    kind: str, allowed: tuple[str, ...], annotation: types.Type, path: str
) -> Iterator[str]:
    if kind and kind not in allowed:
        cures = " or ".join([f"nn.{one}(...)" for one in allowed])
        yield (
            f"{path} is annotated {_named(annotation)}, for which nn.{kind}(...) has no meaning; "
            f"write {cures}, or nothing"
        )


def _tensor(name: str, kind: str, annotation: types.Instance, path: str) -> Iterator[str]:
    if not kind:
        yield (
            f"{path} is a tensor without first values; "
            f"write {name}: Tensor... = nn.parameter(nn.init.zeros), say"
        )
    shape, tape, dtype = [types.get_proper_type(one) for one in annotation.args]
    yield from refused_tape(tape, path)
    for dim in shape.items if isinstance(shape, types.TupleType) else []:
        yield from _dim(dim, path)
    if (
        kind == "parameter"
        and isinstance(dtype, types.Instance)
        and dtype.type.has_base("numpy.integer")
    ):
        yield (
            f"{path} has dtype {part_in_words(dtype)}, and only floats are trained; "
            "declare it with nn.buffer(...)"
        )


def _dim(dim: types.Type, path: str) -> Iterator[str]:
    if not isinstance(
        types.get_proper_type(dim), types.AnyType | types.LiteralType | types.UnpackType
    ):
        yield unsized(path, _named(dim))


def _constructor(
    files: Files, module: types.Instance, owner: TypeInfo, options: frozenset[str], path: str
) -> Iterator[str]:
    """Yield what is wrong with the arguments that `build` cannot read off the dims."""
    signature = signature_of_constructor(owner)
    if signature is None or "*" in options:
        return
    mapped = map_instance_to_supertype(module, owner)
    if module.type.has_base(names.SEQUENTIAL):
        yield from _modules(files, mapped.args, frozenset(), path)
        return
    arguments = zip(signature.arg_names, signature.arg_kinds, signature.arg_types, strict=True)
    for name, kind, annotation in [*arguments][1:]:
        if name is None or name in options or name in ("rng", "dtype") or kind.is_star():
            continue
        annotation = types.get_proper_type(annotation)
        if isinstance(annotation, types.TypeVarType) and annotation.id.namespace == owner.fullname:
            given = expand_type_by_instance(annotation, mapped)
            if is_module(annotation.upper_bound):
                yield from _module(files, given, frozenset(), f"{path}.{name}")
            else:
                is_window = isinstance(
                    types.get_proper_type(annotation.upper_bound), types.UnionType
                )
                for dim in on_axes(given, 1) if is_window else [given]:
                    yield from _dim(dim, path)
        elif kind.is_required() and not isinstance(annotation, types.TypeVarType):
            yield (
                f"{path}: the argument {name} of {module.type.name} cannot be read from the "
                f"annotation; give it with nn.options({name}=...)"
            )


def _named(annotation: types.Type) -> str:
    """Return an annotation as its user would recognise it."""
    annotation = types.get_proper_type(annotation)
    if is_int(annotation):
        return "int"
    if isinstance(annotation, types.UnionType):
        return " | ".join([_named(one) for one in annotation.items])
    if isinstance(annotation, types.LiteralType):
        return f"Literal[{annotation.value!r}]"
    return part_in_words(annotation)
