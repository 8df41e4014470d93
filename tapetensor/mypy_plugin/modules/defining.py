"""Fields that nothing can be: neither what `build` makes nor what a constructor is given.

They are reported where the class is defined, for there is no way to make such a module. A class
with a constructor of its own is not looked at, for nobody knows what that makes of the fields.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TypeAlias

from mypy.maptype import map_instance_to_supertype
from mypy.plugin import ClassDefContext
from mypy.types import Instance, TupleType, Type, get_proper_type
from mypy.typevars import fill_typevars

from tapetensor.mypy_plugin import names
from tapetensor.mypy_plugin.codes import MODULE_DIMS
from tapetensor.mypy_plugin.kinds import is_module
from tapetensor.mypy_plugin.modules.classes import with_constructor
from tapetensor.mypy_plugin.modules.fields import assignments, declared, fields_of
from tapetensor.mypy_plugin.modules.sizes import LIBRARY, refused
from tapetensor.mypy_plugin.shapes.reading import read_shape
from tapetensor.rules.dims import is_negative

# The plugin looks into the classes of these files. A change further away would go unnoticed, as
# mypy would not check the class again.
Files: TypeAlias = frozenset[str]

_LISTS = ("builtins.list", "builtins.tuple")
# The plugin looks this far into modules within modules, for one may hold itself by mistake.
DEEPEST = 20


def check_fields(context: ClassDefContext) -> None:
    """Report every field of a module class that nothing can be."""
    cls, info = context.cls, context.cls.info
    module = fill_typevars(info)
    if not isinstance(module, Instance):
        return
    statements = assignments(cls)
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
    # A base is reported by itself where it is wrong whatever its type arguments are.
    bases = [one for base in info.mro[1:] if isinstance(one := fill_typevars(base), Instance)]
    known = {field for base in bases for field, _ in _complaints(files, base, info.name)}
    for field, complaint in _complaints(files, module, info.name):
        if field in statements or field not in known:
            context.api.fail(complaint, statements.get(field, cls), code=MODULE_DIMS)


def impossible(files: Files, annotation: Type, path: str) -> Iterator[str]:
    """Yield why nothing can be of a type; nothing if something may be.

    Args:
        files: whose classes are looked into.
        annotation: the type.
        path: how to call it.
    """
    found = get_proper_type(annotation)
    if isinstance(found, TupleType):
        for index, one in enumerate(found.items):
            yield from impossible(files, one, f"{path}.{index}")
    elif isinstance(found, Instance) and found.type.fullname == names.TENSOR:
        shape, tape, _ = found.args
        yield from refused_tape(tape, path)
        for dim in read_shape(shape) or ():
            if is_negative(dim):
                yield unsized(path, f"Literal[{dim}]")
    elif isinstance(found, Instance) and is_module(found) and path.count(".") <= DEEPEST:
        for _, complaint in _complaints(files, found, path):
            yield complaint


def _complaints(files: Files, module: Instance, path: str) -> Iterator[tuple[str, str]]:
    """Yield what of a module nothing can be: the field, empty for itself, and why."""
    info = module.type
    if info.module_name not in files and not info.module_name.startswith(LIBRARY):
        return
    complaint = refused(module)
    if complaint is not None:
        yield "", f"{path}: {complaint}"
        return
    for field, name, annotation in _parts(module):
        for why in islice(impossible(files, annotation, f"{path}.{name}"), 1):
            yield field, why


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
    for name, kind, _, annotation in fields_of(module):
        if isinstance(annotation, Instance) and annotation.type.fullname in _LISTS:
            # Any other list may be empty.
            if kind == "repeat":
                yield name, f"{name}.0", annotation.args[0]
        elif annotation is not None:
            yield name, name, annotation


def refused_tape(tape: Type, path: str) -> Iterator[str]:
    """Yield a complaint about a field that owns a tape."""
    found = get_proper_type(tape)
    if isinstance(found, Instance) and found.type.fullname == names.OWNED_TAPE:
        yield (
            f"{path} is annotated with OwnedTape; a field holds a plain value (NoneTape), "
            "it is the input of a model that is traced"
        )


def unsized(path: str, dim: str) -> str:
    """Return the complaint about a dim of a field, as it is written, that is no size."""
    return (
        f"{path}: the dim {dim} has no size; write Literal[64], say, "
        "or construct the module with ints"
    )
