"""What numpy's own arrays go through alone, or in another layout, gives what others give."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor.arrays.array import Array
from tapetensor.kernels import arithmetic
from tapetensor.kernels.linear_algebra import linear, unbiased_linear
from tapetensor.kernels.numerics.along_axes import sum_to
from tapetensor.kernels.numerics.choice import can_blend, choose

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


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_stays_in_its_own_sum(value: float) -> None:
    x = np.zeros((6, 5), np.float32)
    x[2, 3] = value
    np.testing.assert_array_equal(sum_to(x, (5,)), [0, 0, 0, value, 0])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("rows", "inner", "outer"),
    [
        *[(rows, 4, 2) for rows in ((5,), (1,), (0,), (2, 3))],
        *[((48,), 64, 96), ((96,), 64, 48), ((2,), 64, 96), ((64,), 64, 64)],
    ],
    ids=str,
)
def test_a_linear_map_is_the_one_by_matmul_however_its_operands_lie(
    rows: tuple[int, ...], inner: int, outer: int, dtype: Any, rng: np.random.Generator
) -> None:
    bias = rng.standard_normal(outer).astype(dtype)
    cotangents = _layouts(rng, (*rows, outer), dtype)
    operands = zip(
        _layouts(rng, (*rows, inner), dtype), _layouts(rng, (outer, inner), dtype), strict=True
    )
    for (x, weight), g in itertools.product(operands, cotangents):
        close = 20 * TOLERANCE[dtype]
        unbiased, _ = unbiased_linear(x, weight)
        y, pullbacks = linear(x, weight, bias)
        leading = tuple(range(len(rows)))
        of_weight = np.tensordot(g, x, (leading, leading))
        expected = [np.matmul(g, weight), of_weight, g.sum(axis=leading)]

        np.testing.assert_allclose(unbiased, np.matmul(x, weight.T), rtol=close, atol=close)
        np.testing.assert_allclose(y, np.matmul(x, weight.T) + bias, rtol=close, atol=close)
        for pullback, one in zip(pullbacks, expected, strict=True):
            assert pullback is not None
            np.testing.assert_allclose(pullback(g), one, rtol=close, atol=close)


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


_SHAPE = (64, 33)
_ODD = [np.nan, np.inf, -np.inf, -0.0, 0.0, 1e-45, -1.5]


def _side(dtype: Any, seed: int) -> Any:
    rng = np.random.default_rng(seed)
    side = rng.standard_normal(_SHAPE).astype(dtype)
    side.flat[rng.integers(0, side.size, 500)] = rng.choice(np.array(_ODD, dtype), 500)
    return side


def _mask() -> Any:
    return np.random.default_rng(9).random(_SHAPE) < 0.5


def _assert_same(found: Any, wanted: Any) -> None:
    assert found.dtype == wanted.dtype
    assert found.shape == wanted.shape
    assert found.tobytes() == wanted.tobytes()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("number", [0, 0.0, -0.0, 1, 2.5, np.inf])
def test_a_number_on_either_side_is_chosen_bit_by_bit(dtype: Any, number: float) -> None:
    mask, side = _mask(), _side(dtype, 0)

    _assert_same(choose(mask, side, number), np.where(mask, side, number))
    _assert_same(choose(mask, number, side), np.where(mask, number, side))


@pytest.mark.parametrize("shape", [_SHAPE[1:], (1, *_SHAPE[1:]), (*_SHAPE[:1], 1), (1, 1), (1,)])
def test_sides_that_are_repeated_are_chosen_bit_by_bit(shape: tuple[int, ...]) -> None:
    mask, side = _mask(), _side(np.float32, 6)
    part = side[tuple(slice(size) for size in (1, *shape)[-2:])].reshape(shape)

    for one in (part, np.broadcast_to(part, _SHAPE)):
        assert can_blend(mask, side, one)
        for sides in ((side, one), (one, side), (one, one), (one, np.array(0.5, np.float32))):
            for which in (mask, np.asfortranarray(mask)):
                found, wanted = choose(which, *sides), np.where(which, *sides)
                _assert_same(found, wanted)
                assert found.strides == wanted.strides


def by_definition(x: Array) -> Array:
    cofactors = np.zeros_like(x)
    for i, j in np.ndindex(x.shape):
        minor = np.delete(np.delete(x, i, 0), j, 1)
        cofactors[i, j] = (-1) ** (i + j) * np.linalg.det(minor)
    return cofactors


def of_rank(rank: int, size: int) -> Array:
    """Return a matrix of which numpy finds the rank, for it has equal rows, or zeros."""
    x = np.random.default_rng(rank).normal(size=(size, size))
    x[rank:] = x[0] if rank else 0.0
    return x


def slope(x: Any) -> Any:
    return x.trace().det().sum().backward()[x]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("rank", "size"), [(0, 1), (1, 2), (0, 2), (3, 4), (2, 4), (4, 4)])
def test_the_gradient_of_a_determinant_is_the_cofactors(rank: int, size: int, dtype: Any) -> None:
    matrix = of_rank(rank, size)
    x = tt.from_numpy(matrix.astype(dtype))

    for found in (slope(x), tt.compile(slope)(x)):
        np.testing.assert_allclose(
            found.numpy(), by_definition(matrix), atol=1e-4 if dtype == np.float32 else 1e-12
        )


@pytest.mark.parametrize(("rank", "size"), [(1, 2), (0, 2), (3, 4), (2, 4), (1, 4)])
def test_derivatives_of_higher_order_are_those_of_the_polynomial(rank: int, size: int) -> None:
    matrix = of_rank(rank, size)
    along, across = np.random.default_rng(9).normal(size=(2, size, size))
    x, v, w = map(tt.from_numpy, (matrix, along, across))

    def second(x: Any) -> Any:
        return tt.grad(lambda y: (tt.grad(lambda z: z.det(), y) * v).sum(), x)

    differences = by_definition(matrix + 1e-5 * along) - by_definition(matrix - 1e-5 * along)
    np.testing.assert_allclose(second(x).numpy(), differences / 2e-5, atol=1e-8)
    third = tt.grad(lambda x: (second(x) * w).sum(), x).numpy()
    mixed = [
        sign * by_definition(matrix + 1e-3 * (one * along + sign * one * across))
        for one in (1, -1)
        for sign in (1, -1)
    ]
    np.testing.assert_allclose(third, sum(mixed) / 4e-6, atol=1e-5)


@pytest.mark.parametrize("singular", [np.ones((3, 3)), np.zeros((3, 3)), 1e-150 * np.eye(3)])
def test_so_they_are_where_they_are_compiled_for_a_regular_matrix(singular: Array) -> None:
    direction = tt.from_numpy(np.arange(9.0).reshape(3, 3) ** 2)

    def second(x: Any) -> Any:
        return tt.hessian_vector_product(lambda y: y.det(), x, direction)

    compiled = tt.compile(second)
    for matrix in (np.eye(3) + 1.0, singular):
        x = tt.from_numpy(matrix)
        np.testing.assert_allclose(compiled(x).numpy(), second(x).numpy(), rtol=1e-12, atol=1e-12)
