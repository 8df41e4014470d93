"""Matrices inverted, solved for, factored; over the last two axes.

Derivatives after M. B. Giles (2008), "Collected matrix derivative results for forward and reverse
mode algorithmic differentiation".
"""

from __future__ import annotations

import numpy as np

from tapetensor.arrays.array import Array
from tapetensor.kernels.numerics.broadcasting import sum_to
from tapetensor.kernels.numerics.cofactors import cofactors
from tapetensor.tape import Pullbacks


def inv(x: Array) -> tuple[Array, Pullbacks]:
    """The inverse."""
    y = np.linalg.inv(x)
    adjoint = _transposed(y)
    return y, (lambda g: -(adjoint @ g @ adjoint),)


def det(x: Array) -> tuple[Array, Pullbacks]:
    """The determinant."""
    y = np.linalg.det(x)
    return y, (lambda g: np.reshape(g, (*y.shape, 1, 1)) * cofactors(x, y),)


def solve(a: Array, b: Array) -> tuple[Array, Pullbacks]:
    """``x`` with ``a @ x == b``, for a vector `b` or for the columns of matrices."""
    columns = np.reshape(b, (*b.shape, 1)) if b.ndim == 1 else b
    solved = np.linalg.solve(a, columns)
    y = np.reshape(solved, solved.shape[:-1]) if b.ndim == 1 else solved

    def of_columns(g: Array) -> Array:
        cotangent: Array = np.linalg.solve(_transposed(a), np.reshape(g, solved.shape))
        return cotangent

    return y, (
        lambda g: sum_to(-(of_columns(g) @ _transposed(solved)), a.shape),
        lambda g: np.reshape(sum_to(of_columns(g), columns.shape), b.shape),
    )


def cholesky(x: Array) -> tuple[Array, Pullbacks]:
    """The lower triangle `y` with ``y @ y.T`` the symmetric part of `x`."""
    y = np.linalg.cholesky(0.5 * (x + _transposed(x)))

    def pullback(g: Array) -> Array:
        adjoint = _transposed(y)
        product = adjoint @ g
        # The diagonal counts half.
        inner = 0.5 * (np.tril(product) + np.tril(product, -1))
        left = np.linalg.solve(adjoint, inner)
        slope = _transposed(np.linalg.solve(adjoint, _transposed(left)))
        cotangent: Array = 0.5 * (slope + _transposed(slope))
        return cotangent

    return y, (pullback,)


def _transposed(x: Array) -> Array:
    return np.swapaxes(x, -1, -2)
