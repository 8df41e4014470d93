"""Shape arithmetic: what an op's result has for dims, and which operands do not fit.

Where a shape is open, or an argument is no literal, plain typing decides as without the plugin.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final, TypeVar

from mypy.plugin import AttributeContext, FunctionContext, MethodContext
from mypy.types import CallableType, FunctionLike, Type

from tapetensor.mypy_plugin.names import ELSEWHERE, TENSOR, TENSOR_ROOMS, op_called
from tapetensor.mypy_plugin.shapes import (
    axes,
    broadcasting,
    computed,
    creation,
    joining,
    layers,
    variables,
    windows,
)
from tapetensor.mypy_plugin.shapes.calls import Context, Hook, Rule, hook, reflected
from tapetensor.mypy_plugin.shapes.signatures import agreeing, called_partial, compute_dims
from tapetensor.mypy_plugin.statements import WALKING
from tapetensor.rules import layers as rules

HookT = TypeVar("HookT", bound=Callable[..., Any])

# Plain typing gives these methods exact dims, or none at all.
_EXACT: Final[dict[str, Rule]] = (
    {
        f"__{name}__": broadcasting.elementwise
        for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow")
    }
    | dict.fromkeys(("atan2", "logaddexp"), broadcasting.elementwise)
    | {f"__{name}__": broadcasting.comparison for name in ("eq", "ne", "lt", "le", "gt", "ge")}
    | {f"__{name}__": broadcasting.logic for name in ("and", "or", "xor")}
    | {
        "__matmul__": broadcasting.matmul,
        "roll": axes.roll,
        "solve": broadcasting.solve,
        "put_along_axis": joining.put_along_axis,
    }
)

# Plain typing leaves dims of these methods open.
_OPEN: Final[dict[str, Rule]] = {
    "__getitem__": joining.getitem,
    **dict.fromkeys(broadcasting.MADE, broadcasting.of_matrices),
    "take": joining.take,
    "take_along_axis": joining.take_along_axis,
    "argmax": axes.position,
    "argmin": axes.position,
    "topk": axes.topk,
    "item": axes.item,
    "reshape": axes.reshape,
    "flatten": axes.flatten,
    "permute_dims": axes.permute_dims,
    "transpose": axes.transpose,
    "broadcast_to": axes.broadcast_to,
    "squeeze": axes.squeeze,
    "expand_dims": axes.expand_dims,
    "diff": axes.diff,
    "pad": axes.pad,
    "split": axes.split,
    **dict.fromkeys(
        ("softmax", "log_softmax", "normalize", "argsort", "sort"),
        axes.along_axis,
    ),
    **dict.fromkeys(
        [f"cumulative_{kind}" for kind in ("sum", "prod", "max", "min", "logsumexp")],
        axes.along_axis,
    ),
    **dict.fromkeys(
        ("sum", "prod", "mean", "max", "min", "var", "std", "norm", "any", "all", "logsumexp"),
        axes.reduction,
    ),
    **dict.fromkeys(("median", "quantile"), axes.reduction),
}

# Layers whose output has other sizes than their input, or whose overloads mypy explains badly:
# what errors call them, and their rule.
_LAYERS: Final[dict[str, tuple[str, Rule]]] = {
    "convolution.Conv1d": ("conv1d", windows.layer),
    "convolution.Conv2d": ("conv2d", windows.layer),
    "convolution.ConvTranspose1d": ("conv_transpose1d", windows.layer),
    "convolution.ConvTranspose2d": ("conv_transpose2d", windows.layer),
    "pooling.AvgPool2d": ("avg_pool2d", windows.pooling),
    "pooling.MaxPool2d": ("max_pool2d", windows.pooling),
    "pooling.MinPool2d": ("min_pool2d", windows.pooling),
    "images.Upscale2d": ("upscale2d", windows.upscale2d),
    "images.Upscale2dBy": ("Upscale2dBy", windows.upscale_by_layer),
    "images.PixelShuffle": ("pixel_shuffle", windows.pixel_shuffle),
    "images.PixelUnshuffle": ("pixel_unshuffle", windows.pixel_unshuffle),
    "images.Unfold": ("unfold", windows.unfold),
    "images.Flatten": ("Flatten", windows.flatten_layer),
    "normalization.BatchNorm1d": ("BatchNorm1d", partial(layers.normalizing, rules.batch_norm_1d)),
    "normalization.BatchNorm2d": ("BatchNorm2d", partial(layers.normalizing, rules.batch_norm_2d)),
    **{
        f"recurrent.{name}": (name, partial(layers.taking, rules.recurrent))
        for name in ("RNN", "GRU", "LSTM")
    },
    **{
        f"stacked_recurrent.{name}": (name, partial(layers.taking, rules.recurrent))
        for name in ("StackedRNN", "StackedGRU", "StackedLSTM")
    },
    **{
        f"recurrent_cells.{name}": (name, partial(layers.taking, rules.recurrent_cell))
        for name in ("RNNCell", "GRUCell", "LSTMCell")
    },
    "attention.MultiHeadAttention": ("MultiHeadAttention", layers.attending),
    "attention.UnbiasedMultiHeadAttention": ("UnbiasedMultiHeadAttention", layers.attending),
    "transformer.EncoderBlock": ("EncoderBlock", layers.attending),
    "transformer.DecoderBlock": (
        "DecoderBlock",
        partial(layers.decoder, names=("x", "memory")),
    ),
    "transformer.Transformer": (
        "Transformer",
        partial(layers.decoder, names=("source", "target")),
    ),
}

# Layers that plain typing gives exact dims.
_EXACT_LAYERS: Final[dict[str, tuple[str, Rule]]] = {
    f"{room}.{name}": (name, layers.over_the_last_axis)
    for room, name in (
        ("linear", "Linear"),
        ("linear", "UnbiasedLinear"),
        ("linear", "Bias1d"),
        ("normalization", "LayerNorm"),
        ("normalization", "RMSNorm"),
    )
}

_METHODS: Final[dict[str, Hook]] = (
    {
        f"{TENSOR}.{name}": hook(op_called(name), rule, opens_in_displays=rules is _OPEN)
        for rules in (_EXACT, _OPEN)
        for name, rule in rules.items()
    }
    | {
        f"{TENSOR}.__r{name}__": reflected(op_called(f"__{name}__"), rule)
        for name, rule in (
            ("matmul", broadcasting.rmatmul),
            *[
                (name, broadcasting.beside_number)
                for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow")
            ],
        )
    }
    | {
        f"tapetensor.nn.{name}.{called}": hook(op, rule)
        for name, (op, rule) in (_LAYERS | _EXACT_LAYERS).items()
        for called in ("forward", "__call__")
    }
    | {"builtins.str.format": hook("format", axes.formatted)}
)

_NAMED: Final[dict[str, Rule]] = (
    {
        "tensor.creation.from_numpy": creation.from_numpy,
        "tensor.creation.from_memmap": creation.made,
        "tensor.joining.concat": joining.concat,
        "tensor.joining.stack": joining.stack,
        "tensor.joining.segment_sum": joining.segment_sum,
        "tensor.joining.einsum": broadcasting.einsum,
        "tensor.convolution.conv1d": windows.convolution,
        "tensor.convolution.conv2d": windows.convolution,
        "tensor.transposed_convolution.conv_transpose1d": windows.convolution,
        "tensor.transposed_convolution.conv_transpose2d": windows.convolution,
        "tensor.images.avg_pool2d": windows.pooling,
        "tensor.images.max_pool2d": windows.pooling,
        "tensor.images.min_pool2d": windows.pooling,
        "tensor.images.upscale2d": windows.upscale2d,
        "tensor.images.interpolate": windows.interpolate,
        "tensor.attention.scaled_dot_product_attention": layers.attention,
        "losses.margin.cosine_embedding": layers.cosine_embedding,
    }
    | {f"tensor.creation.{name}": creation.made for name in creation.NAMES}
    | {
        f"tensor.images.{rule.__name__}": rule
        for rule in (windows.unfold, windows.fold, windows.pixel_shuffle, windows.pixel_unshuffle)
    }
    | {f"losses.{name}": partial(layers.alike, names=names) for name, names in layers.ALIKE.items()}
    | {
        f"losses.{name}": partial(layers.labelled, name=scores, other=other)
        for name, (scores, other) in layers.LABELLED.items()
    }
)
# Plain typing gives these functions exact dims, or none at all.
_EXACT_NAMED: Final[dict[str, Rule]] = {
    "tensor.selection.maximum": broadcasting.extreme,
    "tensor.selection.minimum": broadcasting.extreme,
    "tensor.selection.where": broadcasting.where,
    "tensor.scan.ssm_scan": broadcasting.ssm_scan,
}

_FUNCTIONS: Final[dict[str, Hook]] = {
    f"tapetensor.{name}": hook(name.rpartition(".")[2], rule, opens_in_displays=rules is _NAMED)
    for rules in (_NAMED, _EXACT_NAMED)
    for name, rule in rules.items()
}

_FROM_NUMPY: Final = f"{TENSOR_ROOMS}creation.from_numpy"
for _name in (
    _FROM_NUMPY,
    f"{TENSOR_ROOMS}creation.from_array",
    f"{TENSOR_ROOMS}creation.from_memmap",
):
    _FUNCTIONS[_name] = creation.of_own_dtype(_FUNCTIONS[_name])

# Where plain typing leaves dims open, a name may have others in the next turn of a loop.
_GROWING: Final = {
    *[f"{TENSOR}.{name}" for name in _OPEN],
    *[f"tapetensor.{name}" for name in _NAMED],
    *[f"tapetensor.nn.{name}.{called}" for name in _LAYERS for called in ("forward", "__call__")],
}

annotation, is_plain = computed.annotation, computed.is_plain


def method_signature(fullname: str) -> Hook | None:
    """Return the hook for the signature of a method."""
    return _METHODS.get(fullname) or _of_others(fullname, _agreeing_dims)


def function_signature(fullname: str) -> Hook | None:
    """Return the hook for the signature of a function."""
    if fullname == "builtins.map":
        return compute_dims
    if fullname.startswith(TENSOR_ROOMS):
        return _FUNCTIONS.get(fullname) or agreeing
    rule = _FUNCTIONS.get(fullname)
    return _of_others(fullname, _agreeing_dims) if rule is None else _agreeing_operands(rule)


def _agreeing_operands(rule: Hook) -> Hook:
    def signature(context: Context) -> FunctionLike:
        item = rule(context)
        # Each overload is asked for alone.
        assert isinstance(item, CallableType)
        return agreeing(context._replace(default_signature=item))

    return signature


def _agreeing_dims(context: Context) -> FunctionLike:
    return compute_dims(context._replace(default_signature=agreeing(context)))


def method_result(fullname: str) -> Callable[[FunctionContext | MethodContext], Type] | None:
    """Return the hook for the result of a method, or a function."""
    if fullname == "functools.partial.__call__":
        return called_partial
    if fullname == f"{TENSOR}.astype":
        return _untyped
    if fullname in _GROWING:
        return partial(variables.open_name, may_grow=True)
    return _of_others(fullname, _spelled_result) or _of_tensors(fullname)


def function_result(fullname: str) -> Callable[[FunctionContext | MethodContext], Type] | None:
    """Return the hook for the result of a function."""
    if fullname in WALKING:
        return variables.walked
    if fullname == "builtins.sum":
        return variables.summed
    return _untyped if fullname == _FROM_NUMPY else method_result(fullname)


def _untyped(context: FunctionContext | MethodContext) -> Type:
    made = creation.of_unknown_dtype(context)
    return variables.open_name(context._replace(default_return_type=made))


def _spelled_result(context: FunctionContext | MethodContext) -> Type:
    result = computed.respell_result(context)
    may_grow = computed.mentions(context.default_return_type)
    return variables.open_name(context._replace(default_return_type=result), may_grow=may_grow)


def _of_tensors(fullname: str) -> Callable[[FunctionContext | MethodContext], Type] | None:
    return variables.open_name if fullname.startswith(TENSOR_ROOMS) else None


def attribute(fullname: str) -> Callable[[AttributeContext], Type] | None:
    """Return the hook for the type of an attribute."""
    return _of_others(fullname, _spelled_attribute)


def _spelled_attribute(context: AttributeContext) -> Type:
    found = computed.respell_attribute(context)
    return variables.displayed(context._replace(default_attr_type=found))


def _of_others(fullname: str, hook: HookT) -> HookT | None:
    """Return a hook for what may speak of computed dims."""
    return None if fullname.startswith((*ELSEWHERE, TENSOR_ROOMS)) else hook
