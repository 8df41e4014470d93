"""Attention, fused: the composite would keep and walk through six arrays of queries times keys."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from tapetensor.arrays.array import Array
from tapetensor.arrays.libraries import beside_captured, like
from tapetensor.kernels.numerics import attention_tiles
from tapetensor.kernels.numerics.along_axes import (
    largest_or_minus_infinity,
    row_products,
    row_sums,
    sum_to,
)
from tapetensor.kernels.numerics.decorators import whole_kernel
from tapetensor.tape import Pullbacks
from tapetensor.tape.pullbacks import JointPullbacks, Needed, computed_once


def _shape_of_attended(query: Array, key: Array, value: Array, *_: Any) -> tuple[int, ...]:
    leading = np.broadcast_shapes(query.shape[:-2], key.shape[:-2])
    return *leading, query.shape[-2], value.shape[-1]


@whole_kernel(_shape_of_attended, for_models=True)
def scaled_dot_product_attention(
    query: Array, key: Array, value: Array, *others: Any
) -> tuple[Array, Pullbacks]:
    """``softmax(scale * query @ key.T + bias) @ value``, with weight 0 where the mask is False.

    The others are a bias, which is an operand, too, or none, and the mask, `causal` and the scale.
    """
    *biases, mask, causal, scale = others
    if attention_tiles.are_many(query, key, value, mask, *biases):
        return _by_tiles((query, key, value, *biases), mask, causal, scale)
    return _whole(query, key, value, biases, mask, causal, scale)


def _by_tiles(
    operands: tuple[Array, ...], mask: Array | None, causal: bool, scale: float
) -> tuple[Array, Pullbacks]:
    """Keep the operands and two numbers for each query."""
    query, key, value, *biases = operands
    others = (biases[0] if biases else None, mask, causal, scale)
    output, peaks, totals = attention_tiles.attend(query, key, value, *others)

    def compute(needed: Needed, g: Array) -> list[Array | None]:
        made = attention_tiles.cotangents(g, (query, key, value), (peaks, totals), others, needed)
        found = iter(made)
        return [next(found) if is_needed else None for is_needed in needed]

    return output, JointPullbacks((True,) * len(operands), compute)


def _whole(
    query: Array,
    key: Array,
    value: Array,
    biases: list[Array],
    mask: Array | None,
    causal: bool,
    scale: float,
) -> tuple[Array, Pullbacks]:
    """Keep one array of queries times keys: the exponentials before they are divided by their sums.

    The division is left to the smaller arrays on both sides of it.
    """
    scaled_query = beside_captured(query, (mask,)) * scale
    weights = np.matmul(scaled_query, np.swapaxes(key, -1, -2))
    for bias in biases:
        weights += bias
    if mask is not None:
        weights += _hidden(like(mask, query), query)
    if causal:
        earlier = np.arange(key.shape[-2]) <= np.arange(query.shape[-2])[:, None]
        weights += _hidden(like(earlier, query), query)
    # With a finite largest score a row that sees no key becomes zeros instead of NaN.
    largest = largest_or_minus_infinity(weights, -1)
    weights -= np.maximum(largest, np.finfo(query.dtype).min)
    weights = np.exp(weights, out=weights)
    total = row_sums(weights)
    total = np.where(total == 0, np.ones_like(total), total)
    output = np.matmul(weights, value)
    output /= total

    def slope(g: Array) -> Array:
        """Return the cotangent of the scores."""
        scaled = g / total
        cotangent: Array = np.matmul(scaled, np.swapaxes(value, -1, -2))
        # Of the same numbers that it is taken from: a query that sees one key alone has slope 0.
        cotangent -= row_products(weights, cotangent) / total
        cotangent *= weights
        return cotangent

    slope_once = computed_once(slope)

    def pullback_query(g: Array) -> Array:
        cotangent: Array = np.matmul(slope_once(g), key)
        cotangent *= scale
        return cotangent

    def pullback_bias(shape: tuple[int, ...], g: Array) -> Array:
        return sum_to(slope_once(g), shape)

    return output, (
        pullback_query,
        lambda g: np.matmul(np.swapaxes(slope_once(g), -1, -2), scaled_query),
        lambda g: np.matmul(np.swapaxes(weights, -1, -2), g / total),
        *[partial(pullback_bias, bias.shape) for bias in biases],
    )


def _hidden(mask: Array, like: Array) -> Array:
    """Return 0 where the mask holds and minus infinity elsewhere, to add to scores."""
    return np.where(mask, 0.0, -np.inf).astype(like.dtype)
