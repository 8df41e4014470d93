"""Layers that nothing can be, for their sizes do not go together: where they are made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

from mypy import types
from mypy.expandtype import expand_type, expand_type_by_instance
from mypy.maptype import map_instance_to_supertype
from mypy.nodes import ARG_POS, ARG_STAR, CallExpr, TypeInfo
from mypy.plugin import FunctionSigContext
from mypy.typevars import fill_typevars

from tapetensor.arguments.spellings import given_by_name
from tapetensor.mypy_plugin.modules.classes import signature_of_constructor, with_constructor
from tapetensor.mypy_plugin.names import MAY_BE_0
from tapetensor.mypy_plugin.reading import is_absent, keeps_size, on_axes, read_dim, read_int
from tapetensor.mypy_plugin.reporting import ARGUMENT_KIND, MODULE_DIMS, checker_of, fail
from tapetensor.mypy_plugin.shapes.calls import Call, is_readable, taking_anything, type_of
from tapetensor.mypy_plugin.shapes.signatures import settled

# The layers of the library are defined here.
LIBRARY = "tapetensor.nn."


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
        complaint = refused(_constructed(call, item, layer))
        if complaint is not None:
            fail(context, f"{layer.name}: {complaint}", MODULE_DIMS)
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
        return types.Instance(layer, call.types(0) if item.arg_kinds[:1] == [ARG_STAR] else [])
    arguments = {one.id: name for name, one in _arguments(layer)}
    found: dict[types.TypeVarId, types.Type] = {}
    for variable in layer.defn.type_vars:
        name = arguments.get(variable.id)
        given = None if name is None else types.get_proper_type(call.argument(name))
        if given is None or is_absent(given):
            found[variable.id] = expand_type(variable.default, found)
        else:
            literal = given.last_known_value if isinstance(given, types.Instance) else None
            found[variable.id] = literal or given
    return types.Instance(layer, list(found.values()))


def refused(layer: types.Instance) -> str | None:
    """Return why there is no layer with these type arguments; None if there may be one."""
    ours = _layer_of_ours(layer.type)
    if ours is None:
        return None
    mapped = map_instance_to_supertype(layer, ours)
    found = [
        (name, types.get_proper_type(expand_type_by_instance(one, mapped)))
        for name, one in _arguments(ours)
    ]
    for name, one in found:
        if isinstance(one, types.LiteralType) and isinstance(one.value, bool):
            return f"{name} must be an int, got {one.value}"
    sizes = {name: size for name, one in found if (size := _size(one)) is not None}
    for name, one in found:
        for size in map(_size, on_axes(one, 1)):
            if size is not None and size < 0:
                return f"{name} must not be negative, got {size}"
            if size == 0 and name not in MAY_BE_0:
                return f"{name} must be > 0, got 0"
    if ours.name == "Reshape":
        negative = [one for one in map(_size, mapped.args) if one is not None and one < 0]
        return f"a size must not be negative, got {negative[0]}" if negative else None
    return next(chain(_misfits(sizes), _window_misfits(ours, dict(found))), None)


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


def _size(dim: types.Type) -> int | None:
    size = read_dim(dim)
    return None if size is None else size.literal


def _misfits(sizes: Mapping[str, int]) -> Iterator[str]:
    """Yield what does not go together among the known sizes of a layer, by argument."""
    heads = sizes.get("heads")
    for name in ("key_features", "value_features"):
        if heads is not None and name in sizes and sizes[name] % heads:
            yield f"{heads} heads do not divide {name}={sizes[name]} evenly"
    if sizes.get("num_channels", 0) % sizes.get("num_groups", 1):
        groups, of = sizes["num_groups"], sizes["num_channels"]
        yield f"{groups} groups do not divide num_channels {of} evenly"
    groups = sizes.get("groups", 1)
    channels = {name: sizes.get(name) for name in ("in_channels", "out_channels")}
    if any(size is not None and size % groups for size in channels.values()):
        said = [f"{name} {'?' if size is None else size}" for name, size in channels.items()]
        yield f"{groups} groups do not divide {' and '.join(said)}"


def _window_misfits(layer: TypeInfo, found: Mapping[str, types.Type]) -> Iterator[str]:
    """Yield what does not go together among the numbers of a window, along one of its axes."""
    if not layer.name.endswith(("1d", "2d")) or not {"stride", "dilation"} <= found.keys():
        return
    axes = 1 if layer.name.endswith("1d") else 2
    along = {name: [_size(item) for item in on_axes(one, axes)] for name, one in found.items()}
    if any(len(numbers) != axes for numbers in along.values()):
        # Plain typing says so.
        return
    said = {name: _in_words(numbers) for name, numbers in along.items()}
    if keeps_size(found["padding"]) and any((one or 1) > 1 for one in along["stride"]):
        yield (
            'padding="same" keeps the size of the input, which a stride of '
            f"{said['stride']} does not; give numbers"
        )
    for axis in range(axes):
        kernel, stride, padding, dilation, more = [
            along[name][axis] if name in along else None
            for name in ("kernel_size", "stride", "padding", "dilation", "output_padding")
        ]
        if dilation is None:
            continue
        is_pool = layer.name.endswith(("Pool1d", "Pool2d"))
        span = None if kernel is None else dilation * (kernel - 1) + 1
        if is_pool and span is not None and padding is not None and 2 * padding > span:
            spread = "" if dilation == 1 else f" with dilation {said['dilation']}"
            yield (
                f"padding must be at most half of the kernel_size {said['kernel_size']}{spread}, "
                f"got {said['padding']}"
            )
        if more is not None and stride is not None and more >= max(stride, dilation):
            yield (
                f"output_padding must be less than the stride {said['stride']} or the dilation "
                f"{said['dilation']}, got {said['output_padding']}"
            )


def _in_words(numbers: Sequence[int | None]) -> str:
    words = ["?" if one is None else str(one) for one in numbers]
    return words[0] if len({*words}) == 1 else f"({', '.join(words)})"
