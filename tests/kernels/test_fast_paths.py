"""What numpy's own arrays go through alone gives what other arrays go through."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tapetensor.arrays.array import Array
from tapetensor.kernels import arithmetic, elementwise
from tapetensor.kernels.linear_algebra import linear, unbiased_linear
from tapetensor.kernels.numerics.along_axes import sum_to

SHAPES = [(5, 3), (1, 3), (0, 3), (5, 1), (5, 0), (2, 4, 3), (2, 0, 3), (40_000, 2)]
TOLERANCE: dict[Any, float] = {np.float32: 2e-5, np.float64: 1e-12}


def _layouts(rng: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> list[Array]:
    """Return arrays of one shape: in rows, in columns, every second element, one number."""
    rows = rng.standard_normal(shape).astype(dtype)
    twice = rng.standard_normal([2 * size for size in shape]).astype(dtype)
    every_second = twice[tuple([slice(None, None, 2)] * len(shape))]
    return [rows, np.asfortranarray(rows), every_second, np.broadcast_to(dtype(0.5), shape)]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_sums_by_a_product_with_ones_are_numpys_sums(
    shape: tuple[int, ...], dtype: Any, rng: np.random.Generator
) -> None:
    for x in _layouts(rng, shape, dtype):
        before = x.copy()
        rtol, atol = TOLERANCE[dtype], 40 * TOLERANCE[dtype]
        summed = sum_to(x, shape[-1:])
        expected = np.add.reduce(x, axis=tuple(range(x.ndim - 1)), dtype=np.float64)

        assert summed.dtype == dtype
        np.testing.assert_allclose(summed, expected, rtol=rtol, atol=atol)
        np.testing.assert_array_equal(x, before)


def test_a_sum_is_nobody_elses_array_and_leaves_the_next_one_as_it_is() -> None:
    x = np.ones((1, 3), np.float32)
    summed = sum_to(x, (3,))
    assert not np.shares_memory(summed, x)
    summed += 1
    assert sum_to(x, (3,)).tolist() == [1, 1, 1]


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_stays_in_its_own_sum(value: float) -> None:
    x = np.zeros((6, 5), np.float32)
    x[2, 3] = value
    np.testing.assert_array_equal(sum_to(x, (5,)), [0, 0, 0, value, 0])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rows", [(5,), (1,), (0,), (2, 3)], ids=str)
def test_a_linear_map_by_dot_is_the_one_by_matmul(
    rows: tuple[int, ...], dtype: Any, rng: np.random.Generator
) -> None:
    bias = rng.standard_normal(2).astype(dtype)
    for x, weight, g in zip(
        _layouts(rng, (*rows, 4), dtype),
        _layouts(rng, (2, 4), dtype),
        _layouts(rng, (*rows, 2), dtype),
        strict=True,
    ):
        close = TOLERANCE[dtype]
        unbiased, _ = unbiased_linear(x, weight)
        y, pullbacks = linear(x, weight, bias)
        expected = [np.matmul(g, weight), np.tensordot(g, x, (range(len(rows)),) * 2)]

        np.testing.assert_allclose(unbiased, np.matmul(x, weight.T), rtol=close, atol=close)
        np.testing.assert_allclose(y, np.matmul(x, weight.T) + bias, rtol=close, atol=close)
        for pullback, one in zip(pullbacks, expected, strict=False):
            assert pullback is not None
            np.testing.assert_allclose(pullback(g), one, rtol=close, atol=close)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.longdouble])
def test_relu_of_a_short_array_is_the_maximum_with_0(dtype: Any) -> None:
    x = np.array([-np.inf, -1.5, -0.0, 0.0, 2.5, np.inf, np.nan], dtype)
    y, _ = elementwise.relu(x)
    assert y.dtype == dtype
    np.testing.assert_array_equal(y, np.maximum(x, 0))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.longdouble, np.int64])
@pytest.mark.parametrize("number", [0.1, -0.0, 0.0, 3, True, 1e300, -1e-50, np.inf, np.nan])
def test_a_factor_and_a_divisor_act_as_the_plain_numbers(dtype: Any, number: float) -> None:
    x = np.array([-np.inf, -2.5, -0.0, 0.0, 3.5, np.nan]).astype(dtype)
    for kernel, expected in (
        (arithmetic.multiply_number, x * number),
        (arithmetic.divide_number, x / number),
    ):
        y, (pullback,) = kernel(x, number)
        assert pullback is not None
        for found in (y, pullback(x)):
            assert found.dtype == expected.dtype
            np.testing.assert_array_equal(found, expected)
            np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))


def test_a_factor_beyond_every_float_overflows() -> None:
    with pytest.raises(OverflowError):
        arithmetic.multiply_number(np.ones(3, np.float32), 10**400)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("exponent", [-4, -3, -2, -1, 1, 2, 3, 4, 5, 7, 20.0, 0.5, 1e300])
def test_powers_of_any_base_are_numpys_powers(dtype: Any, exponent: float) -> None:
    x = np.array([-2.5, -1.0, -0.3, -0.0, 0.0, 0.7, 1.0, 3.1, np.inf, -np.inf, np.nan], dtype)
    with np.errstate(all="ignore"):
        y, (pullback,) = arithmetic.power_number(x, exponent)
        assert pullback is not None
        wanted = x**exponent
        slope = exponent * x ** (exponent - 1)

        assert y.dtype == dtype
        np.testing.assert_allclose(y, wanted, rtol=TOLERANCE[dtype])
        np.testing.assert_array_equal(np.signbit(y[:-1]), np.signbit(wanted[:-1]))
        np.testing.assert_allclose(pullback(np.ones_like(x)), slope, rtol=TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_softplus_is_numpys_logaddexp(dtype: Any) -> None:
    x = np.array([-np.inf, -100.0, -20.0, -1e-9, -0.0, 0.0, 1.0, 20.0, 1e30, np.inf], dtype)

    y, _ = elementwise.softplus(x)

    np.testing.assert_allclose(y, np.logaddexp(x, dtype(0)), rtol=TOLERANCE[dtype])
