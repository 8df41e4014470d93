"""Attention: which queries, keys, values and masks go together.

Plain typing says so too, but of a mistake no more than that it cannot infer a type parameter.
"""

from __future__ import annotations

from collections.abc import Sequence

from mypy.types import Type

from tapetensor.mypy_plugin.shapes.calls import UNSURE, Answer, Call, MismatchError
from tapetensor.mypy_plugin.shapes.dims import (
    ONE,
    Dim,
    Dims,
    Size,
    differ,
    written,
)
from tapetensor.mypy_plugin.shapes.dtypes import check_floating, check_same, is_bool
from tapetensor.mypy_plugin.shapes.reading import read_dim, read_tensor

_FUNCTION = "scaled_dot_product_attention"
_LAYER = "MultiHeadAttention"


def attention(call: Call) -> Answer:
    """Refuse operands of `scaled_dot_product_attention` that do not fit."""
    operands = [read_tensor(call.position(index)) for index in range(3)]
    known = [one for one in operands if one is not None]
    shapes = [one.shape for one in known if one.shape is not None]
    if len(shapes) == 3:
        query, key, _ = _fitting(_FUNCTION, shapes)
        check_floating(_FUNCTION, known[0])
        check_same(_FUNCTION, known)
        _check_mask(_FUNCTION, call.argument("mask"), (*query[:-1], key[-2]))
    return UNSURE


def layer(call: Call) -> Answer:
    """Refuse inputs of a `MultiHeadAttention` that do not fit."""
    query, arguments = read_tensor(call.argument("query")), call.layer
    given = [query, *[read_tensor(call.argument(name)) for name in ("key", "value")]]
    if call.argument("key") is None and call.argument("value") is None:
        given = [query] * 3
    shapes = [one.shape for one in given if one is not None and one.shape is not None]
    if len(shapes) < 3 or arguments is None:
        return UNSURE
    features = read_dim(arguments[0])
    for shape in shapes:
        if features is not None and shape and differ(shape[-1], features):
            raise MismatchError(
                f"{_LAYER}: the last axis of the input must have size {features}, got shape "
                f"{written(shape)}"
            )
    queries, keys, _ = _fitting(_LAYER, shapes)
    heads = read_dim(arguments[1])
    if heads is not None:
        scores = (*queries[:-2], heads, queries[-2], keys[-2])
        _check_mask(_LAYER, call.argument("mask"), scores)
    return UNSURE


def _fitting(op: str, shapes: Sequence[Dims]) -> Sequence[Dims]:
    """Return the shapes of queries, keys and values.

    Raises:
        MismatchError: if they do not go together.
    """
    query, key, value = shapes
    said = f"{op}: query {written(query)}, key {written(key)} and value {written(value)} do not fit"
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
    return shapes


def _check_mask(op: str, found: Type | None, scores: Dims) -> None:
    """Raise MismatchError if a mask broadcasts to the scores for no sizes of the names."""
    mask = read_tensor(found)
    # mypy hands on an argument for the wrong parameter where an overload does not take it.
    if mask is None or mask.shape is None or not is_bool(mask):
        return
    aligned = zip(reversed(mask.shape), reversed(scores), strict=False)
    if len(mask.shape) > len(scores) or any(_never(one, other) for one, other in aligned):
        raise MismatchError(
            f"{op}: a mask of shape {written(mask.shape)} does not broadcast to the scores "
            f"{written(scores)}"
        )


def _never(dim: Dim, goal: Dim) -> bool:
    """Tell whether a dim does not broadcast to another one, whatever the names stand for."""
    if not isinstance(dim, Size) or not isinstance(goal, Size) or dim == ONE:
        return False
    return dim.literal is not None and goal.literal is not None and dim != goal
