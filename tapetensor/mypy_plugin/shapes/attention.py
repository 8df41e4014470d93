"""Attention: which queries, keys, values and masks go together.

Plain typing says so too, but explains a mistake by a type parameter that it cannot infer.
"""

from __future__ import annotations

from collections.abc import Sequence

from tapetensor.mypy_plugin.shapes.calls import Answer, Call
from tapetensor.mypy_plugin.shapes.dtypes import check_floating, check_same, is_bool
from tapetensor.mypy_plugin.shapes.reading import Operand, known, read_dim, read_tensor
from tapetensor.rules import attention as rules
from tapetensor.rules.dims import Dims
from tapetensor.rules.layers import check_features


def attention(call: Call) -> Answer:
    """Refuse operands of `scaled_dot_product_attention` that do not fit."""
    operands = [call.operand(index) for index in range(3)]
    query, key, value = [one.dims for one in operands]
    scores = rules.scores(call.op, query, key, value)
    check_floating(call.op, operands[0])
    check_same(call.op, operands)
    _check_mask(call, scores)
    _check_bias(call, operands[0], scores)
    return None


def layer(call: Call) -> Answer:
    """Refuse inputs of a `MultiHeadAttention` that do not fit."""
    given = [call.argument(name) for name in ("query", "key", "value")]
    if given[1] is None and given[2] is None:
        given = given[:1] * 3
    operands = [known(read_tensor(one)) for one in given]
    query, key, value = shapes = [one.dims for one in operands]
    _check_features(call, shapes)
    scores = _seen(call, rules.scores(call.op, query, key, value))
    if scores is not None:
        _check_mask(call, scores, rules.OR_KEYS)
        _check_bias(call, operands[0], scores)
    _check_keys(call, key)
    return None


def encoder(call: Call) -> Answer:
    """Refuse inputs of an `EncoderBlock` that do not fit."""
    x = call.operand("x").dims
    _check_features(call, [x])
    scores = _seen(call, (*x[:-1], x[-2])) if len(x) > 1 else None
    if scores is not None:
        _check_mask(call, scores, rules.OR_KEYS)
    _check_keys(call, x)
    return None


def decoder(call: Call, names: tuple[str, str]) -> Answer:
    """Refuse two sequences, of a `DecoderBlock` or a `Transformer`, that do not fit."""
    shape, beside = shapes = [call.operand(name).dims for name in names]
    _check_features(call, shapes)
    rules.check_sequences(call.op, names, shape, beside)
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
    rules.check_mask(call.op, mask.shape, scores, cure)


def _check_keys(call: Call, key: Dims) -> None:
    """Raise ShapeError if a mask of keys has not a truth for each."""
    mask = read_tensor(call.argument("keys_mask"))
    if mask is not None and mask.shape is not None and is_bool(mask):
        rules.check_keys_mask(call.op, mask.shape, key)


def _check_bias(call: Call, query: Operand, scores: Dims) -> None:
    """Raise DTypeError or ShapeError if a bias cannot be added to the scores."""
    bias = read_tensor(call.argument("bias"))
    if bias is not None and bias.shape is not None and not is_bool(bias):
        check_same(call.op, [query, bias])
        rules.check_broadcasts(call.op, "bias", bias.shape, scores)
