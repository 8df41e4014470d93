"""Attention by tiles: some queries of some heads, and the keys that they may see, at a time.

No array of all queries times all keys is made. A tile stays in the cache, keys that no query of it
sees are left out, and the backward pass computes the weights of a tile again, from the queries and
keys and two numbers for each query. Dao et al. (2022), "FlashAttention: fast and memory-efficient
exact attention with IO-awareness"; a tile has whole rows here, so that nothing has to be rescaled.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from tapetensor.arrays.array import Array
from tapetensor.kernels.numerics import threads
from tapetensor.kernels.numerics.along_axes import (
    PRODUCT_DTYPES,
    largest,
    row_products,
    row_sums,
    sum_to,
)
from tapetensor.kernels.numerics.choice import choose
from tapetensor.kernels.numerics.decorators import may_hide_parts, single_step

# The queries of a tile. With more of them more of what is computed lies above the diagonal, where
# nobody looks, and with fewer the products are slower.
_ROWS = 128
# Of so many elements a tile, what is computed from it and the keys fit in a second-level cache.
_ELEMENTS = 1 << 17
# With fewer queries or keys than these all scores fit in the cache, and are not computed twice.
_FEWEST = 256

# The slices of the leading axes, the queries and the keys of a tile.
Tile = tuple[slice, ...]


class Seen(NamedTuple):
    """The settings that decide how much a query sees of a key, apart from the two.

    Attributes:
        bias: what is added to the scores, or None.
        mask: True where a query sees a key, or None.
        causal: whether query ``i`` sees no key after the ``i``-th.
        scale: the factor of the products.
    """

    bias: Array | None
    mask: Array | None
    causal: bool
    scale: float


def are_many(query: Any, key: Any, *others: Any) -> bool:
    """Tell whether scores are worth tiles, on arrays that `attend` can take."""
    if min(query.shape[-2], key.shape[-2]) < _FEWEST or query.dtype not in PRODUCT_DTYPES:
        return False
    return may_hide_parts(query, key, *[one for one in others if one is not None])


@single_step
def attend(
    query: Array, key: Array, value: Array, bias: Any, mask: Any, causal: bool, scale: float
) -> list[Array]:
    """Return ``softmax(scale * query @ key.T + bias) @ value``, and two numbers for each query.

    They are its largest score and the sum of the exponentials of what its scores are less than
    that, for `cotangents`.
    """
    output = np.empty((*query.shape[:-1], value.shape[-1]), query.dtype)
    peaks, totals = [np.empty((*query.shape[:-1], 1), query.dtype) for _ in range(2)]
    key, value, seen = _by_rows(key), _by_rows(value), Seen(bias, mask, causal, scale)

    def work(tile: Tile) -> None:
        of_query, of_key = tile[:-1], (*tile[:-2], tile[-1])
        scores = _scores(query[of_query] * scale, key[of_key], tile, seen)
        # With a finite largest score a row that sees no key becomes zeros instead of NaN.
        peak = np.maximum(largest(scores, -1), np.finfo(query.dtype).min)
        scores -= peak
        weights = np.exp(scores, out=scores)
        total = row_sums(weights)
        total[total == 0] = 1
        np.divide(np.matmul(weights, value[of_key]), total, out=output[of_query])
        peaks[of_query], totals[of_query] = peak, total

    _for_each_tile(work, query, key, causal)
    return [output, peaks, totals]


@single_step
def cotangents(
    g: Array,
    operands: tuple[Array, ...],
    numbers: tuple[Array, Array],
    others: tuple[Any, ...],
    needed: tuple[bool, ...],
) -> list[Array]:
    """Return the cotangents of those of query, key, value and bias that are needed.

    `numbers` are what `attend` gave beside the output, and `others` its further arguments.
    """
    seen = Seen(*others)
    query, key, value = operands[0], _by_rows(operands[1]), _by_rows(operands[2])
    peaks, totals = numbers
    made: list[Any] = [np.zeros(one.shape, one.dtype) for one in operands]
    made += [None] if seen.bias is None else [np.zeros(seen.bias.shape, query.dtype)]
    of_queries, of_keys, of_values, of_bias = made
    of_query_needed, of_key_needed, of_value_needed, of_bias_needed = (*needed, False)[:4]

    def work(tile: Tile) -> None:
        of_query, of_key = tile[:-1], (*tile[:-2], tile[-1])
        scaled_query, total = query[of_query] * seen.scale, totals[of_query]
        weights = _scores(scaled_query, key[of_key], tile, seen)
        weights -= peaks[of_query]
        np.exp(weights, out=weights)
        scaled = g[of_query] / total
        if of_value_needed:
            of_values[of_key] += np.matmul(np.swapaxes(weights, -1, -2), scaled)
        if not (of_query_needed or of_key_needed or of_bias_needed):
            return
        slope = np.matmul(scaled, np.swapaxes(value[of_key], -1, -2))
        # Of the same numbers that it is taken from: a query that sees one key alone has slope 0.
        slope -= row_products(weights, slope) / total
        slope *= weights
        if of_query_needed:
            np.multiply(np.matmul(slope, key[of_key]), seen.scale, out=of_queries[of_query])
        if of_key_needed:
            of_keys[of_key] += np.matmul(np.swapaxes(slope, -1, -2), scaled_query)
        if of_bias_needed:
            part = _part(of_bias, tile)
            part += sum_to(slope, part.shape)

    # Heads may have a bias in common, to which each thread would add.
    _for_each_tile(work, query, key, seen.causal, one_by_one=of_bias_needed)
    return [one for one, is_needed in zip(made, needed, strict=False) if is_needed]


def _scores(scaled_query: Array, key: Array, tile: Tile, seen: Seen) -> Array:
    """Return the scores of a tile: minus infinity where a query does not see a key."""
    scores: Array = np.matmul(scaled_query, np.swapaxes(key, -1, -2))
    if seen.bias is not None:
        scores += _part(seen.bias, tile)
    if seen.mask is not None:
        scores += _hidden(_part(seen.mask, tile), scores.dtype)
    first, keys = tile[-2].start, scores.shape[-1]
    if seen.causal and first < keys:
        scores[..., first:] += _later(scores.shape[-2], keys - first, scores.dtype)
    return scores


def _for_each_tile(
    work: Callable[[Tile], None], query: Array, key: Array, causal: bool, one_by_one: bool = False
) -> None:
    """Work on all tiles; those of one head in order and in one thread."""
    *leading, queries, _ = query.shape
    keys = key.shape[-2]
    rows = min(queries, _ROWS)
    heads = max(1, _ELEMENTS // (rows * keys))
    steps = [*[1] * (len(leading) - 1), heads][: len(leading)]
    starts = [range(0, size, step) for size, step in zip(leading, steps, strict=True)]
    parts = list(product(*starts))

    def work_on(first: int, last: int) -> None:
        for part in parts[first:last]:
            of_heads = [slice(at, at + step) for at, step in zip(part, steps, strict=True)]
            for start in range(0, queries, rows):
                stop = min(start + rows, queries)
                seen = slice(0, min(stop, keys) if causal else keys)
                work((*of_heads, slice(start, stop), seen))

    if one_by_one:
        work_on(0, len(parts))
    else:
        threads.multiply_apart(work_on, len(parts))


def _part(x: Array, tile: Tile) -> Array:
    """Return what a tile sees of an array that broadcasts to the scores."""
    of_axes = zip(x.shape, tile[len(tile) - x.ndim :], strict=True)
    return x[tuple([slice(None) if size == 1 else part for size, part in of_axes])]


def _hidden(mask: Array, dtype: np.dtype[Any]) -> Array:
    """Return 0 where the mask holds and minus infinity elsewhere, to add to scores."""
    zero, infinity = np.zeros((), dtype), np.array(-np.inf, dtype)
    return choose(np.ascontiguousarray(mask), zero, infinity)


@lru_cache(maxsize=8)
def _later(queries: int, keys: int, dtype: np.dtype[Any]) -> Array:
    """Return what hides from each query the keys after its own; nobody may write to it."""
    return _hidden(np.tri(queries, keys, dtype=np.bool_), dtype)


def _by_rows(x: Array) -> Array:
    """Return matrices that the BLAS multiplies as they lie, a copy where they do not lie so."""
    row, unit = x.strides[-2:]
    is_in_rows = unit == x.itemsize and row % unit == 0 and row >= x.shape[-1] * unit
    return x if is_in_rows else np.ascontiguousarray(x)
