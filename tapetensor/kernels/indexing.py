"""Reading elements by position or by mask, and writing cotangents back to where they were read."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapetensor.arrays import like
from tapetensor.gradients import Array
from tapetensor.kernels.broadcasting import sum_to
from tapetensor.kernels.choice import choose
from tapetensor.kernels.steps import single_step
from tapetensor.tape import Pullbacks


def getitem(x: Array, index: Any) -> tuple[Array, Pullbacks]:
    """``x[index]`` for basic slices, integer arrays and boolean masks."""
    repeats = any(
        hasattr(one, "shape") and one.dtype.kind != "b"
        for one in (index if isinstance(index, tuple) else (index,))
    )

    def pullback(g: Array) -> Array:
        result = np.zeros_like(x)
        if repeats:
            # An element that was read several times receives every cotangent, summed.
            np.add.at(result, index, g)
        else:
            result[index] = g
        return result

    return x[index], (pullback,)


def take(x: Array, indices: Array, axis: int) -> tuple[Array, Pullbacks]:
    """The slices of `x` along `axis` at integer `indices`."""
    # numpy takes no uint64 for a position, and the number of rows may not fit a small dtype.
    positions = indices.astype(np.intp, copy=False)

    def pullback(g: Array) -> Array:
        rows = x.shape[axis]
        # Move the indexed axis to the front and flatten, so that equal rows can be summed.
        moved = np.moveaxis(
            np.reshape(g, (*x.shape[:axis], positions.size, *x.shape[axis + 1 :])),
            axis,
            0,
        )
        flat = np.reshape(moved, (positions.size, x.size // rows if rows else 0))
        summed = _sum_rows(flat, np.reshape(positions, (-1,)) % rows, rows)
        leading = (rows, *x.shape[:axis], *x.shape[axis + 1 :])
        return np.moveaxis(np.reshape(summed, leading), 0, axis)

    return np.take(x, positions, axis=axis), (pullback, None)


def take_along_axis(x: Array, indices: Array, axis: int) -> tuple[Array, Pullbacks]:
    """The elements of `x` along `axis` at indices of their own for each of the other places."""
    positions = indices.astype(np.intp, copy=False)
    y = np.take_along_axis(x, positions, axis)
    shape = x.shape

    def pullback(g: Array) -> Array:
        # The axes of `x` and of `indices` broadcast against each other, all but `axis`.
        grid = np.ogrid[tuple([slice(size) for size in g.shape])]
        places = [
            positions if one == axis else np.where(size == 1, 0, grid[one])
            for one, size in enumerate(shape)
        ]
        result = np.zeros_like(x)
        # An element that was read several times receives every cotangent, summed.
        np.add.at(result, tuple(places), g)
        return result

    return y, (pullback, None)


def where(lhs: Array, rhs: Array, mask: Array) -> tuple[Array, Pullbacks]:
    """`lhs` where `mask` holds, `rhs` elsewhere."""
    return choose(mask, lhs, rhs), (
        lambda g: sum_to(choose(mask, g, 0), lhs.shape),
        lambda g: sum_to(choose(~mask, g, 0), rhs.shape),
        None,
    )


def where_number(x: Array, mask: Array, number: float) -> tuple[Array, Pullbacks]:
    """`x` where `mask` holds, a number elsewhere."""
    return choose(mask, x, number), (
        lambda g: sum_to(choose(mask, g, 0), x.shape),
        None,
    )


def astype(x: Array, dtype: np.dtype[Any]) -> tuple[Array, Pullbacks]:
    """The elements converted; differentiable between floating dtypes only."""
    original = x.dtype
    if dtype.kind != "f" or original.kind != "f":
        return x.astype(dtype), (None,)
    return x.astype(dtype), (lambda g: g.astype(original),)


@single_step
def _sum_rows(rows: Array, targets: Array, count: int) -> Array:
    """Return `count` rows, each the sum of those `rows` whose target it is."""
    result = np.zeros_like(rows, shape=(count, rows.shape[1]))
    if targets.size == 0:
        return result
    # Sorted by target, equal targets are neighbours and reduceat sums each run in one pass, many
    # times faster than np.add.at.
    order = np.argsort(targets, kind="stable")
    in_order = targets[order]
    starts = np.flatnonzero(np.diff(in_order, prepend=-1))
    result[in_order[starts]] = np.add.reduceat(rows[order], like(starts, rows), axis=0)
    return result
