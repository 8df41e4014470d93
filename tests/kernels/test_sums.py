"""Sums and extremes in the ways that are fast, against numpy's reductions."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from tapetensor.kernels.numerics.along_axes import (
    largest,
    products_over,
    row_products,
    row_sums,
    smallest,
    sum_of_rows,
    sum_over,
)

_SHAPES = (
    (40, 5),
    (3, 2000),
    (3, 9, 700),
    (3, 700, 2),
    (9, 4, 6, 8),
    (1, 7),
    (64, 1),
    (0, 5),
    (5, 0),
    (17,),
    (2, 20, 3),
)


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
def test_sums_of_arrays_in_another_order_are_those_of_numpy(order: tuple[int, ...]) -> None:
    x = _array((9, 4, 6, 8)).transpose(order)
    for axis in ((0,), (1, 3), (0, 2, 3), (2, 3)):
        wanted = np.sum(x, axis=axis, keepdims=True)

        found = sum_over(x, axis)

        assert found.shape == wanted.shape
        np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(sum_over(x[1:, ::2], (0, 3)), x[1:, ::2].sum((0, 3), keepdims=True))


@pytest.mark.parametrize("order", list(itertools.permutations(range(4))))
def test_sums_of_products_over_any_axes_are_those_of_numpy(order: tuple[int, ...]) -> None:
    x, y = (_array((9, 4, 6, 48)).transpose(order) + one for one in (0, 1))
    others = (y, np.ascontiguousarray(y), np.broadcast_to(2.0, y.shape))
    for axis, other in itertools.product(((0,), (1, 3), (0, 2, 3), (0, 1, 2, 3)), others):
        wanted = np.sum(x * other, axis=axis, keepdims=True)

        found = products_over(x, other, axis)

        assert found.shape == wanted.shape
        np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-11)


def test_integers_keep_their_dtype() -> None:
    x = np.full((20, 4), 100, np.int8)

    assert sum_over(x, (1,)).dtype == np.int8


@pytest.mark.parametrize("width", [3, 40, 2000])
def test_products_of_rows_are_those_of_numpy(width: int) -> None:
    x, y = _array((3, 12, width)), _array((3, 12, width)) + 1

    np.testing.assert_allclose(row_products(x, y), (x * y).sum(-1, keepdims=True), rtol=1e-10)
    np.testing.assert_allclose(row_sums(y), y.sum(-1, keepdims=True), rtol=1e-10)
    np.testing.assert_allclose(sum_of_rows(y), y.sum((0, 1)), rtol=1e-10)


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


def test_a_row_with_a_nan_has_a_nan_for_its_extremes() -> None:
    x = _array((20, 6))
    x[3, 4] = np.nan
    x[7, 0] = np.inf

    np.testing.assert_array_equal(largest(x, 1), np.max(x, axis=1, keepdims=True))
    np.testing.assert_array_equal(smallest(x, -1), np.min(x, axis=1, keepdims=True))


def test_short_rows_are_summed_as_exactly_as_by_a_reduction() -> None:
    x = (1000 + _array((64, 1024))).astype(np.float32)
    exact = x.astype(np.float64).sum(-1, keepdims=True)

    error = np.abs(row_sums(x) - exact).max()

    # The narrowest vectors have four lanes, each of which adds 256 elements one after the other.
    assert error <= 8 * np.abs(np.add.reduce(x, axis=-1, keepdims=True) - exact).max()
