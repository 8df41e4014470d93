"""Modules side by side and beside their input: what they make has to have one shape."""

from __future__ import annotations

from typing import Final

from mypy.maptype import map_instance_to_supertype
from mypy.plugin import MethodContext
from mypy.types import Instance, TupleType, Type, UnpackType, get_proper_type

from tapetensor.mypy_plugin.codes import SHAPE_MISMATCH
from tapetensor.mypy_plugin.modules.calling import has_forward
from tapetensor.mypy_plugin.modules.sequential import in_words, output_of
from tapetensor.mypy_plugin.modules.wording import module_in_words
from tapetensor.mypy_plugin.shapes.reading import read_tensor
from tapetensor.rules.dims import Dims, cannot_be_equal, written

_ROOM: Final = "tapetensor.nn.branches."
# The first keep the shape of their input; the modules of the others make one shape.
_RESIDUAL: Final = (f"{_ROOM}ResidualAdd", f"{_ROOM}ResidualMul", "tapetensor.nn.repeated.Repeated")
_PARALLEL: Final = (f"{_ROOM}ParallelAdd", f"{_ROOM}ParallelMul", f"{_ROOM}AddInto")
BRANCHES: Final = (*_RESIDUAL, *_PARALLEL, f"{_ROOM}SplitInto")


def apply_branches(context: MethodContext) -> Type:
    """Report a module that does not take the input, or makes a shape that does not fit."""
    branches = get_proper_type(context.type)
    if isinstance(branches, Instance):
        complaint = _complaint(context, branches)
        if complaint is not None:
            text = f"{branches.type.name}: {complaint}"
            context.api.fail(text, context.context, code=SHAPE_MISMATCH)
    return context.default_return_type


def _complaint(context: MethodContext, branches: Instance) -> str | None:
    owner = next(one for one in branches.type.mro if one.fullname in BRANCHES)
    arguments = [get_proper_type(one) for one in map_instance_to_supertype(branches, owner).args]
    layers = arguments[:1] if owner.fullname in _RESIDUAL else arguments
    if any(isinstance(one, UnpackType) for one in layers) or not context.arg_types[0]:
        return None
    given = get_proper_type(context.arg_types[0][0])
    inputs: list[Type] = [given] * len(layers)
    if owner.name == "AddInto" and isinstance(given, TupleType):
        inputs = given.items
    shapes: list[Dims] = []
    for layer, value in zip(layers, inputs, strict=False):
        before = read_tensor(value)
        if before is None or before.shape is None:
            return None
        if not isinstance(layer, Instance) or not has_forward(layer.type):
            return None
        output, mistake = output_of(context, layer, value)
        if mistake is not None:
            got, takes = in_words(context, layer, value)
            return f"the input is {got}, {takes}"
        after = read_tensor(output)
        if after is None or after.shape is None:
            return None
        if owner.fullname in _RESIDUAL and _differ(before.shape, after.shape):
            return (
                f"{module_in_words(layer)} makes shape {written(after.shape)} of "
                f"{written(before.shape)}; it must keep the shape"
            )
        shapes.append(after.shape)
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
