"""Fields that nothing can be, and what `build` cannot make of annotations.

The first are reported where a class is defined. The second, in the words of the run time, where
`build` is called and not where the class is defined: there is nothing wrong with a class whose
constructor is called with every field.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from mypy import types
from mypy.expandtype import expand_type, expand_type_by_instance
from mypy.maptype import map_instance_to_supertype
from mypy.nodes import Expression, IndexExpr, RefExpr, TupleExpr, TypeInfo, Var
from mypy.nodes import TypeAlias as TypeAliasNode
from mypy.plugin import ClassDefContext, FunctionContext
from mypy.typevars import fill_typevars

from tapetensor.mypy_plugin import names, reporting
from tapetensor.mypy_plugin.modules.classes import (
    DEFAULT,
    LISTS,
    assignments,
    declared,
    in_words,
    kinds_of_fields,
    signature_of_constructor,
    with_constructor,
)
from tapetensor.mypy_plugin.modules.constructing import LIBRARY, refused
from tapetensor.mypy_plugin.reading import instance_of, is_int, is_module, on_axes, read_int
from tapetensor.mypy_plugin.reporting import MODULE_DIMS, checker_of
from tapetensor.mypy_plugin.shapes.axes import is_integer
from tapetensor.mypy_plugin.shapes.computed import type_in

# Fields of these types are built from nothing but a default.
_PLAIN = {f"builtins.{one}" for one in ("int", "float", "bool", "str", "complex", "dict", "set")}
# The functions that declare a field of a type; for the others it is `options`.
_ALLOWED = {**dict.fromkeys(LISTS, ("repeat",)), names.TENSOR: ("parameter", "buffer")}
# The plugin looks this far into modules within modules, for one may hold itself by mistake.
_DEEPEST = 20


def check_fields(context: ClassDefContext) -> None:
    """Report every field of a module class that nothing can be."""
    cls, info = context.cls, context.cls.info
    module = fill_typevars(info)
    if not isinstance(module, types.Instance):
        return
    statements = assignments(cls)
    for name, statement in statements.items():
        kind = declared(statement.rvalue)[0]
        if kind and statement.unanalyzed_type is None:
            cure = f"annotate it ({name}: ... = nn.{kind}(...)), so that it becomes a field"
            reporting.fail(context, f"{info.name}.{name}: {cure}", MODULE_DIMS, statement)
    look = _Look(_files_of(info))
    # A base is reported by itself where it is wrong whatever its type arguments are.
    bases = [one for base in info.mro[1:] if isinstance(one := fill_typevars(base), types.Instance)]
    known = {field for base in bases for field, _ in look.fields(base, info.name)}
    for field, complaint in look.fields(module, info.name):
        if field in statements or field not in known:
            reporting.fail(context, complaint, MODULE_DIMS, statements.get(field, cls))


def check_build(context: FunctionContext) -> types.Type:
    """Report the first field of the class that `build` cannot make; return what it makes."""
    if not context.args or not context.args[0]:
        return context.default_return_type
    expression, given = context.args[0][0], _instance(context.arg_types[0][0])
    if given is None or not is_module(given) or not _is_class(expression):
        # A variable: it may hold a derived class that can be built.
        return context.default_return_type
    made = _with_defaults(expression, context.default_return_type)
    complaint = _incomplete(expression, given.type)
    if complaint is None:
        instance = _with_defaults(expression, given)
        files = frozenset([checker_of(context).tree.fullname, *_files_of(given.type)])
        complaint = next(_Look(files, builds=True).into(instance, given.type.name), None)
    if complaint is not None:
        reporting.fail(context, f"build: {complaint}", MODULE_DIMS, expression)
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


def _is_class(expression: Expression) -> bool:
    """Tell whether an expression spells out a class: ``Mlp``, ``nn.Linear[L[3], L[2]]``."""
    named = expression.base if isinstance(expression, IndexExpr) else expression
    return isinstance(named, RefExpr) and isinstance(named.node, TypeInfo | TypeAliasNode)


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
    if not isinstance(cls, types.FunctionLike):
        return None
    result = types.get_proper_type(cls.items[-1].ret_type)
    return result if isinstance(result, types.Instance) else None


def _files_of(info: TypeInfo) -> frozenset[str]:
    return frozenset(one.module_name for one in info.mro)


class _Look(NamedTuple):
    """A look into modules.

    Attributes:
        files: into whose classes. A change further away would go unnoticed, as mypy would not check
            the class again.
        builds: whether for what `build` cannot make, too, or only for what nothing can be.
    """

    files: frozenset[str]
    builds: bool = False

    def into(
        self, found: types.Type, path: str, options: frozenset[str] = frozenset()
    ) -> Iterator[str]:
        """Yield what is wrong with a part that has to be a module."""
        part = types.get_proper_type(found)
        if isinstance(part, types.AnyType | types.TypeVarType) or path.count(".") > _DEEPEST:
            return
        if isinstance(part, types.Instance) and is_module(part):
            for _, complaint in self.fields(part, path, options):
                yield complaint
        elif self.builds:
            yield f"{path} is annotated {_named(part)}, which is not a Module"

    def fields(
        self, module: types.Instance, path: str, options: frozenset[str] = frozenset()
    ) -> Iterator[tuple[str, str]]:
        """Yield the fields of a module of which something is wrong, empty for itself, and what."""
        info = module.type
        is_near = info.module_name in self.files or info.module_name.startswith(LIBRARY)
        if info.fallback_to_any or not is_near:
            return
        complaint, owner = refused(path, module), with_constructor(info)
        if complaint is not None:
            yield "", complaint
        elif owner is not None:
            for why in self._arguments(module, owner, options, path):
                yield "", why
        else:
            for name, (kind, given) in (kinds_of_fields(info) or {}).items():
                node = names.member_of(info, name)
                annotation = type_in(module, node) if isinstance(node, Var) else None
                if kind != DEFAULT and name not in options and annotation is not None:
                    for why in islice(self._field(kind, given, annotation, f"{path}.{name}"), 1):
                        yield name, why

    def _field(
        self, kind: str, options: frozenset[str], annotation: types.ProperType, path: str
    ) -> Iterator[str]:
        """Yield what is wrong with a field that is given as `kinds_of_fields` says."""
        origin = annotation.type.fullname if isinstance(annotation, types.Instance) else ""
        allowed, name = _ALLOWED.get(origin, ("options",)), path.rpartition(".")[2]
        is_made = origin in _ALLOWED or is_module(annotation)
        is_made = is_made or isinstance(annotation, types.TupleType)
        if isinstance(annotation, types.UnionType | types.LiteralType) or origin in _PLAIN:
            if self.builds:
                yield (
                    f"{path} is annotated {_named(annotation)}; give it a default, or make it a "
                    "module, a list or tuple of modules, or a tensor with nn.parameter(...)"
                )
        elif self.builds and is_made and kind and kind not in allowed:
            cures = " or ".join([f"nn.{one}(...)" for one in allowed])
            yield (
                f"{path} is annotated {_named(annotation)}, for which nn.{kind}(...) has no "
                f"meaning; write {cures}, or nothing"
            )
        elif isinstance(annotation, types.TupleType):
            yield from self._each(annotation.items, options, path)
        elif not isinstance(annotation, types.Instance):
            return
        elif origin in LISTS:
            if self.builds and not kind:
                yield (
                    f"{path} is a {annotation.type.name} of unknown length; "
                    f"write {name}: {annotation.type.name}[...] = nn.repeat(3), say"
                )
            if kind == "repeat":
                # Any other list may be empty.
                yield from self.into(annotation.args[0], f"{path}.0", options)
        elif origin == names.TENSOR:
            yield from self._tensor(kind, annotation, path)
        elif is_module(annotation):
            yield from self.into(annotation, path, options)

    def _each(self, modules: list[types.Type], options: frozenset[str], path: str) -> Iterator[str]:
        if not any(isinstance(types.get_proper_type(one), types.UnpackType) for one in modules):
            for index, one in enumerate(modules):
                yield from self.into(one, f"{path}.{index}", options)

    def _tensor(self, kind: str, annotation: types.Instance, path: str) -> Iterator[str]:
        if self.builds and not kind:
            yield (
                f"{path} is a tensor without first values; "
                f"write {path.rpartition('.')[2]}: Tensor... = nn.parameter(nn.init.zeros), say"
            )
        shape, tape, dtype = [types.get_proper_type(one) for one in annotation.args]
        if instance_of(tape, names.OWNED_TAPE):
            yield (
                f"{path} is annotated with OwnedTape; a field holds a plain value (NoneTape), "
                "it is the input of a model that is traced"
            )
        for one in shape.items if isinstance(shape, types.TupleType) else []:
            if (read_int(one) or 0) < 0:
                yield _unsized(path, _named(one))
            yield from self._dim(one, path)
        if self.builds and kind == "parameter" and is_integer(dtype):
            yield (
                f"{path} has dtype {in_words(dtype)}, and only floats are trained; "
                "declare it with nn.buffer(...)"
            )

    def _dim(self, dim: types.Type, path: str) -> Iterator[str]:
        proper = types.get_proper_type(dim)
        is_size = isinstance(proper, types.AnyType | types.LiteralType | types.UnpackType)
        if self.builds and not is_size:
            yield _unsized(path, _named(dim))

    def _arguments(
        self, module: types.Instance, owner: TypeInfo, options: frozenset[str], path: str
    ) -> Iterator[str]:
        """Yield what is wrong with the arguments of a constructor that is written by hand."""
        signature = signature_of_constructor(owner)
        mapped = map_instance_to_supertype(module, owner)
        if signature is None or "*" in options:
            return
        if owner.has_type_var_tuple_type:
            # Those of `Reshape` are sizes.
            if module.type.has_base(names.SEQUENTIAL) or any(map(is_module, mapped.args)):
                yield from self._each([*mapped.args], frozenset(), path)
            return
        arguments = zip(signature.arg_names, signature.arg_kinds, signature.arg_types, strict=True)
        for name, kind, annotation in [*arguments][1:]:
            if name is None or name in options or name in ("rng", "dtype") or kind.is_star():
                continue
            variable = types.get_proper_type(annotation)
            if isinstance(variable, types.TypeVarType) and variable.id.namespace == owner.fullname:
                given, bound = expand_type_by_instance(variable, mapped), variable.upper_bound
                if is_module(bound):
                    yield from self.into(given, f"{path}.{name}")
                    continue
                is_window = isinstance(types.get_proper_type(bound), types.UnionType)
                for dim in on_axes(given, 1) if is_window else [given]:
                    yield from self._dim(dim, path)
            elif self.builds and kind.is_required() and not isinstance(variable, types.TypeVarType):
                yield (
                    f"{path}: the argument {name} of {module.type.name} cannot be read from the "
                    f"annotation; give it with nn.options({name}=...)"
                )


def _unsized(path: str, dim: str) -> str:
    return (
        f"{path}: the dim {dim} has no size; write Literal[64], say, "
        "or construct the module with ints"
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
    return in_words(annotation)
