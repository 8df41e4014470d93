"""Shape arithmetic: what an op's result has for dims, and which operands do not fit.

Where a shape is open, or an argument is no literal, plain typing decides as without the plugin.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

from mypy.plugin import (
    AttributeContext,
    FunctionContext,
    FunctionSigContext,
    MethodContext,
    MethodSigContext,
)
from mypy.types import FunctionLike, Type

from tapetensor.mypy_plugin.names import ELSEWHERE, TENSOR, TENSOR_ROOMS
from tapetensor.mypy_plugin.shapes import (
    attention,
    computed,
    contraction,
    convolution,
    creation,
    images,
    indexing,
    joining,
    losses,
    mapping,
    rearranging,
    reductions,
)
from tapetensor.mypy_plugin.shapes.agreement import agreeing
from tapetensor.mypy_plugin.shapes.broadcasting import (
    comparison,
    elementwise,
    extreme,
    logic,
    ssm_scan,
    where,
)
from tapetensor.mypy_plugin.shapes.calls import Hook, Rule, hook
from tapetensor.mypy_plugin.shapes.signatures import compute_dims

HookT = TypeVar("HookT", bound=Callable[..., Any])

# Plain typing gives these exact dims, or none at all.
_EXACT: Final[dict[str, Rule]] = {
    "__add__": elementwise("add"),
    "__sub__": elementwise("subtract"),
    "__mul__": elementwise("multiply"),
    "__truediv__": elementwise("divide"),
    "__pow__": elementwise("power"),
    "__eq__": comparison("equal"),
    "__ne__": comparison("not_equal"),
    "__lt__": comparison("less"),
    "__le__": comparison("less_equal"),
    "__gt__": comparison("greater"),
    "__ge__": comparison("greater_equal"),
    "__and__": logic("and"),
    "__or__": logic("or"),
    "__xor__": logic("xor"),
    "__matmul__": contraction.matmul,
    "__rmatmul__": contraction.rmatmul,
    "roll": rearranging.roll,
}

# Plain typing leaves dims of these open.
_OPEN: Final[dict[str, Rule]] = (
    {
        "__getitem__": indexing.getitem,
        "take": joining.take,
        "take_along_axis": joining.take_along_axis,
        "argmax": reductions.argmax,
        "item": reductions.item,
        "reshape": rearranging.reshape,
        "flatten": rearranging.flatten,
        "permute_dims": rearranging.permute_dims,
        "transpose": rearranging.transpose,
        "broadcast_to": rearranging.broadcast_to,
        "squeeze": rearranging.squeeze,
        "expand_dims": rearranging.expand_dims,
        "split": rearranging.split,
    }
    | {
        name: reductions.along_axis(name)
        for name in ("softmax", "log_softmax", "normalize", "argsort", "cumulative_sum")
    }
    | {
        name: reductions.reduction(name)
        for name in ("sum", "mean", "max", "min", "var", "std", "logsumexp")
    }
)

# The `forward` of layers whose output has other sizes than their input.
_LAYERS: Final[dict[str, Rule]] = {
    "convolution.Conv1d": convolution.layer("conv1d", 1),
    "convolution.Conv2d": convolution.layer("conv2d", 2),
    "convolution.ConvTranspose2d": convolution.layer("conv_transpose2d", 2),
    "pooling.AvgPool2d": images.pooling_layer("avg_pool2d"),
    "pooling.MaxPool2d": images.pooling_layer("max_pool2d"),
    "pooling.MinPool2d": images.pooling_layer("min_pool2d"),
    "images.Upscale2d": images.upscale_layer,
    "images.Upscale2dBy": images.upscale_by_layer,
    "images.Flatten": images.flatten_layer,
    "attention.MultiHeadAttention": attention.layer,
}

_METHODS: Final[dict[str, Hook]] = (
    {
        f"{TENSOR}.{name}": hook(rule, opens_in_displays=rules is _OPEN)
        for rules in (_EXACT, _OPEN)
        for name, rule in rules.items()
    }
    | {
        f"tapetensor.nn.{name}.{called}": hook(rule)
        for name, rule in _LAYERS.items()
        for called in ("forward", "__call__")
    }
    | {"builtins.str.format": hook(reductions.formatted)}
)

_NAMED: Final[dict[str, Hook]] = {
    "tapetensor.tensor.creation.from_numpy": hook(creation.from_numpy),
    "tapetensor.tensor.selection.maximum": hook(extreme("maximum"), opens_in_displays=False),
    "tapetensor.tensor.selection.minimum": hook(extreme("minimum"), opens_in_displays=False),
    "tapetensor.tensor.selection.where": hook(where, opens_in_displays=False),
    "tapetensor.tensor.scan.ssm_scan": hook(ssm_scan, opens_in_displays=False),
    "tapetensor.tensor.joining.concat": hook(joining.concat),
    "tapetensor.tensor.joining.stack": hook(joining.stack),
    "tapetensor.tensor.einsum.einsum": hook(contraction.einsum),
    "tapetensor.tensor.convolution.conv1d": hook(convolution.convolution("conv1d", 1)),
    "tapetensor.tensor.convolution.conv2d": hook(convolution.convolution("conv2d", 2)),
    "tapetensor.tensor.transposed_convolution.conv_transpose2d": hook(convolution.conv_transpose2d),
    "tapetensor.tensor.pooling.avg_pool2d": hook(images.pooling("avg_pool2d")),
    "tapetensor.tensor.pooling.max_pool2d": hook(images.pooling("max_pool2d")),
    "tapetensor.tensor.pooling.min_pool2d": hook(images.pooling("min_pool2d")),
    "tapetensor.tensor.pooling.upscale2d": hook(images.upscale2d),
    "tapetensor.losses.similarity.cosine_embedding": hook(losses.cosine_embedding),
    "tapetensor.tensor.attention.scaled_dot_product_attention": hook(attention.attention),
}

_FUNCTIONS: Final[dict[str, Hook]] = (
    {f"tapetensor.tensor.creation.{name}": hook(creation.made(name)) for name in creation.NAMES}
    | {f"tapetensor.losses.{name}": hook(losses.pair(name)) for name in losses.PAIRS}
    | {f"tapetensor.losses.{name}": hook(losses.labelled(name)) for name in losses.LABELLED}
    | _NAMED
)


annotation = computed.annotation


def method_signature(fullname: str) -> Hook | None:
    """Return the hook for the signature of a method."""
    return _METHODS.get(fullname) or _of_others(fullname, _agreeing_dims)


def function_signature(fullname: str) -> Hook | None:
    """Return the hook for the signature of a function."""
    if fullname == "builtins.map":
        return mapping.mapped
    if fullname.startswith(TENSOR_ROOMS):
        return _FUNCTIONS.get(fullname) or agreeing
    return _FUNCTIONS.get(fullname) or _of_others(fullname, _agreeing_dims)


def _agreeing_dims(context: MethodSigContext | FunctionSigContext) -> FunctionLike:
    return compute_dims(context._replace(default_signature=agreeing(context)))


def method_result(fullname: str) -> Callable[[MethodContext], Type] | None:
    """Return the hook for the result of a method."""
    return _of_others(fullname, computed.respell_result)


def function_result(fullname: str) -> Callable[[FunctionContext], Type] | None:
    """Return the hook for the result of a function."""
    return _of_others(fullname, computed.respell_result)


def attribute(fullname: str) -> Callable[[AttributeContext], Type] | None:
    """Return the hook for the type of an attribute."""
    return _of_others(fullname, computed.respell_attribute)


def _of_others(fullname: str, hook: HookT) -> HookT | None:
    """Return a hook for what may speak of computed dims."""
    return None if fullname.startswith((*ELSEWHERE, TENSOR_ROOMS)) else hook
