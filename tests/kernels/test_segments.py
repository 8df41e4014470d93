"""Sums of the rows that have one target, against a loop over the rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor.arrays.array import Array
from tapetensor.kernels.indexing import getitem, take
from tapetensor.kernels.numerics.segments import segment_sum
from tapetensor.testing import check_grad
from tests.arrays import foreign

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


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("size", SIZES[4:], ids=str)
def test_what_is_not_finite_stays_in_its_own_row(size: tuple[int, int, int], value: float) -> None:
    length, count, width = size
    rows = np.zeros((length, width), np.float32)
    rows[7, 2] = value
    expected = np.zeros((count, width), np.float32)
    expected[7 % count, 2] = value

    sums = segment_sum(rows, np.arange(length) % count, count)

    np.testing.assert_array_equal(sums, expected)


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


def test_many_positions_are_compiled_and_differentiated_twice(rng: np.random.Generator) -> None:
    x = tt.from_numpy(rng.standard_normal((6, 5)), (6, 5))
    rows, columns = (tt.from_numpy(rng.integers(0, 5, 600), (600,)) for _ in range(2))

    def loss(x: Any) -> Any:
        return (x[rows, columns].square() * x.take(rows)[:, 1]).sum()

    def step(x: Any) -> Any:
        return loss(x.trace()).backward()[x]

    expected = step(x).numpy()
    compiled: Any = tt.compile(step)
    for _ in range(2):
        np.testing.assert_allclose(compiled(x).numpy(), expected, rtol=1e-12)
    check_grad(lambda x: tt.grad(loss, x).square().sum(), x, rng=rng)
