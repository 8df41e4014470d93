"""Layers that nothing can be, for their sizes do not go together: where they are made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from mypy import types
from mypy.expandtype import expand_type, expand_type_by_instance
from mypy.maptype import map_instance_to_supertype
from mypy.nodes import ARG_POS, ARG_STAR, CallExpr, TypeInfo
from mypy.plugin import FunctionSigContext
from mypy.typevars import fill_typevars

from tapetensor.arguments import as_size
from tapetensor.arguments.spellings import given_by_name
from tapetensor.errors import TapeTensorError
from tapetensor.mypy_plugin.modules.classes import signature_of_constructor, with_constructor
from tapetensor.mypy_plugin.names import MAY_BE_0
from tapetensor.mypy_plugin.reading import (
    UndecidedError,
    is_absent,
    on_axes,
    read_int,
    read_literal,
    remembered,
)
from tapetensor.mypy_plugin.reporting import ARGUMENT_KIND, MODULE_DIMS, checker_of, fail
from tapetensor.mypy_plugin.shapes.calls import Call, is_readable, taking_anything, type_of
from tapetensor.mypy_plugin.shapes.layers import read_number, read_sizes
from tapetensor.mypy_plugin.shapes.signatures import settled
from tapetensor.rules.windows import Window, check_division, check_same_size

# The layers of the library are defined here.
LIBRARY = "tapetensor.nn."
# The sizes that a number of parts divides.
_DIVIDED: Final = {
    "heads": ("key_features", "value_features"),
    "num_groups": ("num_channels",),
    "groups": ("in_channels", "out_channels"),
}


def check_constructed(context: FunctionSigContext) -> types.FunctionLike:
    """Report a layer that is constructed with sizes that it refuses."""
    item = context.default_signature
    made = types.get_proper_type(item.ret_type)
    if not isinstance(made, types.Instance):
        return item
    called = context.context
    if with_constructor(made.type) is None and isinstance(called, CallExpr):
        given = zip(called.args, called.arg_kinds, strict=True)
        sizes = [
            read_int(type_of(one, checker_of(context))) for one, kind in given if kind is ARG_POS
        ]
        if sizes:
            message = given_by_name(made.type.name, sizes, bool(made.type.type_vars))
            fail(context, message, ARGUMENT_KIND)
            return taking_anything(item)
    layer = _layer_of_ours(made.type)
    if layer is not None and is_readable(context):
        call = Call(context)
        complaint = refused(layer.name, _constructed(call, item, layer))
        if complaint is not None:
            fail(context, complaint, MODULE_DIMS)
        return _with_defaults(call, item, layer)
    return item


def _layer_of_ours(info: TypeInfo) -> TypeInfo | None:
    """Return the layer of the library, from which a class has its constructor, if it has it so."""
    owner = with_constructor(info)
    if owner is None or not owner.module_name.startswith(LIBRARY):
        return None
    return next(one for one in info.mro if one.module_name.startswith(LIBRARY))


def _with_defaults(call: Call, item: types.CallableType, layer: TypeInfo) -> types.CallableType:
    """Return the signature with the defaults of the sizes that are not given.

    mypy would take them from the place of the call: ``padding`` from the annotation of a field.
    """
    known = {variable.id for variable in item.variables}
    absent: dict[types.TypeVarId, types.Type] = {}
    for name, variable in _arguments(layer):
        default = types.get_proper_type(variable.default)
        if variable.id not in known or call.argument(name) is not None:
            continue
        if isinstance(default, types.LiteralType):
            absent[variable.id] = default
        elif isinstance(default, types.TypeVarType):
            # That of a stride is the kernel, of this call and not of one that mypy saw before.
            absent.update((variable.id, one) for one in item.variables if one.name == default.name)
    return settled(item, absent) if absent else item


def _constructed(call: Call, item: types.CallableType, layer: TypeInfo) -> types.Instance:
    """Return what the arguments of a constructor say of the layer that it makes."""
    if layer.has_type_var_tuple_type:
        return types.Instance(layer, call.given(0) if item.arg_kinds[:1] == [ARG_STAR] else [])
    arguments = {one.id: name for name, one in _arguments(layer)}
    found: dict[types.TypeVarId, types.Type] = {}
    for variable in layer.defn.type_vars:
        name = arguments.get(variable.id)
        given = None if name is None else call.argument(name)
        if given is None or is_absent(given):
            found[variable.id] = expand_type(variable.default, found)
        else:
            found[variable.id] = remembered(given) or given
    return types.Instance(layer, list(found.values()))


def refused(path: str, layer: types.Instance) -> str | None:
    """Return why there is no layer with these type arguments; None if there may be one."""
    ours = _layer_of_ours(layer.type)
    if ours is None:
        return None
    mapped = map_instance_to_supertype(layer, ours)
    found = {
        name: types.get_proper_type(expand_type_by_instance(one, mapped))
        for name, one in _arguments(ours)
    }
    try:
        for size in mapped.args if ours.name == "Reshape" else ():
            as_size(path, "a size", read_number(size).literal or 0)
        for name, one in found.items():
            for size in on_axes(one, 1):
                low = 0 if name in MAY_BE_0 else 1
                value: int | None = read_literal(size, bool)
                value = read_number(size).literal if value is None else value
                as_size(path, name, low if value is None else value, low)
        for parts in _DIVIDED.keys() & found.keys():
            sizes = {name: read_number(found[name]) for name in _DIVIDED[parts] if name in found}
            kind = parts.removeprefix("num_")
            check_division(path, kind, read_number(found[parts]), sizes)
        if ours.name.endswith(("1d", "2d")) and {"stride", "dilation"} <= found.keys():
            _check_window(path, ours.name, found)
    except UndecidedError:
        # Plain typing says that it has other numbers of numbers.
        return None
    except TapeTensorError as error:
        return str(error)
    return None


def _check_window(path: str, name: str, found: Mapping[str, types.Type]) -> None:
    axes = 1 if name.endswith("1d") else 2
    numbers = [found[one] for one in ("kernel_size", "stride", "padding", "dilation")]
    window = Window(*[read_sizes(one, axes) for one in numbers])
    if read_literal(found["padding"], str) == "same":
        check_same_size(path, window.stride)
    if name.endswith(("Pool1d", "Pool2d")):
        window.check_padding(path)
    if "output_padding" in found:
        window.check_output_padding(path, read_sizes(found["output_padding"], axes))


def _arguments(layer: TypeInfo) -> list[tuple[str, types.TypeVarType]]:
    """Return the arguments of a constructor that a type variable of the layer stands for."""
    owner = with_constructor(layer)
    signature = None if owner is None else signature_of_constructor(owner)
    whole = fill_typevars(layer)
    if owner is None or signature is None or not isinstance(whole, types.Instance):
        return []
    variables = map_instance_to_supertype(whole, owner)
    found = []
    for name, annotation in zip(signature.arg_names, signature.arg_types, strict=True):
        proper = types.get_proper_type(annotation)
        if isinstance(proper, types.UnionType):
            # An argument that may be left out.
            proper = types.get_proper_type(proper.items[0])
        if name is not None and isinstance(proper, types.TypeVarType):
            own = types.get_proper_type(expand_type_by_instance(proper, variables))
            if isinstance(own, types.TypeVarType):
                # To a variable of the class itself mypy 2.0 leaves the default of another use.
                found.append((name, own.copy_modified(default=proper.default)))
    return found
