"""Rows and channels without their mean and divided by their deviation, some of them at a time.

A row is read and written several times over. Of a large array every time would be a trip to memory;
of a block of rows it is one to the cache. What a block was normalized to is not kept, but computed
again on the way back, from the rows themselves and two numbers for each. The elements of a channel,
which stand on axis 1 and lie anywhere in memory, become such a row.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapetensor.arrays.array import Array
from tapetensor.kernels.numerics import threads
from tapetensor.kernels.numerics.along_axes import (
    PRODUCT_DTYPES,
    is_in_order,
    row_products,
    row_sums,
    sum_of_rows,
)

# So many elements, and three arrays of that size beside them, stay in a second-level cache.
_BLOCK_OF_ROWS = 1 << 15
# Of channels there are two arrays beside them.
_BLOCK_OF_CHANNELS = 1 << 16
# Smaller arrays stay in the third-level cache, where the Python between the blocks costs more.
_LARGE = 1 << 20


def are_many_rows(x: Array, weight: Array, bias: Array) -> bool:
    """Tell whether rows are worth blocks, on arrays that the functions here can take."""
    return (
        x.size >= _LARGE
        and are_many_channels(x, weight, bias)
        and weight.shape == bias.shape == x.shape[-1:]
        and is_in_order(x)
    )


def are_many_channels(x: Array, weight: Array, bias: Array) -> bool:
    """Tell whether channels are worth blocks, on arrays that the functions here can take."""
    return (
        x.size >= _LARGE
        and all(type(one) is np.ndarray for one in (x, weight, bias))
        and x.dtype in PRODUCT_DTYPES
        and x.dtype == weight.dtype == bias.dtype
    )


def normalized_rows(x: Array, weight: Array, bias: Array, eps: float) -> tuple[Array, Array, Array]:
    """Return ``(x - mean) / sqrt(var + eps) * weight + bias`` by rows.

    And, with one element for each row, what `cotangents_of_rows` needs: means, and one over roots.
    """
    rows = x.reshape(-1, x.shape[-1])
    width = rows.shape[1]
    y = np.empty_like(rows)
    means, inverses = np.empty((len(rows), 1), x.dtype), np.empty((len(rows), 1), x.dtype)
    # numpy multiplies arrays of one shape in half of the time.
    factors, terms = _repeated(weight, rows), _repeated(bias, rows)

    def work(block: slice, _: int) -> None:
        part, out = rows[block], y[block]
        mean = row_sums(part)
        mean /= width
        np.subtract(part, mean, out=out)
        inverse = row_products(out, out) / width
        inverse += eps
        np.sqrt(inverse, out=inverse)
        np.divide(1, inverse, out=inverse)
        out *= inverse
        out *= factors[: len(out)]
        out += terms[: len(out)]
        means[block], inverses[block] = mean, inverse

    _for_each_block_of_rows(work, rows)
    return y.reshape(x.shape), means, inverses


def cotangents_of_rows(
    g: Array, x: Array, weight: Array, numbers: tuple[Array, Array], needed: tuple[bool, ...]
) -> list[Array | None]:
    """Return the cotangents of those of the rows, the weight and the bias that are needed."""
    width = x.shape[-1]
    rows, flow = x.reshape(-1, width), np.ascontiguousarray(g).reshape(-1, width)
    means, inverses = numbers
    of_rows = np.empty_like(rows) if needed[0] else None
    factors = _repeated(weight, rows)
    # The sums of blocks are added up in the end, in an order that no number of threads changes.
    blocks = len(range(0, len(rows), _rows_of_block(rows)))
    of_weight, of_bias = [
        np.empty((blocks, width), x.dtype) if is_needed else None for is_needed in needed[1:]
    ]

    def work(block: slice, number: int) -> None:
        part = flow[block]
        if of_bias is not None:
            of_bias[number] = sum_of_rows(part)
        if of_weight is None and of_rows is None:
            return
        normal = rows[block] - means[block]
        normal *= inverses[block]
        if of_weight is not None:
            of_weight[number] = sum_of_rows(part * normal)
        if of_rows is None:
            return
        scaled = np.multiply(part, factors[: len(part)], out=of_rows[block])
        projection = row_products(scaled, normal)
        projection /= width
        mean = row_sums(scaled)
        mean /= width
        scaled -= mean
        normal *= projection
        scaled -= normal
        scaled *= inverses[block]

    _for_each_block_of_rows(work, rows)
    return [
        None if of_rows is None else of_rows.reshape(x.shape),
        None if of_weight is None else np.add.reduce(of_weight, axis=0),
        None if of_bias is None else np.add.reduce(of_bias, axis=0),
    ]


def _repeated(x: Array, rows: Array) -> Array:
    """Return as many equal rows as a block has."""
    return np.tile(x, (min(len(rows), _rows_of_block(rows)), 1))


def _rows_of_block(rows: Array) -> int:
    width: int = rows.shape[1]
    return max(1, _BLOCK_OF_ROWS // width)


def _for_each_block_of_rows(work: Callable[[slice, int], None], rows: Array) -> None:
    """Work on all blocks of rows, which are numbered, on several threads at once."""
    step = _rows_of_block(rows)

    def work_on(first: int, last: int) -> None:
        for number in range(first, last):
            work(slice(number * step, (number + 1) * step), number)

    threads.multiply_apart(work_on, -(-len(rows) // step))


def normalized_channels(x: Array, weight: Array, bias: Array, eps: float) -> tuple[Array, ...]:
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

    _for_each_block_of_channels(work, x)
    return y, means, variances, inverses


def cotangents_of_channels(
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

    _for_each_block_of_channels(work, x)
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


def _for_each_block_of_channels(work: Callable[[slice], None], x: Array) -> None:
    """Work on all blocks of channels, on several threads at once."""
    channels = x.shape[1]
    step = max(1, _BLOCK_OF_CHANNELS * channels // x.size)

    def work_on(first: int, last: int) -> None:
        for start in range(first, last, step):
            work(slice(start, min(start + step, last)))

    threads.multiply_apart(work_on, channels)
