"""Rows without their mean and divided by their deviation, some rows at a time.

A row is read and written several times over. Of a large array every time would be a trip to memory;
of a block of rows it is one to the cache. What a block was normalized to is not kept, but computed
again on the way back, from the rows themselves and two numbers for each.
"""

from __future__ import annotations

from collections.abc import Callable

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
_BLOCK = 1 << 15
# Smaller arrays stay in the third-level cache, where the Python between the blocks costs more.
_LARGE = 1 << 20


def are_many(x: Array, weight: Array, bias: Array) -> bool:
    """Tell whether rows are worth blocks, on arrays that the functions here can take."""
    return (
        type(x) is np.ndarray
        and type(weight) is np.ndarray
        and type(bias) is np.ndarray
        and x.size >= _LARGE
        and x.dtype in PRODUCT_DTYPES
        and x.dtype == weight.dtype == bias.dtype
        and weight.shape == bias.shape == x.shape[-1:]
        and is_in_order(x)
    )


def normalized(x: Array, weight: Array, bias: Array, eps: float) -> tuple[Array, Array, Array]:
    """Return ``(x - mean) / sqrt(var + eps) * weight + bias`` by rows, and what `cotangents` needs.

    These are, with one element for each row, the means and one over the roots.
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

    _for_each_block(work, rows)
    return y.reshape(x.shape), means, inverses


def cotangents(
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

    _for_each_block(work, rows)
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
    return max(1, _BLOCK // width)


def _for_each_block(work: Callable[[slice, int], None], rows: Array) -> None:
    """Work on all blocks of rows, which are numbered, on several threads at once."""
    step = _rows_of_block(rows)

    def work_on(first: int, last: int) -> None:
        for number in range(first, last):
            work(slice(number * step, (number + 1) * step), number)

    threads.multiply_apart(work_on, -(-len(rows) // step))
