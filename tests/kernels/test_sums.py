"""Sums: of everything along any axes, by segments, and of a million singles."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor.arrays.array import Array
from tapetensor.kernels.indexing import getitem, take
from tapetensor.kernels.numerics.along_axes import (
    largest,
    products_over,
    row_sums,
    smallest,
    sum_over,
)
from tapetensor.kernels.numerics.segments import segment_sum
from tests.arrays import foreign

_SHAPES = (
    (40, 5), (3, 2000), (3, 9, 700), (3, 700, 2), (9, 4, 6, 8), (1, 7), (64, 1), (0, 5), (5, 0),
    (17,), (2, 20, 3),
)  # fmt: skip


def _array(shape: tuple[int, ...], dtype: Any = np.float64) -> Any:
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(dtype)


@pytest.mark.parametrize("shape", _SHAPES)
def test_sums_over_any_axes_are_those_of_numpy(shape: tuple[int, ...]) -> None:
    x = _array(shape)
    for count in range(x.ndim + 1):
        for axis in itertools.combinations(range(x.ndim), count):
            wanted = np.sum(x, axis=axis, keepdims=True)

            found = sum_over(x, axis)

            assert found.shape == wanted.shape
            np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("order", list(itertools.permutations(range(4))))
def test_sums_of_products_over_any_axes_are_those_of_numpy(order: tuple[int, ...]) -> None:
    x, y = (_array((9, 4, 6, 48)).transpose(order) + one for one in (0, 1))
    others = (y, np.ascontiguousarray(y), np.broadcast_to(2.0, y.shape))
    for axis, other in itertools.product(((0,), (1, 3), (0, 2, 3), (0, 1, 2, 3)), others):
        wanted = np.sum(x * other, axis=axis, keepdims=True)

        found = products_over(x, other, axis)

        assert found.shape == wanted.shape
        np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-11)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.bool_])
@pytest.mark.parametrize("shape", [(40, 5), (3, 2000), (4, 9, 6), (12,)])
def test_extremes_are_those_of_numpy(shape: tuple[int, ...], dtype: Any) -> None:
    x = _array(shape, dtype)
    for axis in range(x.ndim):
        for found, ufunc in ((largest, np.maximum), (smallest, np.minimum)):
            wanted = ufunc.reduce(x, axis=axis, keepdims=True)
            np.testing.assert_array_equal(found(x, axis), wanted, strict=True)
            np.testing.assert_array_equal(found(x, (axis,)), wanted, strict=True)
            np.testing.assert_array_equal(found(x.T, x.ndim - 1 - axis), wanted.T, strict=True)


def test_short_rows_are_summed_as_exactly_as_by_a_reduction() -> None:
    x = (1000 + _array((64, 1024))).astype(np.float32)
    exact = x.astype(np.float64).sum(-1, keepdims=True)

    error = np.abs(row_sums(x) - exact).max()

    # The narrowest vectors have four lanes, each of which adds 256 elements one after the other.
    assert error <= 8 * np.abs(np.add.reduce(x, axis=-1, keepdims=True) - exact).max()


# Rows, targets and width: few elements, narrow rows, wide ones; most rows of one target, some, few.
SIZES = [
    (0, 3, 2), (0, 3, 100_000), (3, 1, 0), (5, 3, 1), (40, 7, 70), (9000, 5, 5),
    (9000, 5, 6), (600, 1, 64), (600, 30, 64), (600, 500, 64), (600, 40_000, 64),
]  # fmt: skip


def _looped(rows: Array, targets: Array, count: int) -> Array:
    sums = np.zeros((count, rows.shape[1]))
    for row, target in zip(rows, targets, strict=True):
        sums[target] += row
    return sums


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_rows_are_added_to_their_targets(
    size: tuple[int, int, int], dtype: Any, rng: np.random.Generator
) -> None:
    length, count, width = size
    # Some targets get many rows, and most of them few.
    targets = (count * rng.random(length) ** 3).astype(np.intp)
    values = rng.integers(-2, 3, (length, width)).astype(dtype)
    layouts = [
        values,
        np.asfortranarray(values),
        np.repeat(values, 2, 1)[:, ::2],
        np.broadcast_to(dtype(0.5), values.shape),
    ]
    for rows in layouts:
        before = rows.copy()

        sums = segment_sum(rows, targets, count)

        assert sums.dtype == dtype
        np.testing.assert_array_equal(sums, _looped(rows, targets, count).astype(dtype))
        np.testing.assert_array_equal(rows, before)
        elsewhere: Any = segment_sum(foreign.asarray(rows), foreign.asarray(targets), count)  # type: ignore[arg-type]  # follows numpy's protocols
        np.testing.assert_array_equal(elsewhere.get(), sums)


def _added_at(shape: tuple[int, ...], index: Any, g: Array) -> Array:
    total = np.zeros(shape)
    np.add.at(total, index, g)
    return total


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.uint64, np.int64])
def test_cotangents_return_to_where_they_were_read(kind: Any, rng: np.random.Generator) -> None:
    shape = (6, 5, 4)
    x = rng.standard_normal(shape)

    def positions(axis: int, *sizes: int) -> Array:
        low = 0 if np.dtype(kind).kind == "u" else -shape[axis]
        return rng.integers(low, shape[axis], sizes).astype(kind)

    column = positions(0, 300, 1)
    # Each long enough to be added another way than by np.add.at.
    indices: list[Any] = [
        positions(0, 300), positions(0, 20, 15), (column, positions(1, 2)),
        (positions(0, 600), positions(1, 600), positions(2, 600)),
        (slice(None), positions(1, 300)), (column[:, 0], slice(1, 3)), (positions(0, 300), 2),
        (positions(0, 300), np.int64(2)), (..., positions(2, 300)),
    ]  # fmt: skip
    for index in indices:
        y, (pullback,) = getitem(x, index)
        g: Any = rng.standard_normal(y.shape)
        assert pullback is not None
        np.testing.assert_allclose(pullback(g), _added_at(shape, index, g), atol=1e-12)

    wide = np.zeros((6, 80))
    for array, axis, one in (
        *[(x, axis, positions(axis, 300)) for axis in range(3)],
        *[(x, axis, positions(axis, 20, 15)) for axis in range(3)],
        (wide, 0, positions(0, 600)),
    ):
        y, (pullback, _) = take(array, one, axis)
        g = rng.standard_normal(y.shape)
        assert pullback is not None
        index = (*[slice(None)] * axis, one)
        np.testing.assert_allclose(pullback(g), _added_at(array.shape, index, g), atol=1e-12)


_COUNT = 1_000_000
_PLACES = tt.from_numpy(np.zeros(_COUNT, np.int64))
_PAIRS = _PLACES.reshape((_COUNT // 2, 2))
# Of a table with more rows than are read.
_FEW = tt.from_numpy(np.zeros(_COUNT // 10, np.int64))


def _scan(x: Any) -> Any:
    return tt.ssm_scan(x, tt.ones(x.shape, x.dtype), tt.ones((1, 1), x.dtype))


# What is computed, and of what shape its operand is; all elements are 0.1, as is the cotangent.
_ADDS: dict[str, tuple[Callable[[Any], Any], tuple[int, ...]]] = {
    "cumulative_sum": (lambda x: x.cumulative_sum(axis=0), (_COUNT,)),
    "cumulative_sum of rows": (lambda x: x.cumulative_sum(axis=0), (_COUNT // 2, 2)),
    "cumulative_sum along rows": (lambda x: x.cumulative_sum(axis=1), (2, _COUNT // 2)),
    "cumulative_logsumexp": (lambda x: x.cumulative_logsumexp(axis=0), (_COUNT // 10,)),
    # Fewer, for these go step by step.
    "ssm_scan": (_scan, (_COUNT // 10, 1)),
    "sum": (lambda x: x.sum(), (_COUNT,)),
    "sum of rows": (lambda x: x.sum(axis=0), (_COUNT // 2, 2)),
    "sum of the axis between": (lambda x: x.sum(axis=1), (2, _COUNT // 4 + 7, 2)),
    "sum of the axes around": (lambda x: x.sum(axis=(0, 2)), (_COUNT // 4, 2, 2)),
    "mean of the axis between": (lambda x: x.mean(axis=1), (1, _COUNT // 2, 2)),
    "segment_sum": (lambda x: tt.segment_sum(x, _PLACES, 2), (_COUNT,)),
    "segment_sum of pairs": (lambda x: tt.segment_sum(x, _PLACES, 2), (_COUNT, 2)),
    "segment_sum of wide rows": (lambda x: tt.segment_sum(x, _FEW[:50_000], 2), (50_000, 64)),
    "take": (lambda x: x.take(_PLACES), (2,)),
    "take of a large table": (lambda x: x.take(_FEW), (_COUNT, 2)),
    "take along the last axis": (lambda x: x.take(_PLACES, axis=1), (2, 2)),
    "an index": (lambda x: x[_PLACES], (2, 3)),
    "an index behind a slice": (lambda x: x[:, _PLACES], (2, 2)),
    "take_along_axis": (lambda x: x.take_along_axis(_PAIRS, axis=0), (2, 2)),
    "put_along_axis": (
        lambda x: tt.zeros((2,), x.dtype).put_along_axis(_PLACES, x, 0, accumulate=True),
        (_COUNT,),
    ),
    "a row that broadcasts": (lambda x: tt.ones((_COUNT, 2), x.dtype) * x, (2,)),
    "a column that broadcasts": (lambda x: tt.ones((_COUNT // 2, 2, 1), x.dtype) * x, (2, 1)),
    "broadcast_to": (lambda x: x.broadcast_to((2, _COUNT // 2, 2)), (2, 1, 2)),
}


@pytest.mark.parametrize("name", _ADDS)
def test_a_million_singles_add_up_to_what_doubles_do(name: str) -> None:
    f, shape = _ADDS[name]

    def both(x: Any) -> Any:
        y = f(x.trace())
        tenths = tt.full(y.shape, 0.1, x.dtype)
        return f(x), (y * tenths).sum().backward()[x]

    singles = both(tt.full(shape, 0.1))
    doubles = both(tt.full(shape, 0.1, np.float64))
    for found, wanted in zip(singles, doubles, strict=True):
        np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=3e-5)


@pytest.mark.parametrize("name", ["cumulative_sum", "segment_sum", "sum of the axis between"])
def test_so_they_do_in_a_plan(name: str) -> None:
    f, shape = _ADDS[name]
    x = tt.full(shape, 0.1)

    np.testing.assert_allclose(tt.compile(f)(x).numpy(), f(x).numpy(), rtol=1e-6)
