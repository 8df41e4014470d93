"""Channels without their mean and divided by their deviation, some channels at a time.

What `normalized_rows` is for rows this is for channels, which stand on axis 1 and lie anywhere in
memory. The elements of a channel become a row, which is read again while it is in the cache.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapetensor.arrays.array import Array
from tapetensor.kernels.numerics import threads
from tapetensor.kernels.numerics.along_axes import PRODUCT_DTYPES, row_products, row_sums

# So many elements, and two arrays of that size beside them, stay in a second-level cache.
_BLOCK = 1 << 16
# Smaller arrays stay in the third-level cache, where the Python between the blocks costs more.
_LARGE = 1 << 20


def are_many(x: Array, weight: Array, bias: Array) -> bool:
    """Tell whether channels are worth blocks, on arrays that the functions here can take."""
    return (
        all(type(one) is np.ndarray for one in (x, weight, bias))
        and x.size >= _LARGE
        and x.dtype in PRODUCT_DTYPES
        and x.dtype == weight.dtype == bias.dtype
    )


def normalized(x: Array, weight: Array, bias: Array, eps: float) -> tuple[Array, ...]:
    """Return ``(x - mean) / sqrt(var + eps) * weight + bias`` by channels.

    And, with one element for each channel, means, variances and one over the roots.
    """
    y, order = np.empty_like(x), _order(x)
    means, variances, inverses = [np.empty((x.shape[1], 1), x.dtype) for _ in range(3)]
    source, target = x.transpose(order), y.transpose(order)

    def work(block: slice) -> None:
        rows = _as_rows(source[block])
        mean = row_sums(rows) / rows.shape[1]
        out, put = _rows_into(target[block])
        np.subtract(rows, mean, out=out)
        variance = row_products(out, out) / rows.shape[1]
        inverse = 1 / np.sqrt(variance + eps)
        out *= inverse * weight[block, None]
        out += bias[block, None]
        put()
        means[block], variances[block], inverses[block] = mean, variance, inverse

    _for_each_block(work, x)
    return y, means, variances, inverses


def cotangents(
    g: Array, x: Array, weight: Array, means: Array, inverses: Array, needs_x: bool
) -> list[Any]:
    """Return the cotangents of `x`, if that is needed, and of weight and bias."""
    order = _order(x)
    of_x = np.empty_like(x) if needs_x else None
    target = None if of_x is None else of_x.transpose(order)
    source, flows = x.transpose(order), g.transpose(order)
    projections, totals = [np.empty((x.shape[1], 1), x.dtype) for _ in range(2)]

    def work(block: slice) -> None:
        flow, inverse = _as_rows(flows[block]), inverses[block]
        rows = _as_rows(source[block])
        out, put = (np.empty_like(rows), None) if target is None else _rows_into(target[block])
        np.subtract(rows, means[block], out=out)
        total, projection = row_sums(flow), row_products(out, flow) * inverse
        totals[block], projections[block] = total, projection
        if put is None:
            return
        out *= projection * inverse / -rows.shape[1]
        out += flow
        out -= total / rows.shape[1]
        out *= inverse * weight[block, None]
        put()

    _for_each_block(work, x)
    return [of_x, projections.reshape(weight.shape), totals.reshape(weight.shape)]


def _order(x: Array) -> tuple[int, ...]:
    """Return the axes, the channels first and then the others as they lie, outermost first."""
    others = sorted([0, *range(2, x.ndim)], key=lambda one: -x.strides[one])
    return (1, *others)


def _as_rows(part: Array) -> Array:
    """Return channels as rows, a copy where they do not lie so."""
    return np.ascontiguousarray(part).reshape(len(part), -1)


def _rows_into(part: Array) -> tuple[Array, Callable[[], None]]:
    """Return rows to fill, and what writes them into channels once they are filled."""
    if part.flags.c_contiguous:
        return part.reshape(len(part), -1), lambda: None
    rows = np.empty(part.shape, part.dtype)
    return rows.reshape(len(part), -1), lambda: np.copyto(part, rows)


def _for_each_block(work: Callable[[slice], None], x: Array) -> None:
    """Work on all blocks of channels, on several threads at once."""
    channels = x.shape[1]
    step = max(1, _BLOCK * channels // x.size)

    def work_on(first: int, last: int) -> None:
        for start in range(first, last, step):
            work(slice(start, min(start + step, last)))

    threads.multiply_apart(work_on, channels)
