"""Layers and their functions: windows that slide over images and sequences, attention, losses.

Plain typing refuses most of what does not fit, too, but of overloads by the tape mypy explains the
first, which is about the tape, and it says so once for each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

from mypy.types import Instance, Type

from tapetensor.arguments import as_size
from tapetensor.mypy_plugin.names import MAY_BE_0
from tapetensor.mypy_plugin.reading import (
    Operand,
    UndecidedError,
    all_known,
    common_dtype,
    is_absent,
    is_floating,
    is_int,
    is_plain,
    known,
    on_axes,
    read_dim,
    read_int,
    read_literal,
    read_shape,
    read_tensor,
)
from tapetensor.mypy_plugin.shapes.axes import given_axis
from tapetensor.mypy_plugin.shapes.broadcasting import (
    check_floating,
    check_integers,
    check_same,
    is_bool,
)
from tapetensor.mypy_plugin.shapes.calls import Answer, Call, Rule
from tapetensor.mypy_plugin.shapes.computed import settled_dims
from tapetensor.rules import layers as of_layers
from tapetensor.rules import windows as rules
from tapetensor.rules.dims import ANY, Dim, Dims, Size, product
from tapetensor.rules.windows import Window


def taking(rule: Callable[[str, Dims, Dim], None], call: Call) -> Answer:
    """Refuse an input of which a rule says that it does not fit the size of the layer."""
    rule(call.op, call.operand("x").dims, read_number(call.layer[0]))
    return None


def normalizing(rule: Callable[[str, Dims, Dim], None], call: Call) -> Answer:
    """Refuse an input of the wrong size, and a training input of one value per channel."""
    taking(rule, call)
    x = call.operand("x")
    if not is_plain(x.tape) and isinstance(x.tape, Instance):
        of_layers.check_variance(call.op, x.dims, read_number(call.layer[0]))
    return None


def over_the_last_axis(call: Call) -> Answer:
    """Return the result of a layer of features, which leaves the axes before the last as they are.

    Plain typing says the same, but where a result does not fit its place mypy takes those axes from
    there, and calls the input wrong.
    """
    taking(of_layers.check_features, call)
    x, (features, own_dtype) = call.operand("x"), call.layer[-2:]
    made = read_dim(features)
    if made is None:
        return None
    return call.tensor((*x.dims[:-1], made), x.tape, common_dtype(x.dtype, own_dtype))


def attention(call: Call) -> Answer:
    """Refuse operands of `scaled_dot_product_attention` that do not fit."""
    operands = [*call.tensors.values()]
    scores = of_layers.scores(call.op, *[one.dims for one in operands])
    check_floating(call.op, operands[0])
    check_same(call.op, operands)
    _check_seen(call, operands, scores)
    return None


def attending(call: Call) -> Answer:
    """Refuse inputs of a `MultiHeadAttention`, or an `EncoderBlock`, that do not fit."""
    given = [call.argument(place) for place in (0, "key", "value")]
    if given[1] is None and given[2] is None:
        given = given[:1] * 3
    operands = [known(read_tensor(one)) for one in given]
    shapes = [one.dims for one in operands]
    _check_features(call, shapes)
    scores, heads = of_layers.scores(call.op, *shapes), read_dim(call.layer[1])
    of_heads = None if heads is None else (*scores[:-2], heads, *scores[-2:])
    _check_seen(call, operands, of_heads, of_layers.OR_KEYS)
    return None


def decoder(call: Call) -> Answer:
    """Refuse two sequences, of a `DecoderBlock` or a `Transformer`, that do not fit."""
    (name, x), (other, y) = call.tensors.items()
    _check_features(call, [x.dims, y.dims])
    of_layers.check_sequences(call.op, (name, other), x.dims, y.dims)
    return None


def _check_features(call: Call, shapes: Sequence[Dims]) -> None:
    for shape in shapes:
        of_layers.check_features(call.op, shape, read_number(call.layer[0]))


def _check_seen(
    call: Call, operands: Sequence[Operand], scores: Dims | None, cure: str = ""
) -> None:
    """Raise an error if masks, or a bias, do not fit the scores, whose shape may not be known."""
    query, key, _ = operands
    mask, bias, keys = _beside(call, "mask"), _beside(call, "bias"), _beside(call, "keys_mask")
    if mask is not None and scores is not None and is_bool(mask):
        of_layers.check_mask(call.op, mask.dims, scores, cure)
    if bias is not None and scores is not None and not is_bool(bias):
        check_same(call.op, [query, bias])
        of_layers.check_broadcasts(call.op, "bias", bias.dims, scores)
    if keys is not None and is_bool(keys):
        of_layers.check_keys_mask(call.op, keys.dims, key.dims)


def _beside(call: Call, name: str) -> Operand | None:
    """Return an operand; None where its shape is not known."""
    found = read_tensor(call.argument(name))
    return None if found is None or found.shape is None else found


# Losses whose operands have one shape.
ALIKE: Final = (
    *[f"regression.{name}" for name in ("mse", "rmse", "mae", "huber", "smooth_l1", "quantile")],
    *[f"regression.{name}" for name in ("poisson_nll", "gaussian_nll")],
    *[f"classification.binary_cross_entropy{kind}" for kind in ("", "_with_logits")],
    *[f"classification.{name}" for name in ("cross_entropy_with_probabilities", "kl_div")],
    *[f"margin.{name}" for name in ("triplet_margin", "hinge_embedding", "soft_margin")],
    "margin.margin_ranking",
)
# The losses of labels, and what takes probabilities in their place.
LABELLED: Final = {
    "classification.cross_entropy": "cross_entropy_with_probabilities",
    "classification.nll": "kl_div",
    "margin.multi_margin": "cross_entropy_with_probabilities",
}


def alike(call: Call) -> Answer:
    """Refuse operands that are not of one shape, and signs that are none."""
    names, operands = [*call.tensors], [*call.tensors.values()]
    for name, one in call.tensors.items():
        # What has any other number of axes, or a computed size, has no type in common with a shape.
        is_unlike = (one.shape is None) != (operands[0].shape is None)
        if is_unlike and not (one.fits_all or operands[0].fits_all):
            raise of_layers.differing(call.op, (names[0], name), (operands[0].shape, one.shape))
    of_layers.check_alike(call.op, {name: one.shape for name, one in call.tensors.items()})
    check_floating(call.op, operands[0])
    if names[-1] == "signs":
        check_integers(call.op, "signs", operands.pop(), kind="signed integers")
    check_same(call.op, operands)
    return None


def labelled(call: Call, other: str) -> Answer:
    """Refuse scores and labels of the right classes that do not go together."""
    (name, scores), (_, labels) = call.tensors.items()
    axis = -1 if scores.shape is None else given_axis(call, -1)
    of_layers.check_labels(call.op, name, scores.shape, labels.shape, axis)
    check_floating(call.op, scores)
    check_integers(call.op, "labels", labels, f"; for targets that are probabilities use {other}")
    return None


def cosine_embedding(call: Call) -> Answer:
    """Refuse vectors that do not go in pairs, and signs that are not one for each pair."""
    lhs, rhs, signs = call.tensors.values()
    of_layers.check_signed_pairs(call.op, lhs.shape, rhs.shape, signs.shape)
    check_floating(call.op, lhs)
    check_same(call.op, [lhs, rhs])
    check_integers(call.op, "signs", signs, kind="signed integers")
    return None


def read_numbers(call: Call, axes: Mapping[str, int]) -> list[Dims]:
    """Return the numbers that arguments give: by the name of each, how many there are."""
    # All are read before one may leave the call to plain typing, for the first may be refused.
    found = [_numbers(call.op, name, call.argument(name), count) for name, count in axes.items()]
    return [*known(all_known(found))]


def _numbers(op: str, name: str, found: Type | None, axes: int) -> Dims | None:
    low = 0 if name in MAY_BE_0 else 1
    if found is None:
        return (Size.of(low),) * axes
    items = on_axes(found, axes)
    if len(items) != axes or not all(is_int(one) or read_int(one) is not None for one in items):
        return None
    for number in map(read_int, items):
        as_size(op, name, low if number is None else number, low)
    return tuple(map(read_number, items))


def read_sizes(found: Type, axes: int) -> Dims:
    """Return the numbers of a window that a type argument of a layer names, one for each axis."""
    items = on_axes(found, axes)
    if len(items) != axes:
        raise UndecidedError
    return tuple(map(read_number, items))


def read_number(found: Type) -> Dim:
    """Return the number that a type names, be it by a name; ANY where it names none."""
    dim = read_dim(found)
    return dim if isinstance(dim, Size) else ANY


def convolution(call: Call) -> Answer:
    """Return the result of a function that slides a weight over `x`, or in which `x` writes it."""
    axes, transposed = _axes(call), call.op.startswith("conv_transpose")
    given = [call.argument(index) for index in range(3)]
    operands = [known(read_tensor(one)) for one in (given[:2] if is_absent(given[2]) else given)]
    check_floating(call.op, operands[0])
    check_same(call.op, operands)
    if not is_floating(operands[0].dtype):
        return None
    x, weight, *_ = shapes = [one.dims for one in operands]
    rules.check_rank(call.op, x, axes)
    rules.check_weight(call.op, weight, axes, transposed=transposed)
    kernel = tuple(dim if isinstance(dim, Size) else ANY for dim in weight[2:])
    counts = dict.fromkeys(("stride", "padding", "dilation"), axes)
    stride, padding, dilation, groups, more = read_numbers(
        call, counts | {"groups": 1, "output_padding": axes}
    )
    window = Window(kernel, stride, padding, dilation)
    if transposed:
        found = rules.transposed_convolution(call.op, shapes, window, groups[0], more)
    else:
        found = rules.convolution(call.op, shapes, window, groups[0])
    dims = (*found[:-axes], *settled_dims(found[-axes:], x, call.api))
    return call.merging(operands, dims)


def layer(call: Call) -> Answer:
    """Return the result of the `forward` of a convolution layer."""
    axes = _axes(call)
    operand, (channels, out_channels, *numbers, own_dtype) = call.operand(0), call.layer
    x, dtype = operand.dims, common_dtype(operand.dtype, own_dtype)
    taken, made = read_dim(channels), read_dim(out_channels)
    if taken is None or made is None:
        return None
    rules.check_rank(call.op, x, axes)
    rules.check_channels(call.op, x, axes, taken, f"the layer takes {taken}")
    kernel, stride, padding, *more, dilation = [read_sizes(one, axes) for one in numbers[:-1]]
    window = Window(kernel, stride, padding, dilation)
    if read_literal(numbers[2], str) == "same":
        sizes = x[-axes:]
    elif more:
        sizes = window.extents(call.op, x, more[0])
    else:
        sizes = settled_dims(window.counts(call.op, x), x, call.api)
    return call.tensor((*x[: -1 - axes], made, *sizes), operand.tape, dtype)


def _axes(call: Call) -> int:
    return 1 if call.op.endswith("1d") else 2


def pooling(call: Call) -> Answer:
    """Return the result of a function that reduces windows, or of its layer."""
    x, window = image_of(call), _window(call)
    return _settled(call, x, rules.pooling(call.op, x.dims, window), 2)


def _window(call: Call) -> Window:
    """Return the window of a function, by its arguments, or of a layer, by its type."""
    if _is_layer(call):
        return Window(*[read_sizes(one, 2) for one in call.layer])
    names = ["kernel_size", "padding", "dilation"]
    # By default the windows of a pool stand as far apart as they are large.
    if not (call.op.endswith("pool2d") and is_absent(call.argument("stride"))):
        names.append("stride")
    kernel, padding, dilation, *stride = read_numbers(call, dict.fromkeys(names, 2))
    return Window(kernel, stride[0] if stride else kernel, padding, dilation)


def _is_layer(call: Call) -> bool:
    return call.formals == 1


def sized_image(check: Callable[[str, Dims, Dims], None], call: Call) -> Answer:
    """Return the result of an op, or its layer, that makes images of a size that is asked for."""
    x, size = image_of(call), _size(call)
    if len(size) != 2:
        return None
    check(call.op, x.dims, size)
    return call.like(x, (*x.dims[:-2], *size))


upscale2d: Rule = partial(sized_image, rules.check_stretch)


def _size(call: Call) -> Dims:
    if _is_layer(call):
        return tuple(map(read_number, call.layer))
    return known(read_shape(call.argument("size")))


def check_positive(op: str, _: Dims, size: Dims) -> None:
    """Refuse a size that is none."""
    for one in size:
        as_size(op, "size", 1 if one.literal is None else one.literal, low=1)


interpolate: Rule = partial(sized_image, check_positive)


def upscale_by_layer(call: Call) -> Answer:
    """Return the result of the `forward` of `Upscale2dBy`."""
    x, by = image_of(call), read_number(call.layer[0])
    return call.like(x, (*x.dims[:-2], *[product((by, size)) for size in x.dims[-2:]]))


def flatten_layer(call: Call) -> Answer:
    """Return the result of the `forward` of `Flatten`."""
    x = call.operand(0)
    # mypy has complained of a 0-d tensor already: no overload takes it.
    return call.like(x, (x.dims[0], product(x.dims[1:]))) if x.dims else None


def image_of(call: Call) -> Operand:
    """Return the image that is the first operand."""
    x = call.operand(0)
    shape = x.dims
    check_floating(call.op, x)
    if not is_floating(x.dtype):
        raise UndecidedError
    rules.check_rank(call.op, shape, 2)
    return x


def unfold(call: Call) -> Answer:
    """Return the result of `unfold`, or its layer: rows for what a window reads, a column each."""
    x, window = image_of(call), _window(call)
    found = (product((x.dims[-3], *window.kernel)), product(window.counts(call.op, x.dims)))
    return _settled(call, x, (*x.dims[:-3], *found), 2)


def fold(call: Call) -> Answer:
    """Return the result of `fold`: images of the size that was asked for."""
    x, size, window = call.operand(0), _size(call), _window(call)
    check_floating(call.op, x)
    if len(size) != 2:
        return None
    found = rules.fold(call.op, x.dims, size, window)
    return _settled(call, x, found[:-2], 1, size)


def by_factor(rule: Callable[[str, Dims, Dim], Dims], call: Call) -> Answer:
    """Return the result of an op, or its layer, that takes pixels for channels or the reverse."""
    # The factor is an argument, or of the layer's type.
    asked = () if _is_layer(call) else read_numbers(call, {"factor": 1})[0]
    factor = asked[0] if asked else read_number(call.layer[0])
    x = call.operand(0)
    return _settled(call, x, rule(call.op, x.dims, factor), 3)


pixel_shuffle: Rule = partial(by_factor, rules.pixel_shuffle)
pixel_unshuffle: Rule = partial(by_factor, rules.pixel_unshuffle)


def _settled(call: Call, x: Operand, found: Dims, axes: int, asked: Dims = ()) -> Answer:
    """Return a result the last axes of which are new; those that were asked for stand behind."""
    return call.like(x, (*found[:-axes], *settled_dims(found[-axes:], x.dims, call.api), *asked))
