"""Elements read by position, mask or order, or moved; cotangents go back to where they were."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from typing_extensions import override

from tapetensor.arrays.array import Array
from tapetensor.arrays.libraries import Home, Library, beside_captured, like, moved
from tapetensor.arrays.stand_ins import Recorded
from tapetensor.kernels.numerics import segments as sums
from tapetensor.kernels.numerics.along_axes import sum_to
from tapetensor.kernels.numerics.choice import choose, order_of
from tapetensor.kernels.numerics.decorators import FEW_STEPS, MANY_STEPS, native_from
from tapetensor.tape import Pullbacks
from tapetensor.tape.pullbacks import AddingPullback, PartPullback
from tapetensor.tape.row_sparse import RowSparse

# numpy adds fewer elements one by one, at their indices, sooner than their places are found.
_MANY = 1 << 9


def getitem(x: Array, index: Any) -> tuple[Array, Pullbacks]:
    """``x[index]`` for basic slices, integer arrays and boolean masks."""
    shape = x.shape
    parts = index if isinstance(index, tuple) else (index,)
    arrays = [one for one in parts if hasattr(one, "shape")]
    if arrays:
        x = beside_captured(x, arrays)
        if any(one.dtype.kind != "b" for one in arrays):
            return x[index], (lambda g: _summed_at(g, parts, shape),)
    return x[index], (PartPullback(x, index),)


class _RowsPullback(AddingPullback):
    """The pullback of reading rows of a table, some of them perhaps several times."""

    __slots__ = ("_positions", "_shape")

    def __init__(self, shape: tuple[int, ...], positions: Array) -> None:
        self._shape = shape
        self._positions = positions

    @override
    def __call__(self, g: Array) -> Array:
        return _summed(g, self._targets(), self._shape[0], self._shape)

    @override
    def adds(self, whole: Array, g: Array) -> bool:
        return type(whole) is type(g) is type(self._positions) is np.ndarray

    @override
    def add_to(self, whole: Array, g: Array) -> None:
        found, places = np.unique(self._targets(), return_inverse=True)
        whole[found] += _summed(g, places, found.size, (found.size, *self._shape[1:]))

    def _targets(self) -> Array:
        return self._positions.reshape(-1) % self._shape[0]


def take(x: Array, indices: Array, axis: int) -> tuple[Array, Pullbacks]:
    """The slices of `x` along `axis` at integer `indices`."""
    positions = _as_positions(indices)
    shape = x.shape
    if axis == 0:
        return np.take(x, positions, axis=0), (_RowsPullback(shape, positions), None)

    def pullback(g: Array) -> Array:
        rows = shape[axis]
        targets = positions.reshape(-1) % rows
        # The indexed axis is moved to the front.
        others = (*shape[:axis], *shape[axis + 1 :])
        along = np.reshape(g, (*shape[:axis], positions.size, *shape[axis + 1 :]))
        summed = _summed(np.moveaxis(along, axis, 0), targets, rows, (rows, *others))
        return np.moveaxis(summed, 0, axis)

    return np.take(x, positions, axis=axis), (pullback, None)


def pad_with_elements(x: Array, places: tuple[Array, ...]) -> tuple[Array, Pullbacks]:
    """The elements within a frame of themselves: along each axis those at `places`."""
    y = x
    taken: list[Any] = []
    for axis, positions in enumerate(places):
        y, (pullback, _) = take(y, positions, axis)
        taken.append(pullback)

    def through_all(g: Array) -> Array:
        for pullback in reversed(taken):
            g = pullback(g)
        return g

    return y, (through_all,)


def segment_sum(x: Array, segments: Array, count: int) -> tuple[Array, Pullbacks]:
    """`count` slices along the first axis, each the sum of those of `x` that name it."""
    targets = _as_positions(segments)
    shape = (count, *x.shape[1:])
    return _summed(x, targets, count, shape), (lambda g: np.take(g, targets, axis=0), None)


def take_along_axis(x: Array, indices: Array, axis: int) -> tuple[Array, Pullbacks]:
    """The elements of `x` along `axis` at indices of their own for each of the other places."""
    positions = _as_positions(indices)
    y = np.take_along_axis(x, positions, axis)
    shape = x.shape

    def pullback(g: Array) -> Array:
        # The axes of `x` and of `indices` broadcast against each other, all but `axis`.
        grid = [like(one, positions) for one in np.ogrid[tuple(map(slice, shape))]]
        return _summed_at(g, (*grid[:axis], positions, *grid[axis + 1 :]), shape)

    return y, (pullback, None)


def put_along_axis(
    x: Array, values: Array, indices: Array, axis: int, accumulate: bool
) -> tuple[Array, Pullbacks]:
    """`x` with `values` at, or added at, `indices` along `axis`."""
    positions = _as_positions(indices)
    # Without `axis` the grid has the sizes of `indices`, which are those of `x`.
    grid = [like(one, positions) for one in np.ogrid[tuple(map(slice, indices.shape))]]
    index = (*grid[:axis], positions, *grid[axis + 1 :])
    placed = _summed_at(values, index, x.shape)
    if accumulate:
        return x + placed, (lambda g: g, lambda g: np.take_along_axis(g, positions, axis), None)
    is_new = _summed_at(np.ones_like(values), index, x.shape) > 0
    return choose(is_new, placed, x), (
        lambda g: choose(is_new, 0, g),
        lambda g: np.take_along_axis(g, positions, axis),
        None,
    )


@native_from(FEW_STEPS)
def where(lhs: Array, rhs: Array, mask: Array) -> tuple[Array, Pullbacks]:
    """`lhs` where `mask` holds, `rhs` elsewhere."""
    return choose(mask, lhs, rhs), (
        lambda g: sum_to(choose(mask, g, 0), lhs.shape),
        lambda g: sum_to(choose(~mask, g, 0), rhs.shape),
        None,
    )


def where_number(x: Array, mask: Array, number: float) -> tuple[Array, Pullbacks]:
    """`x` where `mask` holds, a number elsewhere."""
    return choose(mask, x, number), (lambda g: sum_to(choose(mask, g, 0), x.shape), None)


def astype(x: Array, dtype: np.dtype[Any]) -> tuple[Array, Pullbacks]:
    """The elements converted; differentiable between floating dtypes only."""
    original = x.dtype
    if dtype.kind != "f" or original.kind != "f":
        return x.astype(dtype), (None,)
    return x.astype(dtype), (lambda g: g.astype(original),)


def to(x: Array, library: Library) -> tuple[Array, Pullbacks]:
    """The same elements in the memory of `library`; the cotangent goes back to where `x` was."""
    # An array without elements stands for `x`, whose memory is not kept.
    home = Home(np.zeros_like(x, shape=(0,)))
    return moved("to", x, library), (lambda g: moved("to", g, home),)


def _as_positions(indices: Array) -> Array:
    # numpy takes no uint64 for a position, and the number of rows may not fit a small dtype.
    return indices.astype(np.intp, copy=False)


def _summed_at(g: Array, index: tuple[Any, ...], shape: tuple[int, ...]) -> Array:
    """Return zeros of `shape` with `g` added at an index.

    An element that was read several times receives every cotangent, summed.
    """
    is_short = g.size < _MANY or not any(map(_is_integers, index))
    if is_short or not all(map(_is_integers, index)):
        # Many singles that meet at one element lose digits, one after the other.
        wide = g.dtype if is_short or g.dtype.kind != "f" else np.float64
        result = np.zeros_like(g, shape=shape, dtype=wide)
        np.add.at(result, index, g.astype(wide, copy=False))
        return result.astype(g.dtype, copy=False)
    sizes = shape[: len(index)]
    targets, *others = [_as_positions(one) % size for one, size in zip(index, sizes, strict=True)]
    for size, other in zip(sizes[1:], others, strict=True):
        targets = targets * size + other
    return _summed(g, targets.reshape(-1), math.prod(sizes), shape)


def _summed(g: Array, targets: Array, count: int, shape: tuple[int, ...]) -> Array:
    """Return an array of `shape`, `count` rows, with the rows of `g` added to their targets."""
    rows = g.reshape(targets.size, math.prod(shape) // count if count else 0)
    if isinstance(rows, Recorded):
        # What is recorded need not be followed into the sums: they are an op themselves.
        summed: Array = rows.level.run(segment_sum, (rows, targets), count)
    else:
        summed = sums.segment_sum(rows, targets, count)
    return summed.reshape(shape)


def _is_integers(index: Any) -> bool:
    is_array = hasattr(index, "shape") and not isinstance(index, np.generic)
    return is_array and bool(index.dtype.kind != "b")


def sort(x: Array, axis: int, descending: bool) -> tuple[Array, Pullbacks]:
    """The elements in order; equal ones keep the order that they have."""
    order = order_of(x, axis, descending)

    def pullback(g: Array) -> Array:
        return np.take_along_axis(g, np.argsort(order, axis=axis), axis)

    return np.take_along_axis(x, order, axis), (pullback,)


def topk(x: Array, indices: Array, axis: int) -> tuple[Array, Pullbacks]:
    """`take_along_axis`; it has a name of its own so that errors say what the user wrote."""
    return take_along_axis(x, indices, axis)


@native_from(MANY_STEPS)
def tril(x: Array, k: int) -> tuple[Array, Pullbacks]:
    """The elements on and below a diagonal of the matrices, 0 above it."""
    mask = _lower(x, k)
    return _kept(x, mask), (lambda g: _kept(g, mask),)


@native_from(MANY_STEPS)
def triu(x: Array, k: int) -> tuple[Array, Pullbacks]:
    """The elements on and above a diagonal of the matrices, 0 below it."""
    mask = ~_lower(x, k - 1)
    return _kept(x, mask), (lambda g: _kept(g, mask),)


def nans_to(x: Array, number: float) -> tuple[Array, Pullbacks]:
    """``x``, and a number where it is NaN."""
    is_nan = np.isnan(x)
    return choose(is_nan, number, x), (lambda g: choose(~is_nan, g, 0),)


def _lower(x: Array, k: int) -> Array:
    rows, columns = x.shape[-2:]
    mask: Array = np.tri(rows, columns, k, dtype=np.bool_)
    return mask


def _kept(x: Array, mask: Array) -> Array:
    # False is zero in every dtype, and leaves the dtype of a mask as it is.
    return choose(np.broadcast_to(like(mask, x), x.shape), x, False)


def take_rows(x: Array, indices: Array) -> tuple[Array, Pullbacks]:
    """The rows of `x`, a leaf, at integer `indices`; its gradient holds these rows alone.

    What is captured or recorded is followed as by `take`, and the gradient is the whole one.
    """
    y, (whole, _) = take(x, indices, 0)
    if whole is None or type(x) is not np.ndarray or type(indices) is not np.ndarray:
        return y, (whole, None)
    shape, dtype = x.shape, x.dtype

    def pullback(g: Array) -> Any:
        if type(g) is not np.ndarray:
            return whole(g)
        targets = indices.astype(np.intp, copy=False).reshape(-1)
        rows = g.reshape(targets.size, shape[1])
        return RowSparse.of(shape, dtype, sums.segment_sum, targets, rows)

    return y, (pullback, None)
