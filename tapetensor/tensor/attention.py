"""Scaled dot-product attention."""

from __future__ import annotations

import math
from typing import Any, overload

import numpy as np

from tapetensor.arguments import as_flag, as_number, broadcasts_to
from tapetensor.arrays.array import Array
from tapetensor.errors import DTypeError, refusal
from tapetensor.kernels import attention as kernels
from tapetensor.rules import layers as rules
from tapetensor.rules.dims import sized
from tapetensor.tape import NoneTape, OwnedTape
from tapetensor.tensor.apply import apply
from tapetensor.tensor.base import TensorBase, check_floating, check_same_dtype, check_tensor
from tapetensor.tensor.tensor import Joins, Tensor
from tapetensor.typing import Ds, F, K, M, N, P, T


@overload
def scaled_dot_product_attention(
    query: Tensor[tuple[*Ds, M, K], T, F],
    key: Tensor[tuple[*Ds, N, K], T, F],
    value: Tensor[tuple[*Ds, N, P], T, F],
    *,
    mask: Tensor[Any, NoneTape, np.bool_] | None = None,
    bias: Joins[Any, T, F] | None = None,
    causal: bool = False,
    scale: float | None = None,
) -> Tensor[tuple[*Ds, M, P], T, F]: ...
@overload
def scaled_dot_product_attention(
    query: Tensor[tuple[*Ds, M, K], T, F],
    key: Tensor[tuple[*Ds, N, K], NoneTape, F],
    value: Tensor[tuple[*Ds, N, P], NoneTape, F],
    *,
    mask: Tensor[Any, NoneTape, np.bool_] | None = None,
    bias: Joins[Any, T, F] | None = None,
    causal: bool = False,
    scale: float | None = None,
) -> Tensor[tuple[*Ds, M, P], T, F]: ...
# Last of those that begin with `T`, because from `Joins` ty does not know all sizes.
@overload
def scaled_dot_product_attention(
    query: Tensor[tuple[*Ds, M, K], T, F],
    key: Joins[tuple[*Ds, N, K], T, F],
    value: Joins[tuple[*Ds, N, P], T, F],
    *,
    mask: Tensor[Any, NoneTape, np.bool_] | None = None,
    bias: Joins[Any, T, F] | None = None,
    causal: bool = False,
    scale: float | None = None,
) -> Tensor[tuple[*Ds, M, P], T, F]: ...
@overload
def scaled_dot_product_attention(
    query: Tensor[tuple[*Ds, M, K], NoneTape, F],
    key: Tensor[tuple[*Ds, N, K], T, F],
    value: Joins[tuple[*Ds, N, P], T, F],
    *,
    mask: Tensor[Any, NoneTape, np.bool_] | None = None,
    bias: Joins[Any, T, F] | None = None,
    causal: bool = False,
    scale: float | None = None,
) -> Tensor[tuple[*Ds, M, P], T, F]: ...
@overload
def scaled_dot_product_attention(
    query: Tensor[tuple[*Ds, M, K], NoneTape, F],
    key: Tensor[tuple[*Ds, N, K], NoneTape, F],
    value: Tensor[tuple[*Ds, N, P], T, F],
    *,
    mask: Tensor[Any, NoneTape, np.bool_] | None = None,
    bias: Joins[Any, T, F] | None = None,
    causal: bool = False,
    scale: float | None = None,
) -> Tensor[tuple[*Ds, M, P], T, F]: ...
@overload
def scaled_dot_product_attention(
    query: Tensor[tuple[*Ds, M, K], OwnedTape, F],
    key: Tensor[tuple[*Ds, N, K], Any, F],
    value: Tensor[tuple[*Ds, N, P], Any, F],
    *,
    mask: Tensor[Any, NoneTape, np.bool_] | None = None,
    bias: Tensor[Any, Any, F] | None = None,
    causal: bool = False,
    scale: float | None = None,
) -> Tensor[tuple[*Ds, M, P], OwnedTape, F]: ...
@overload
def scaled_dot_product_attention(
    query: Tensor[tuple[*Ds, M, K], Any, F],
    key: Tensor[tuple[*Ds, N, K], OwnedTape, F],
    value: Tensor[tuple[*Ds, N, P], Any, F],
    *,
    mask: Tensor[Any, NoneTape, np.bool_] | None = None,
    bias: Tensor[Any, Any, F] | None = None,
    causal: bool = False,
    scale: float | None = None,
) -> Tensor[tuple[*Ds, M, P], OwnedTape, F]: ...
@overload
def scaled_dot_product_attention(
    query: Tensor[tuple[*Ds, M, K], Any, F],
    key: Tensor[tuple[*Ds, N, K], Any, F],
    value: Tensor[tuple[*Ds, N, P], OwnedTape, F],
    *,
    mask: Tensor[Any, NoneTape, np.bool_] | None = None,
    bias: Tensor[Any, Any, F] | None = None,
    causal: bool = False,
    scale: float | None = None,
) -> Tensor[tuple[*Ds, M, P], OwnedTape, F]: ...
@overload
def scaled_dot_product_attention(
    query: Tensor[tuple[*Ds, M, K], Any, F],
    key: Tensor[tuple[*Ds, N, K], Any, F],
    value: Tensor[tuple[*Ds, N, P], Any, F],
    *,
    mask: Tensor[Any, NoneTape, np.bool_] | None = None,
    bias: Tensor[Any, OwnedTape, F],
    causal: bool = False,
    scale: float | None = None,
) -> Tensor[tuple[*Ds, M, P], OwnedTape, F]: ...
def scaled_dot_product_attention(
    query: Tensor[Any, Any, Any],
    key: Tensor[Any, Any, Any],
    value: Tensor[Any, Any, Any],
    *,
    mask: Tensor[Any, NoneTape, np.bool_] | None = None,
    bias: Tensor[Any, Any, Any] | None = None,
    causal: bool = False,
    scale: float | None = None,
) -> Tensor[Any, Any, Any]:
    """Return the values averaged with weights that say how well their keys go with each query.

        softmax(query @ key.T * scale + bias) @ value

    A query that may see no key at all gives zeros.

    Shape: ``(*Ds, M, K), (*Ds, N, K), (*Ds, N, P) -> (*Ds, M, P)``: ``M`` queries, ``N`` keys with
        a value each; the leading axes (batch, heads) are equal, and may be none.
    Derivative: with the weights ``p`` and the cotangent ``g``: ``p.T @ g`` for the values,
        ``scale * s @ key`` for the queries and ``scale * s.T @ query`` for the keys, where
        ``s = p * (g @ value.T - sum(g * output))``, which is that of the bias.

    Args:
        query: the queries.
        key: the keys, with which queries are compared.
        value: the values, whose mean is returned.
        mask: bool, broadcasting to the scores ``(*Ds, M, N)``: True where a query sees a key; of
            queries and keys alone, or with all axes of the scores.
        bias: a term of the scores, to which it broadcasts, as for relative positions. PyTorch
            calls it a mask of floats.
        causal: whether query ``i`` sees no key after the ``i``-th.
        scale: the factor of the scores; ``1 / sqrt(K)`` unless given.

    Raises:
        ShapeError: if the shapes do not fit.
        DTypeError: if the dtypes differ or are not floating, or the mask is not bool.

    Source: Vaswani et al. (2017), "Attention is all you need", section 3.2.1.

    >>> import tapetensor as tt
    >>> x = tt.from_numpy([[0.0, 1.0], [2.0, 3.0]], shape=(2, 2))
    >>> tt.scaled_dot_product_attention(tt.zeros((2, 2)), x, x, causal=True)
    Tensor([[0., 1.],
            [1., 2.]], shape=(2, 2), dtype=float32, NoneTape)
    """
    for name, operand in (("the query", query), ("the key", key), ("the value", value)):
        check_tensor(_OP, name, operand)
    check_floating(_OP, query)
    check_same_dtype(_OP, (query, key, value))
    scores = scores_shape(_OP, query._array.shape, key._array.shape, value._array.shape)
    seen = mask_array(_OP, mask, causal, scores)
    operands: tuple[Any, ...] = (query, key, value)
    if bias is not None:
        check_bias(_OP, bias, query, scores)
        operands = (*operands, bias)
    factor = (
        1.0 / math.sqrt(query._array.shape[-1] or 1)
        if scale is None
        else as_number(_OP, "scale", scale)
    )
    options: tuple[Any, ...] = (seen, causal, factor)
    return apply(kernels.scaled_dot_product_attention, operands, options)


