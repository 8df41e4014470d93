"""Modules and tensors in the words of a message."""

from __future__ import annotations

from mypy.types import (
    AnyType,
    CallableType,
    Instance,
    LiteralType,
    ParamSpecType,
    TupleType,
    Type,
    TypeVarLikeType,
    TypeVarTupleType,
    UnpackType,
    get_proper_type,
)

from tapetensor.mypy_plugin import names
from tapetensor.mypy_plugin.kinds import is_int, is_module
from tapetensor.mypy_plugin.shapes.dtypes import dtype_name

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
