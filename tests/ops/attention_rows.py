"""The row of attention."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import tapetensor as tt
from tapetensor.arrays.array import Array
from tests.ops.kinds import ARRAY, FACTOR, TENSOR, refuses
from tests.ops.rows import Op, each, given, refused, spaced


def _attention(query: Any, key: Any, value: Any, other: Any = None, **options: Any) -> Any:
    """Call the op with a mask or, of floats, a bias."""
    if isinstance(other, tt.Tensor) and other.dtype.kind == "f":
        return tt.scaled_dot_product_attention(query, key, value, bias=other, **options)
    return tt.scaled_dot_product_attention(query, key, value, mask=other, **options)


def _reference(
    query: Array,
    key: Array,
    value: Array,
    other: Array | None = None,
    causal: bool = False,
    scale: float | None = None,
) -> Array:
    factor = 1.0 / math.sqrt(query.shape[-1] or 1) if scale is None else scale
    scores: Array = query @ np.swapaxes(key, -1, -2) * factor
    if other is not None:
        is_mask = other.dtype == np.bool_
        scores = np.where(other, scores, -np.inf) if is_mask else scores + other
    if causal:
        scores = np.where(np.tri(*scores.shape[-2:], dtype=np.bool_), scores, -np.inf)
    lowest = np.finfo(np.float64).min
    exponentials = np.exp(scores - np.max(np.real(scores), -1, keepdims=True, initial=lowest))
    total = np.sum(exponentials, -1, keepdims=True)
    weighted: Array = exponentials / np.where(total == 0, 1, total) @ value
    return weighted


_Q, _K, _V = spaced(2, 3, 4), spaced(2, 5, 4, seed=1), spaced(2, 5, 2, seed=2)
_MASK = np.array([[True, False, True, True, False], [False] * 5, [True] * 5])
_PADDING = np.array([[[True, True, True, False, False]], [[True, False, False, False, False]]])
_HEADS = spaced(2, 3, 4, 2), spaced(2, 3, 4, 2, seed=1), spaced(2, 3, 4, 5, seed=2)

ATTENTION = (
    Op(
        name="scaled_dot_product_attention",
        covers=("scaled_dot_product_attention",),
        call=_attention,
        reference=_reference,
        samples=(
            given(_Q, _K, _V),
            given(_Q, _K, _V, causal=True),
            given(_Q, _K, _V, scale=2),
            given(_Q, _K, _V, _MASK),
            given(_Q, _K, _V, _PADDING),
            given(_Q, _K, _V, _MASK, causal=True),
            given(*_HEADS, causal=True),
            given(*_HEADS, np.array([True, True, False, True])),
            given(_Q, _K, _V, spaced(3, 5, seed=3)),
            given(_Q, _K, _V, spaced(2, 1, 5, seed=3), causal=True, scale=0.5),
            given(*_HEADS, spaced(3, 1, 1, seed=3)),
            given(_Q[0], _K[0], _V[0]),
            given(spaced(1, 1), spaced(1, 1, seed=1), spaced(1, 1, seed=2), causal=True),
            # More queries than keys, no batch, no queries, no keys, no features, no values.
            given(_K, _Q, _Q, causal=True),
            given(_Q[:0], _K[:0], _V[:0], causal=True),
            given(_Q[:, :0], _K, _V),
            given(_Q, _K[:, :0], _V[:, :0]),
            given(_Q[..., :0], _K[..., :0], _V),
            given(_Q, _K, _V[..., :0]),
        ),
        refusals=(
            refused(tt.ShapeError, r"key \(2, 5, 3\)", _Q, _K[..., :3], _V),
            refused(tt.ShapeError, r"value \(2, 4, 2\)", _Q, _K, _V[:, :4]),
            refused(tt.ShapeError, "leading axes differ", _Q, _K[:1], _V),
            refused(tt.ShapeError, r"query \(3, 4\)", _Q[0], _K, _V),
            refused(tt.ShapeError, r"\(4,\)", _Q[0, 0], _K[0, 0], _V[0, 0]),
            refused(tt.ShapeError, r"mask of shape \(5, 3\)", _Q, _K, _V, _MASK.T),
            refused(tt.ShapeError, r"\(1, 1, 3, 5\)", _Q, _K, _V, _MASK[None, None]),
            refused(tt.ShapeError, r"bias of shape \(5, 3\)", _Q, _K, _V, spaced(5, 3)),
            refused(tt.ShapeError, r"\(1, 1, 3, 5\)", _Q, _K, _V, spaced(1, 1, 3, 5)),
            refused(tt.DTypeError, "must be bool", _Q, _K, _V, _MASK.astype(int)),
            refused(tt.ArgumentTypeError, "the mask", _Q, _K, _V, each(True, ARRAY > 0)),
            refused(tt.ArgumentTypeError, "the value", _Q, _K, 1.0),
            *refuses(spaced(2, 3), TENSOR, TENSOR),
            refused(tt.ShapeError, "key", spaced(2, 3), spaced(1, 2, 3), spaced(1, 2, 3)),
            refused(
                tt.ArgumentTypeError,
                "causal must be True or False",
                _Q,
                _K,
                _V,
                causal=each(None, 1),
            ),
            *refuses(_Q, _K, _V, scale=FACTOR),
        ),
    ),
)
