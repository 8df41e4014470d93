"""Attention: which queries, keys, values and masks go together.

Plain typing says so too, but of a mistake no more than that it cannot infer a type parameter.
"""

from __future__ import annotations

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
from tapetensor.mypy_plugin.shapes.dtypes import check_floating, check_same
from tapetensor.mypy_plugin.shapes.reading import read_tensor

_FUNCTION = "scaled_dot_product_attention"


def attention(call: Call) -> Answer:
    """Refuse operands of `scaled_dot_product_attention` that do not fit."""
    operands = [read_tensor(call.position(index)) for index in range(3)]
    known = [one for one in operands if one is not None]
    shapes = [one.shape for one in known if one.shape is not None]
    if len(shapes) != 3:
        return UNSURE
    query, key, value = shapes
    said = (
        f"{_FUNCTION}: query {written(query)}, key {written(key)} and value {written(value)} do "
        "not fit"
    )
    if min(map(len, shapes)) < 2 or len({len(one) for one in shapes}) > 1:
        raise MismatchError(
            f"{said}; they are (*Ds, M, K), (*Ds, N, K) and (*Ds, N, P) with equal leading axes"
        )
    for words, lhs, rhs in (
        ("features of queries and keys", query[-1], key[-1]),
        ("numbers of keys and values", key[-2], value[-2]),
        *[("leading axes", one, other) for one, other in zip(query[:-2], key[:-2], strict=True)],
        *[("leading axes", one, other) for one, other in zip(key[:-2], value[:-2], strict=True)],
    ):
        if differ(lhs, rhs):
            raise MismatchError(f"{said}: the {words} differ, {lhs} != {rhs}")
    check_floating(_FUNCTION, known[0])
    check_same(_FUNCTION, known)
    check_mask(_FUNCTION, call.argument("mask"), (*query[:-1], key[-2]))
    return UNSURE


def check_mask(op: str, found: Type | None, scores: Dims) -> None:
    """Raise MismatchError if a mask broadcasts to the scores for no sizes of the names."""
    mask = read_tensor(found)
    if mask is None or mask.shape is None:
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