_OP = "scaled_dot_product_attention"


def scores_shape(
    op: str, query: tuple[int, ...], key: tuple[int, ...], value: tuple[int, ...]
) -> tuple[int, ...]:
    """Return the shape of the scores of queries, keys and values that fit."""
    fit = (
        min(len(query), len(key), len(value)) >= 2
        and query[:-2] == key[:-2] == value[:-2]
        and query[-1] == key[-1]
        and key[-2] == value[-2]
    )
    if not fit:
        shapes = [sized(one) for one in (query, key, value)]
        raise refusal(lambda: rules.scores(op, *shapes))
    return (*query[:-1], key[-2])


def mask_array(
    op: str,
    mask: TensorBase[Any, Any, Any] | None,
    causal: object,
    scores: tuple[int, ...],
    cure: str = "",
) -> Array | None:
    """Return the elements of the mask, having checked all that says which query sees which key.

    A mask may have the axes of queries and keys alone, or all: it would meet others by chance.
    """
    as_flag(op, "causal", causal)
    if mask is None:
        return None
    array = truths(op, "mask", "where a query sees a key", mask)
    shape = array.shape
    if 2 < len(shape) < len(scores) or not broadcasts_to(shape, scores):
        raise refusal(lambda: rules.check_mask(op, sized(shape), sized(scores), cure))
    return array


def truths(op: str, name: str, what: str, mask: TensorBase[Any, Any, Any]) -> Array:
    """Return the elements of a mask."""
    check_tensor(op, f"the {name}", mask)
    array = mask._array
    if array.dtype != np.bool_:
        raise DTypeError(f"{op}: the {name} must be bool, True {what}, got {array.dtype}")
    return array


def check_bias(
    op: str,
    bias: Tensor[Any, Any, Any] | None,
    query: Tensor[Any, Any, Any],
    scores: tuple[int, ...],
) -> None:
    """Refuse a bias that cannot be added to the scores; None can."""
    if bias is not None:
        check_tensor(op, "the bias", bias)
        check_same_dtype(op, (query, bias))
        check_broadcasts(op, "bias", bias._array.shape, scores)


def check_broadcasts(op: str, name: str, shape: tuple[int, ...], scores: tuple[int, ...]) -> None:
    """Refuse what does not broadcast to the scores."""
    if not broadcasts_to(shape, scores):
        raise refusal(lambda: rules.check_broadcasts(op, name, sized(shape), sized(scores)))
