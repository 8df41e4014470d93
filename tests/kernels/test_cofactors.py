"""The derivative of the determinant is the cofactors, of singular matrices as well."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tapetensor as tt

Array = Any


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
