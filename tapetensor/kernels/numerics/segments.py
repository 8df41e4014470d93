"""Sums of rows that have one target, as where rows of a table were read several times."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapetensor.arrays.array import Array
from tapetensor.arrays.libraries import like
from tapetensor.kernels.numerics.along_axes import SHORT, sum_of_rows
from tapetensor.kernels.numerics.decorators import MANY_STEPS, native_from, single_step

# Narrower rows, and fewer elements, are added one by one.
_WIDE = 64
_LARGE = 1 << 15
# The places of so many elements stay in the cache.
_BLOCK = 1 << 15
# A longer run of rows with one target is summed on its own.
_LONG = 32
# Two floats side by side are added as one of these.
_PAIRS: dict[Any, Any] = {
    np.dtype(np.float32): np.dtype(np.complex64),
    np.dtype(np.float64): np.dtype(np.complex128),
}


@single_step
@native_from(MANY_STEPS)
def segment_sum(rows: Array, targets: Array, count: int) -> Array:
    """Return `count` rows, each the sum of those `rows` whose target, >= 0, it is."""
    if type(rows) is not np.ndarray:
        return _of_any_library(rows, targets, count)
    if rows.shape[1] < _WIDE or rows.size < _LARGE:
        return one_by_one(_add_elements, rows, targets, count)
    sums = np.zeros((count, rows.shape[1]), rows.dtype)
    _add_runs(sums, np.ascontiguousarray(rows), targets)
    return sums


def one_by_one(
    add: Callable[[Array, Array, Array], None], rows: Array, targets: Array, count: int
) -> Array:
    """Return the sums that ``add(sums, rows, targets)`` makes by adding row after row.

    Many singles that have one target lose digits, a million of them 1%: they are added up in
    doubles.
    """
    sums = np.zeros((count, rows.shape[1]), rows.dtype)
    is_narrow = rows.dtype.kind == "f" and rows.dtype.itemsize < 8
    if is_narrow and len(rows) > SHORT:
        if count > len(rows):
            # Of a large table few rows are wanted in doubles.
            found, places = np.unique(targets, return_inverse=True)
            sums[found] = one_by_one(add, rows, places, found.size)
            return sums
        if np.bincount(targets).max() > SHORT:
            wide = sums.astype(np.float64)
            add(wide, rows, targets)
            return wide.astype(rows.dtype)
    if rows.size:
        add(sums, rows, targets)
    return sums


def _add_elements(sums: Array, rows: Array, targets: Array) -> None:
    """Add rows that are narrow, or have few elements, to their places.

    numpy has a fast loop for sums at positions, but for flat arrays of one dtype alone. Finding a
    place takes as long as adding there, so where it can be two columns share one.
    """
    width, dtype = rows.shape[1], sums.dtype
    kind = dtype if width % 2 else _PAIRS.get(dtype, dtype)
    width = width * dtype.itemsize // kind.itemsize
    flat = sums.view(kind).reshape(-1)
    columns, many = np.arange(width), _BLOCK // width
    for start in range(0, len(rows), many):
        block = slice(start, start + many)
        places = targets[block] if width == 1 else np.add.outer(targets[block] * width, columns)
        added = np.asarray(rows[block], dtype, order="C").view(kind)
        np.add.at(flat, places.reshape(-1), added.reshape(-1))


def _add_runs(sums: Array, rows: Array, targets: Array) -> None:
    """Write the sums of rows with one target into `sums`, which is 0; all are in C order.

    Sorted by target such rows are a run. np.add.reduceat goes through its elements one by one,
    which takes up to ten times as long.
    """
    order = targets.argsort(kind="stable")
    in_order = targets[order]
    starts = np.flatnonzero(np.diff(in_order, prepend=-1))
    lengths = np.diff(starts, append=targets.size)
    # The longest runs come first: then those with an n-th row are the first ones, for every n.
    by_length = (-lengths).argsort(kind="stable")
    starts, lengths = starts[by_length], lengths[by_length]
    found = in_order[starts]
    long = int(np.count_nonzero(lengths > _LONG))
    for target, start, length in zip(
        found[:long].tolist(), starts[:long].tolist(), lengths[:long].tolist(), strict=True
    ):
        sums[target] = sum_of_rows(rows.take(order[start : start + length], 0))
    starts, lengths = starts[long:], lengths[long:]
    total = rows.take(order[starts], 0)
    for place in range(1, _LONG):
        reaching = int(np.count_nonzero(lengths > place))
        total[:reaching] += rows.take(order[starts[:reaching] + place], 0)
    sums[found[long:]] = total


def _of_any_library(rows: Array, targets: Array, count: int) -> Array:
    sums = np.zeros_like(rows, shape=(count, rows.shape[1]))
    if targets.size == 0:
        return sums
    # Sorted by target, equal targets are neighbours and reduceat sums each run in one pass, many
    # times faster than np.add.at.
    order = np.argsort(targets, kind="stable")
    in_order = targets[order]
    starts = np.flatnonzero(np.diff(in_order, prepend=-1))
    sums[in_order[starts]] = np.add.reduceat(rows[order], like(starts, rows), axis=0)
    return sums
