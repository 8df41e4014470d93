"""Modules one after another, side by side and beside their input: their shapes have to fit."""

from __future__ import annotations

from typing import Final

from mypy import types
from mypy.maptype import map_instance_to_supertype
from mypy.nodes import ARG_POS, ARG_STAR, ListExpr, StarExpr, TempNode, TupleExpr
from mypy.plugin import FunctionContext, MethodContext

from tapetensor.mypy_plugin import names
from tapetensor.mypy_plugin.modules.calling import has_forward
from tapetensor.mypy_plugin.modules.classes import in_words, tensor_in_words
from tapetensor.mypy_plugin.names import member_of
from tapetensor.mypy_plugin.reading import ANYTHING, instance_of, is_any, is_int, shape_of
from tapetensor.mypy_plugin.reporting import MODULE_FORWARD, SHAPE_MISMATCH, checker_of, fail
from tapetensor.mypy_plugin.shapes.calls import type_of
from tapetensor.mypy_plugin.shapes.computed import rebuilt
from tapetensor.rules.dims import Dims, cannot_be_equal, written


def check_layers(context: FunctionContext) -> types.Type:
    """Report what is no module with a `forward` among the arguments of `Sequential`."""
    # One formal parameter for all of them, or one for each.
    layers = [one for formal in context.arg_types for one in formal]
    kinds = [one for formal in context.arg_kinds for one in formal]
    if not layers:
        fail(context, "Sequential: give one module or more", MODULE_FORWARD)
    listed = [one for formal in context.args for one in formal]
    made = types.get_proper_type(context.default_return_type)
    if kinds == [ARG_STAR] and isinstance(listed[0], ListExpr | TupleExpr):
        # mypy joins what is listed in ``Sequential(*[...])``, and it is written down.
        layers = [type_of(one, checker_of(context)) for one in listed[0].items]
        kinds = [ARG_POS] * len(layers)
        is_whole = not any(isinstance(one, StarExpr) for one in listed[0].items)
        if isinstance(made, types.Instance) and is_whole:
            made = made.copy_modified(args=layers)
    for position, (layer, kind) in enumerate(zip(layers, kinds, strict=True)):
        if kind is ARG_STAR:
            break
        complaint = _complaint(layer)
        if complaint:
            fail(context, f"Sequential: layer {position}{complaint}", MODULE_FORWARD)
    return made


def apply_layers(context: MethodContext) -> types.Type:
    """Return the type of the output of the last layer, or name the pair that does not fit."""
    layers, start = _layers_of(context.type), _input(context)
    if layers is None or start is None:
        return context.default_return_type
    previous: types.Instance | None = None
    for position, layer in enumerate(layers):
        if not isinstance(layer, types.Instance) or not has_forward(layer.type):
            return context.default_return_type
        output, mistake = output_of(context, layer, start)
        if mistake is not None:
            if not mistake.startswith("Sequential: "):
                # The message of a `Sequential` within names the layers already.
                got, takes = _given_and_taken(context, layer, start)
                where = f"layer {position} does not fit the input: the input is {got}"
                if previous is not None:
                    where = (
                        f"layers {position - 1} and {position} do not fit: "
                        f"{in_words(previous)} gives {got}"
                    )
                mistake = f"Sequential: {where}, {takes}"
            fail(context, mistake, SHAPE_MISMATCH)
            return context.default_return_type
        start, previous = instance_of(output, names.TENSOR), layer
        if start is None:
            # Unknown from here on, or no tensor, which the next layer may still take.
            return context.default_return_type
    return start


def _input(context: MethodContext) -> types.Instance | None:
    """Return the type of the tensor that goes in; None if it is none."""
    inputs = context.arg_types[0] if context.arg_types else []
    value = types.get_proper_type(inputs[0]) if len(inputs) == 1 else None
    if isinstance(value, types.Instance) and any(map(is_any, value.args)):
        # A generic call may have taken `Any` from what `forward` expects: without that once more.
        with checker_of(context).msg.filter_errors():
            value = types.get_proper_type(context.api.get_expression_type(context.args[0][0]))
    return instance_of(value, names.TENSOR)


def _layers_of(sequence: types.Type) -> list[types.ProperType] | None:
    """Return the types of the layers; None if they are not known one by one."""
    sequence = types.get_proper_type(sequence)
    if not isinstance(sequence, types.Instance):
        return None
    owner = getattr(member_of(sequence.type, "forward"), "info", None)
    if owner is None or owner.fullname != names.SEQUENTIAL:
        # A class derived from it has a forward of its own.
        return None
    layers = [*map(types.get_proper_type, map_instance_to_supertype(sequence, owner).args)]
    is_open = any(isinstance(one, types.UnpackType) for one in layers)
    return None if is_open or not layers else layers


