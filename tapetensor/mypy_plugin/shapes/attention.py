"""Attention: which queries, keys, values and masks go together.

Plain typing says so too, but explains a mistake by a type parameter that it cannot infer.
"""

from __future__ import annotations

from collections.abc import Sequence

from mypy.types import Type

from tapetensor.mypy_plugin.shapes.calls import Answer, Call, MismatchError
from tapetensor.mypy_plugin.shapes.dtypes import check_floating, check_same, is_bool
from tapetensor.mypy_plugin.shapes.reading import known, read_dim, read_tensor
from tapetensor.rules.dims import ONE, Dims, differ, written


def attention(call: Call) -> Answer:
    """Refuse operands of `scaled_dot_product_attention` that do not fit."""
    operands = [call.operand(index) for index in range(3)]
    query, key = _fitting([one.dims for one in operands])
    check_floating(operands[0])
    check_same(operands)
    scores = (*query[:-1], key[-2])
    _check_mask(call.argument("mask"), scores)
    bias = read_tensor(call.argument("bias"))
    if bias is not None and bias.shape is not None and not is_bool(bias):
        check_same([operands[0], bias])
        _check_broadcasts("bias", bias.shape, scores)
    return None


def layer(call: Call) -> Answer:
    """Refuse inputs of a `MultiHeadAttention` that do not fit."""
    given = [call.argument(name) for name in ("query", "key", "value")]
    if given[1] is None and given[2] is None:
        given = given[:1] * 3
    shapes = [known(read_tensor(one)).dims for one in given]
    _check_features(call, shapes)
    _check_seen(call, *_fitting(shapes))
    return None


def encoder(call: Call) -> Answer:
    """Refuse inputs of an `EncoderBlock` that do not fit."""
    x = call.operand("x").dims
    _check_features(call, [x])
    if len(x) > 1:
        _check_seen(call, x, x)
    return None


def decoder(call: Call, names: tuple[str, str]) -> Answer:
    """Refuse two sequences, of a `DecoderBlock` or a `Transformer`, that do not fit."""
    shape, beside = shapes = [call.operand(name).dims for name in names]
    _check_features(call, shapes)
    leading = zip(shape[:-2], beside[:-2], strict=False)
    if (
        min(map(len, shapes)) < 2
        or len(shape) != len(beside)
        or any(differ(*pair) for pair in leading)
    ):
        raise MismatchError(
            f"{names[0]} {written(shape)} and {names[1]} {written(beside)} do not fit; they are "
            "(*Ds, length, features) with equal leading axes"
        )
    return None


def _check_features(call: Call, shapes: Sequence[Dims]) -> None:
    features = read_dim(call.layer[0])
    for shape in shapes:
        if features is not None and (not shape or differ(shape[-1], features)):
            raise MismatchError(
                f"the last axis of the input must have size {features}, got shape {written(shape)}"
            )


def _check_seen(call: Call, query: Dims, key: Dims) -> None:
    """Raise MismatchError if a mask does not broadcast to the scores of all heads."""
    heads = read_dim(call.layer[1])
    if heads is not None:
        _check_mask(call.argument("mask"), (*query[:-2], heads, query[-2], key[-2]))


def _fitting(shapes: Sequence[Dims]) -> Sequence[Dims]:
    """Return the shapes of queries and keys, if they and the values go together."""
    query, key, value = shapes
    said = f"query {written(query)}, key {written(key)} and value {written(value)} do not fit"
    if min(map(len, shapes)) < 2 or len({len(one) for one in shapes}) > 1:
        raise MismatchError(
            f"{said}; they are (*Ds, M, K), (*Ds, N, K) and (*Ds, N, P) with equal leading axes"
        )
    for words, lhs, rhs in (
        *[("leading axes", *pair) for pair in zip(query[:-2], key[:-2], strict=True)],
        *[("leading axes", *pair) for pair in zip(key[:-2], value[:-2], strict=True)],
        ("features of queries and keys", query[-1], key[-1]),
        ("numbers of keys and values", key[-2], value[-2]),
    ):
        if differ(lhs, rhs):
            raise MismatchError(f"{said}: the {words} differ, {lhs} != {rhs}")
    return query, key


def _check_mask(found: Type | None, scores: Dims) -> None:
    """Raise MismatchError if a mask does not broadcast to the scores."""
    mask = read_tensor(found)
    # mypy hands on an argument for the wrong parameter where an overload does not take it.
    if mask is None or mask.shape is None or not is_bool(mask):
        return
    _check_broadcasts("mask", mask.shape, scores)


def _check_broadcasts(name: str, shape: Dims, scores: Dims) -> None:
    aligned = zip(reversed(shape), reversed(scores), strict=False)
    if len(shape) > len(scores) or any(one != ONE and differ(one, other) for one, other in aligned):
        raise MismatchError(
            f"a {name} of shape {written(shape)} does not broadcast to the scores {written(scores)}"
        )
