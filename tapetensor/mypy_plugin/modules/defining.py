"""Fields that nothing can be: neither what `build` makes nor what a constructor is given.

Reported where the class is defined, for there is no way to make such a module. Of a class with a
constructor of its own nothing is said: what that makes of the fields is not known.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from mypy.expandtype import expand_type_by_instance
from mypy.maptype import map_instance_to_supertype
from mypy.nodes import AssignmentStmt, NameExpr, Var
from mypy.plugin import ClassDefContext
from mypy.types import Instance, TupleType, Type, get_proper_type
from mypy.typevars import fill_typevars

from tapetensor.mypy_plugin import names
from tapetensor.mypy_plugin.codes import MODULE_DIMS
from tapetensor.mypy_plugin.modules.classes import with_constructor
from tapetensor.mypy_plugin.modules.fields import declared, kinds_of_fields
from tapetensor.mypy_plugin.modules.sizes import LIBRARY, refused
from tapetensor.mypy_plugin.shapes.computed import respelled
from tapetensor.mypy_plugin.shapes.dims import is_negative
from tapetensor.mypy_plugin.shapes.reading import read_shape

# The files whose classes are looked into: of those further away a change may go unnoticed, as
# mypy would not check the class again.
_Files: TypeAlias = frozenset[str]

_LISTS = ("builtins.list", "builtins.tuple")
# How far into modules within modules to look; a module may, wrongly, be annotated within itself.
_DEEPEST = 20


def check_fields(context: ClassDefContext) -> None:
    """Report every field of a module class that nothing can be."""
    cls, info = context.cls, context.cls.info
    module = fill_typevars(info)
    if not isinstance(module, Instance):
        return
    statements = {
        one.lvalues[0].name: one
        for one in cls.defs.body
        if isinstance(one, AssignmentStmt) and isinstance(one.lvalues[0], NameExpr)
    }
    for name, statement in statements.items():
        kind = declared(statement.rvalue)[0]
        if kind and statement.unanalyzed_type is None:
            context.api.fail(
                f"{info.name}.{name}: annotate it ({name}: ... = nn.{kind}(...)), so that it "
                "becomes a field",
                statement,
                code=MODULE_DIMS,
            )
    files = frozenset(one.module_name for one in info.mro)
    # What is wrong with a base whatever its type arguments are is reported of that.
    bases = [one for base in info.mro[1:] if isinstance(one := fill_typevars(base), Instance)]
    known = {field for base in bases for field, _ in _complaints(files, base, info.name)}
    for field, complaint in _complaints(files, module, info.name):
        if field in statements or field not in known:
            context.api.fail(complaint, statements.get(field, cls), code=MODULE_DIMS)


def impossible(files: _Files, annotation: Type, path: str) -> str | None:
    """Return why nothing can be of a type; None if something may be.

    Args:
        files: whose classes are looked into.
        annotation: the type.
        path: how to call it.
    """
    found = get_proper_type(annotation)
    if isinstance(found, TupleType):
        items = [impossible(files, one, f"{path}.{at}") for at, one in enumerate(found.items)]
        return next(filter(None, items), None)
    if not isinstance(found, Instance):
        return None
    if found.type.fullname == names.TENSOR:
        return _tensor(found, path)
    if not found.type.has_base(names.MODULE) or path.count(".") > _DEEPEST:
        return None
    return next((complaint for _, complaint in _complaints(files, found, path)), None)


def _complaints(files: _Files, module: Instance, path: str) -> Iterator[tuple[str, str]]:
    """Yield what of a module nothing can be: the field, empty for itself, and why."""
    info = module.type
    if info.module_name not in files and not info.module_name.startswith(LIBRARY):
        return
    complaint = refused(module)
    if complaint is not None:
        yield "", f"{path}: {complaint}"
        return
    for field, name, annotation in _parts(module):
        complaint = impossible(files, annotation, f"{path}.{name}")
        if complaint is not None:
            yield field, complaint


def _parts(module: Instance) -> Iterator[tuple[str, str, Type]]:
    """Yield what a module is made of: the field, its name in a path, its type."""
    info = module.type
    owner = with_constructor(info)
    if owner is not None:
        if owner.module_name.startswith(LIBRARY):
            several = owner.has_type_var_tuple_type
            for index, one in enumerate(map_instance_to_supertype(module, owner).args):
                yield "", str(index) if several else "layer", one
        return
    for name, (kind, _) in (kinds_of_fields(info) or {}).items():
        symbol = info.get(name)
        node = None if symbol is None else symbol.node
        # A default is a value, so there is one.
        if kind == "default" or not isinstance(node, Var) or node.type is None:
            continue
        holder = map_instance_to_supertype(module, node.info)
        annotation = get_proper_type(respelled(expand_type_by_instance(node.type, holder)))
        if isinstance(annotation, Instance) and annotation.type.fullname in _LISTS:
            # Any other list may be empty.
            if kind == "repeat":
                yield name, f"{name}.0", annotation.args[0]
        else:
            yield name, name, annotation


def _tensor(tensor: Instance, path: str) -> str | None:
    shape, tape = [get_proper_type(one) for one in tensor.args[:2]]
    if isinstance(tape, Instance) and tape.type.fullname == names.OWNED_TAPE:
        return (
            f"{path} is annotated with OwnedTape; a field holds a plain value (NoneTape), "
            "it is the input of a model that is traced"
        )
    for dim in read_shape(shape) or ():
        if is_negative(dim):
            return (
                f"{path}: the dim Literal[{dim}] has no size; write Literal[64], say, "
                "or construct the module with ints"
            )
    return None
