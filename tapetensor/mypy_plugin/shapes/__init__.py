"""Shape arithmetic: what an op's result has for dims, and which operands do not fit.

Where a shape is open, or an argument is no literal, plain typing decides as without the plugin.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from mypy.plugin import AttributeContext, FunctionContext, MethodContext
from mypy.types import CallableType, FunctionLike, Type

from tapetensor.mypy_plugin.names import CREATED, ELSEWHERE, TENSOR, TENSOR_ROOMS, op_called
from tapetensor.mypy_plugin.shapes import axes, broadcasting, computed, creation, layers, variables
from tapetensor.mypy_plugin.shapes.calls import Context, Hook, Rule, hook
from tapetensor.mypy_plugin.shapes.signatures import agreeing, called_partial, compute_dims
from tapetensor.mypy_plugin.statements import WALKING
from tapetensor.rules import layers as rules


def _agreeing_operands(rule: Hook) -> Hook:
    def signature(context: Context) -> FunctionLike:
        item = rule(context)
        # Each overload is asked for alone.
        assert isinstance(item, CallableType)
        return agreeing(context._replace(default_signature=item))

    return signature


# Plain typing gives these methods exact dims, or none at all.
_EXACT: Final[dict[str, Rule]] = (
    {
        f"__{side}{name}__": broadcasting.elementwise
        for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow")
        for side in ("", "r")
    }
    | dict.fromkeys(("atan2", "logaddexp"), broadcasting.elementwise)
    | {f"__{name}__": broadcasting.comparison for name in ("eq", "ne", "lt", "le", "gt", "ge")}
    | {f"__{name}__": broadcasting.logic for name in ("and", "or", "xor")}
    | {
        "__matmul__": broadcasting.matmul,
        "__rmatmul__": broadcasting.rmatmul,
        "roll": axes.roll,
        "solve": broadcasting.solve,
        "put_along_axis": axes.put_along_axis,
    }
)

# Plain typing leaves dims of these methods open.
_OPEN: Final[dict[str, Rule]] = {
    "__getitem__": axes.getitem,
    **dict.fromkeys(broadcasting.MADE, broadcasting.of_matrices),
    "take": axes.take,
    "take_along_axis": axes.take_along_axis,
    **dict.fromkeys(("argmax", "argmin"), axes.position),
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
    **dict.fromkeys(("softmax", "log_softmax", "normalize", "argsort", "sort"), axes.along_axis),
    **{f"cumulative_{name}": axes.along_axis for name in ("sum", "prod", "max", "min")},
    "cumulative_logsumexp": axes.along_axis,
    **dict.fromkeys(("sum", "prod", "mean", "max", "min", "any", "all"), axes.reduction),
    **dict.fromkeys(("var", "std", "norm", "logsumexp", "median", "quantile"), axes.reduction),
}

# Layers whose output has other sizes than their input, or whose overloads mypy explains badly:
# what errors call them, and their rule.
_LAYERS: Final[dict[str, tuple[str, Rule]]] = {
    "convolution.Conv1d": ("conv1d", layers.layer),
    "convolution.Conv2d": ("conv2d", layers.layer),
    "convolution.ConvTranspose1d": ("conv_transpose1d", layers.layer),
    "convolution.ConvTranspose2d": ("conv_transpose2d", layers.layer),
    "pooling.AvgPool2d": ("avg_pool2d", layers.pooling),
    "pooling.MaxPool2d": ("max_pool2d", layers.pooling),
    "pooling.MinPool2d": ("min_pool2d", layers.pooling),
    "images.Upscale2d": ("upscale2d", layers.upscale2d),
    "images.Upscale2dBy": ("Upscale2dBy", layers.upscale_by_layer),
    "images.PixelShuffle": ("pixel_shuffle", layers.pixel_shuffle),
    "images.PixelUnshuffle": ("pixel_unshuffle", layers.pixel_unshuffle),
    "images.Unfold": ("unfold", layers.unfold),
    "images.Flatten": ("Flatten", layers.flatten_layer),
    "normalization.BatchNorm1d": ("BatchNorm1d", partial(layers.normalizing, rules.batch_norm_1d)),
    "normalization.BatchNorm2d": ("BatchNorm2d", partial(layers.normalizing, rules.batch_norm_2d)),
    **{
        f"{room}.{name}": (name, partial(layers.taking, rule))
        for kind in ("RNN", "GRU", "LSTM")
        for room, name, rule in (
            ("recurrent", kind, rules.recurrent),
            ("stacked_recurrent", f"Stacked{kind}", rules.recurrent),
            ("recurrent_cells", f"{kind}Cell", rules.recurrent_cell),
        )
    },
    "attention.MultiHeadAttention": ("MultiHeadAttention", layers.attending),
    "attention.UnbiasedMultiHeadAttention": ("UnbiasedMultiHeadAttention", layers.attending),
    "transformer.EncoderBlock": ("EncoderBlock", layers.attending),
    "transformer.DecoderBlock": ("DecoderBlock", layers.decoder),
    "transformer.Transformer": ("Transformer", layers.decoder),
}

# Layers that plain typing gives exact dims.
_EXACT_LAYERS: Final[dict[str, tuple[str, Rule]]] = {
    f"{room}.{name}": (name, layers.over_the_last_axis)
    for room, names in (
        ("linear", ("Linear", "UnbiasedLinear", "Bias1d")),
        ("normalization", ("LayerNorm", "RMSNorm")),
    )
    for name in names
}

_METHODS: Final[dict[str, Hook]] = (
    {
        f"{TENSOR}.{name}": hook(op_called(name), rule, opens_in_displays=rules is _OPEN)
        for rules in (_EXACT, _OPEN)
        for name, rule in rules.items()
    }
    # Recurrent layers have several results, one of which may be dropped.
    | {
        f"tapetensor.nn.{name}.{called}": _agreeing_operands(found)
        if "recurrent" in name
        else found
        for name, (op, rule) in (_LAYERS | _EXACT_LAYERS).items()
        for found in [hook(op, rule)]
        for called in ("forward", "__call__")
    }
    | {"builtins.str.format": hook("format", axes.formatted)}
)

_NAMED: Final[dict[str, Rule]] = (
    {
        "tensor.creation.from_numpy": creation.from_numpy,
        "tensor.creation.from_memmap": creation.made,
        "tensor.joining.concat": axes.concat,
        "tensor.joining.stack": axes.stack,
        "tensor.joining.segment_sum": axes.segment_sum,
        "tensor.joining.einsum": broadcasting.einsum,
        "tensor.convolution.conv1d": layers.convolution,
        "tensor.convolution.conv2d": layers.convolution,
        "tensor.transposed_convolution.conv_transpose1d": layers.convolution,
        "tensor.transposed_convolution.conv_transpose2d": layers.convolution,
        "tensor.images.avg_pool2d": layers.pooling,
        "tensor.images.max_pool2d": layers.pooling,
        "tensor.images.min_pool2d": layers.pooling,
        "tensor.images.upscale2d": layers.upscale2d,
        "tensor.images.interpolate": layers.interpolate,
        "tensor.images.unfold": layers.unfold,
        "tensor.images.fold": layers.fold,
        "tensor.images.pixel_shuffle": layers.pixel_shuffle,
        "tensor.images.pixel_unshuffle": layers.pixel_unshuffle,
        "tensor.attention.scaled_dot_product_attention": layers.attention,
        "losses.margin.cosine_embedding": layers.cosine_embedding,
    }
    | {f"tensor.creation.{name}": creation.made for name in creation.NAMES}
    | {f"losses.{name}": layers.alike for name in layers.ALIKE}
    | {
        f"losses.{name}": partial(layers.labelled, other=other)
        for name, other in layers.LABELLED.items()
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
    f"tapetensor.{name}": _agreeing_operands(
        hook(name.rpartition(".")[2], rule, opens_in_displays=rules is _NAMED)
    )
    for rules in (_NAMED, _EXACT_NAMED)
    for name, rule in rules.items()
}

for _kind in ("numpy", "array", "memmap"):
    _name = f"{CREATED}from_{_kind}"
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
    found = _METHODS.get(fullname)
    return _agreeing_dims if found is None and _may_be_computed(fullname) else found


def function_signature(fullname: str) -> Hook | None:
    """Return the hook for the signature of a function."""
    if fullname == "builtins.map":
        return compute_dims
    found = _FUNCTIONS.get(fullname)
    return _agreeing_dims if found is None and not fullname.startswith(ELSEWHERE) else found


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
    return None if fullname.startswith(ELSEWHERE) else _spelled_result


def function_result(fullname: str) -> Callable[[FunctionContext | MethodContext], Type] | None:
    """Return the hook for the result of a function."""
    if fullname in WALKING:
        return variables.walked
    if fullname == "builtins.sum":
        return variables.summed
    return _untyped if fullname == f"{CREATED}from_numpy" else method_result(fullname)


def _untyped(context: FunctionContext | MethodContext) -> Type:
    made = creation.of_unknown_dtype(context)
    return variables.open_name(context._replace(default_return_type=made))


def _spelled_result(context: FunctionContext | MethodContext) -> Type:
    result = computed.respell_result(context)
    may_grow = computed.mentions(context.default_return_type)
    return variables.open_name(context._replace(default_return_type=result), may_grow=may_grow)


def attribute(fullname: str) -> Callable[[AttributeContext], Type] | None:
    """Return the hook for the type of an attribute."""
    return _spelled_attribute if _may_be_computed(fullname) else None


def _spelled_attribute(context: AttributeContext) -> Type:
    found = computed.respelled(context.default_attr_type)
    return variables.displayed(context._replace(default_attr_type=found))


def _may_be_computed(fullname: str) -> bool:
    """Tell whether the signature of a method, or an attribute, may speak of computed dims."""
    return not fullname.startswith((*ELSEWHERE, TENSOR_ROOMS))
