"""Layers that refuse inputs, attention, and losses.

Plain typing says of most that they do not fit, too, but of overloads by the tape mypy explains the
first, which is about the tape, and it says so once for each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from mypy.types import Instance

from tapetensor.mypy_plugin.reading import (
    Operand,
    common_dtype,
    is_plain,
    known,
    read_dim,
    read_tensor,
)
from tapetensor.mypy_plugin.shapes.axes import given_axis
from tapetensor.mypy_plugin.shapes.broadcasting import (
    check_floating,
    check_integers,
    check_same,
    is_bool,
)
from tapetensor.mypy_plugin.shapes.calls import Answer, Call
from tapetensor.rules import attention as attention_rules
from tapetensor.rules import losses as losses_rules
from tapetensor.rules.dims import ANY, Dim, Dims
from tapetensor.rules.layers import check_features, check_variance


def taking(rule: Callable[[str, Dims, Dim], None], call: Call) -> Answer:
    """Refuse an input of which a rule says that it does not fit the size of the layer."""
    size = read_dim(call.layer[0])
    rule(call.op, call.operand("x").dims, ANY if size is None else size)
    return None


def normalizing(rule: Callable[[str, Dims, Dim], None], call: Call) -> Answer:
    """Refuse an input of the wrong size, and a training input of one value per channel."""
    taking(rule, call)
    x, size = call.operand("x"), read_dim(call.layer[0])
    if not is_plain(x.tape) and isinstance(x.tape, Instance) and size is not None:
        check_variance(call.op, x.dims, size)
    return None


def over_the_last_axis(call: Call) -> Answer:
    """Return the result of a layer of features, which leaves the axes before the last as they are.

    Plain typing says the same, but where a result does not fit its place mypy takes those axes from
    there, and calls the input wrong.
    """
    taking(check_features, call)
    x, (features, own_dtype) = call.operand("x"), call.layer[-2:]
    made = read_dim(features)
    if made is None:
        return None
    return call.tensor((*x.dims[:-1], made), x.tape, common_dtype(x.dtype, own_dtype))


def attention(call: Call) -> Answer:
    """Refuse operands of `scaled_dot_product_attention` that do not fit."""
    operands = [call.operand(index) for index in range(3)]
    query, key, value = [one.dims for one in operands]
    scores = attention_rules.scores(call.op, query, key, value)
    check_floating(call.op, operands[0])
    check_same(call.op, operands)
    _check_mask(call, scores)
    _check_bias(call, operands[0], scores)
    return None


def attending(call: Call) -> Answer:
    """Refuse inputs of a `MultiHeadAttention`, or an `EncoderBlock`, that do not fit."""
    given = [call.argument(place) for place in (0, "key", "value")]
    if given[1] is None and given[2] is None:
        given = given[:1] * 3
    operands = [known(read_tensor(one)) for one in given]
    query, key, value = shapes = [one.dims for one in operands]
    _check_features(call, shapes)
    scores = _seen(call, attention_rules.scores(call.op, query, key, value))
    if scores is not None:
        _check_mask(call, scores, attention_rules.OR_KEYS)
        _check_bias(call, operands[0], scores)
    _check_keys(call, key)
    return None


def decoder(call: Call, names: tuple[str, str]) -> Answer:
    """Refuse two sequences, of a `DecoderBlock` or a `Transformer`, that do not fit."""
    shape, beside = shapes = [call.operand(name).dims for name in names]
    _check_features(call, shapes)
    attention_rules.check_sequences(call.op, names, shape, beside)
    return None


def _check_features(call: Call, shapes: Sequence[Dims]) -> None:
    features = read_dim(call.layer[0])
    for shape in shapes:
        if features is not None:
            check_features(call.op, shape, features)


def _seen(call: Call, scores: Dims) -> Dims | None:
    """Return the shape of the scores of all heads, from that of one; None where it is not known."""
    heads = read_dim(call.layer[1])
    return None if heads is None else (*scores[:-2], heads, *scores[-2:])


def _check_mask(call: Call, scores: Dims, cure: str = "") -> None:
    """Raise ShapeError if a mask does not say which query sees which key."""
    mask = read_tensor(call.argument("mask"))
    if mask is None or mask.shape is None or not is_bool(mask):
        return
    attention_rules.check_mask(call.op, mask.shape, scores, cure)


def _check_keys(call: Call, key: Dims) -> None:
    """Raise ShapeError if a mask of keys has not a truth for each."""
    mask = read_tensor(call.argument("keys_mask"))
    if mask is not None and mask.shape is not None and is_bool(mask):
        attention_rules.check_keys_mask(call.op, mask.shape, key)


def _check_bias(call: Call, query: Operand, scores: Dims) -> None:
    """Raise DTypeError or ShapeError if a bias cannot be added to the scores."""
    bias = read_tensor(call.argument("bias"))
    if bias is not None and bias.shape is not None and not is_bool(bias):
        check_same(call.op, [query, bias])
        attention_rules.check_broadcasts(call.op, "bias", bias.shape, scores)


# Losses whose operands have one shape: what these are called, the signs of their elements last.
ALIKE: Final = {
    **dict.fromkeys(
        [f"regression.{name}" for name in ("mse", "rmse", "mae", "huber", "smooth_l1", "quantile")],
        ("prediction", "target"),
    ),
    "classification.cross_entropy_with_probabilities": ("logits", "probabilities"),
    "classification.binary_cross_entropy": ("predictions", "probabilities"),
    "classification.binary_cross_entropy_with_logits": ("logits", "probabilities"),
    "classification.kl_div": ("logits", "probabilities"),
    "regression.poisson_nll": ("log_rates", "counts"),
    "regression.gaussian_nll": ("prediction", "target", "variance"),
    "margin.triplet_margin": ("anchor", "positive", "negative"),
    "margin.hinge_embedding": ("distances", "signs"),
    "margin.soft_margin": ("prediction", "signs"),
    "margin.margin_ranking": ("lhs", "rhs", "signs"),
}
# The losses of labels: what the scores are called, and what takes probabilities in their place.
LABELLED: Final = {
    "classification.cross_entropy": ("logits", "cross_entropy_with_probabilities"),
    "classification.nll": ("log_probabilities", "kl_div"),
    "margin.multi_margin": ("scores", "cross_entropy_with_probabilities"),
}


def alike(call: Call, names: tuple[str, ...]) -> Answer:
    """Refuse operands that are not of one shape, and signs that are none."""
    operands = [call.operand(place) for place in range(len(names))]
    for name, one in zip(names, operands, strict=True):
        # What has any other number of axes, or a computed size, has no type in common with a shape.
        is_unlike = (one.shape is None) != (operands[0].shape is None)
        if is_unlike and not (one.fits_all or operands[0].fits_all):
            raise losses_rules.differing(call.op, (names[0], name), (operands[0].shape, one.shape))
    shapes = [one.shape for one in operands]
    losses_rules.check_alike(call.op, dict(zip(names, shapes, strict=True)))
    check_floating(call.op, operands[0])
    if names[-1] == "signs":
        check_integers(call.op, "signs", operands.pop(), kind="signed integers")
    check_same(call.op, operands)
    return None


def labelled(call: Call, name: str, other: str) -> Answer:
    """Refuse scores and labels of the right classes that do not go together."""
    scores, labels = call.operand(0), call.operand(1)
    axis = -1 if scores.shape is None else given_axis(call, -1)
    losses_rules.check_labels(call.op, name, scores.shape, labels.shape, axis)
    check_floating(call.op, scores)
    check_integers(call.op, "labels", labels, f"; for targets that are probabilities use {other}")
    return None


def cosine_embedding(call: Call) -> Answer:
    """Refuse vectors that do not go in pairs, and signs that are not one for each pair."""
    lhs, rhs, signs = [call.operand(index) for index in range(3)]
    losses_rules.check_signed_pairs(call.op, lhs.shape, rhs.shape, signs.shape)
    check_floating(call.op, lhs)
    check_same(call.op, [lhs, rhs])
    check_integers(call.op, "signs", signs, kind="signed integers")
    return None