def output_of(
    context: MethodContext, layer: types.Instance, value: types.Type
) -> tuple[types.Type, str | None]:
    """Return what mypy infers for ``layer.forward(value)``, and its message if that is wrong."""
    checker = checker_of(context)
    # The argument stands for the call too: to the other rooms, a layer's call is not the one that
    # is written there.
    argument = TempNode(_with_open_sizes(value), context=context.context)
    calls = checker.expr_checker
    # The place of the call wants something of the sequence, and not of each layer.
    calls.type_context.append(None)
    try:
        with checker.msg.filter_errors(save_filtered_errors=True) as messages:
            output, _ = calls.check_method_call_by_name(
                "forward", _with_open_sizes(layer), [argument], [ARG_POS], argument
            )
    finally:
        calls.type_context.pop()
    if not messages.has_new_errors():
        return output, None
    return output, messages.filtered_errors()[0].message


def _with_open_sizes(value: types.Type) -> types.Type:
    """Return a type with `Any` for every dim that is just an int: one that is not known.

    Plain typing takes such layers together with inputs of any size, and so shall we.
    """
    return rebuilt(value, lambda one: ANYTHING if is_int(one) else None)


def _given_and_taken(
    context: MethodContext, layer: types.Instance, value: types.Type
) -> tuple[str, str]:
    """Return what a layer is given, and what it takes, in the words of a message."""
    checker = checker_of(context)
    with checker.msg.filter_errors():
        calls = checker.expr_checker
        forward = types.get_proper_type(
            calls.analyze_external_member_access("forward", layer, context.context)
        )
    arguments = forward.items[0].arg_types if isinstance(forward, types.FunctionLike) else []
    # The input that it takes is the first.
    wanted = arguments[0] if arguments else None
    takes = "does not take that" if wanted is None else f"takes {tensor_in_words(wanted, value)}"
    return tensor_in_words(value, wanted), f"{in_words(layer)} {takes}"


def _complaint(layer: types.Type) -> str:
    """Return what keeps a value from being a layer; empty if nothing does, or nobody knows."""
    layer = types.get_proper_type(layer)
    if isinstance(layer, types.CallableType):
        if layer.is_type_obj():
            name = layer.type_object().name
            return f" is the class {name} itself, not a Module; write {name}(...)"
        return " is a function, not a Module"
    if not isinstance(layer, types.Instance) or layer.type.fallback_to_any:
        return ""
    if not layer.type.has_base(names.MODULE):
        return f" is a {layer.type.name}, not a Module"
    return "" if has_forward(layer.type) else f", a {layer.type.name}, has no forward()"


_ROOM: Final = "tapetensor.nn.containers."
# The first keep the shape of their input; the modules of the others make one shape.
_RESIDUAL: Final = (f"{_ROOM}ResidualAdd", f"{_ROOM}ResidualMul", f"{_ROOM}Repeated")
_PARALLEL: Final = (f"{_ROOM}ParallelAdd", f"{_ROOM}ParallelMul", f"{_ROOM}AddInto")
BRANCHES: Final = (*_RESIDUAL, *_PARALLEL, f"{_ROOM}SplitInto")


def apply_branches(context: MethodContext) -> types.Type:
    """Report a module that does not take the input, or makes a shape that does not fit."""
    branches = types.get_proper_type(context.type)
    if isinstance(branches, types.Instance):
        complaint = _misfit_of_branches(context, branches)
        if complaint is not None:
            fail(context, f"{branches.type.name}: {complaint}", SHAPE_MISMATCH)
    return context.default_return_type


def _misfit_of_branches(context: MethodContext, branches: types.Instance) -> str | None:
    owner = next(one for one in branches.type.mro if one.fullname in BRANCHES)
    arguments = [
        types.get_proper_type(one) for one in map_instance_to_supertype(branches, owner).args
    ]
    layers = arguments[:1] if owner.fullname in _RESIDUAL else arguments
    if any(isinstance(one, types.UnpackType) for one in layers) or not context.arg_types[0]:
        return None
    given = types.get_proper_type(context.arg_types[0][0])
    inputs: list[types.Type] = [given] * len(layers)
    if owner.name == "AddInto" and isinstance(given, types.TupleType):
        inputs = given.items
    shapes: list[Dims] = []
    for layer, value in zip(layers, inputs, strict=False):
        before = shape_of(value)
        if before is None or not isinstance(layer, types.Instance) or not has_forward(layer.type):
            return None
        output, mistake = output_of(context, layer, value)
        if mistake is not None:
            got, takes = _given_and_taken(context, layer, value)
            return f"the input is {got}, {takes}"
        after = shape_of(output)
        if after is None:
            return None
        if owner.fullname in _RESIDUAL and _differ(before, after):
            return (
                f"{in_words(layer)} makes shape {written(after)} of {written(before)}; it must "
                "keep the shape"
            )
        shapes.append(after)
    for shape in shapes[1:]:
        if owner.fullname in _PARALLEL and _differ(shapes[0], shape):
            return (
                f"the modules make shapes {' and '.join(map(written, shapes))}; they must be "
                "equal, nothing is broadcast"
            )
    return None


def _differ(lhs: Dims, rhs: Dims) -> bool:
    """Tell whether two shapes differ whatever the sizes of the names."""
    return len(lhs) != len(rhs) or any(map(cannot_be_equal, lhs, rhs))
