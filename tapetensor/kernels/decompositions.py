"""Matrices taken apart, over the last two axes. Several results are one array, rows under rows.

Derivatives after M. Seeger et al. (2017), "Auto-differentiating linear algebra", and M. B. Giles
(2008).
"""

from __future__ import annotations

import numpy as np

from tapetensor.arrays.array import Array
from tapetensor.arrays.libraries import like
from tapetensor.errors import ArgumentValueError
from tapetensor.tape import Pullbacks


def slogdet(x: Array) -> tuple[Array, Pullbacks]:
    """The sign of the determinant, and the logarithm of its size."""
    sign, size = np.linalg.slogdet(x)
    y = np.stack([sign, size], axis=-1)

    def pullback(g: Array) -> Array:
        try:
            inverse = np.linalg.inv(x)
        except np.linalg.LinAlgError as error:
            raise ArgumentValueError(f"slogdet: the derivative divides by it ({error})") from error
        cotangent: Array = np.reshape(g[..., 1], (*g.shape[:-1], 1, 1)) * _transposed(inverse)
        return cotangent

    return y, (pullback,)


def eigh(x: Array) -> tuple[Array, Pullbacks]:
    """A row of the eigenvalues of the symmetric part, ascending, over columns of vectors."""
    values, vectors = np.linalg.eigh(0.5 * (x + _transposed(x)))
    row = np.expand_dims(values, -2)

    def pullback(g: Array) -> Array:
        inner = 0.5 * _turned(vectors, g[..., 1:, :], row) + _diagonal(g[..., :1, :])
        cotangent: Array = vectors @ inner @ _transposed(vectors)
        return cotangent

    return np.concatenate([row, vectors], axis=-2), (pullback,)


def qr(x: Array) -> tuple[Array, Pullbacks]:
    """The orthogonal columns over the transposed triangle."""
    q, r = np.linalg.qr(x)
    rows, size = q.shape[-2:]

    def pullback(g: Array) -> Array:
        of_q, of_r = g[..., :rows, :], _transposed(g[..., rows:, :])
        # What is right of a square depends on it by way of the columns alone.
        of_q = of_q + x[..., size:] @ _transposed(of_r[..., size:])
        square, of_square = r[..., :size], of_r[..., :size]
        product = square @ _transposed(of_square) - _transposed(of_q) @ q
        mirrored = np.tril(product) + _transposed(np.tril(product, -1))
        try:
            solved = np.linalg.solve(square, _transposed(of_q + q @ mirrored))
        except np.linalg.LinAlgError as error:
            raise ArgumentValueError(f"qr: the derivative divides by R ({error})") from error
        return np.concatenate([_transposed(solved), q @ of_r[..., size:]], axis=-1)

    return np.concatenate([q, _transposed(r)], axis=-2), (pullback,)


def svd(x: Array) -> tuple[Array, Pullbacks]:
    """The left vectors, a row of the singular values, descending, and the right vectors."""
    u, values, right = np.linalg.svd(x, full_matrices=False)
    v = _transposed(right)
    row = np.expand_dims(values, -2)
    rows = u.shape[-2]

    def pullback(g: Array) -> Array:
        of_u, of_v = g[..., :rows, :], g[..., rows + 1 :, :]
        squares = np.square(row)
        inner = _turned(u, of_u, squares) * row + _turned(v, of_v, squares) * _transposed(row)
        cotangent: Array = u @ (inner + _diagonal(g[..., rows : rows + 1, :])) @ right
        # What turns the vectors out of the space that they span.
        if rows > row.shape[-1]:
            beyond = of_u - u @ (_transposed(u) @ of_u)
            cotangent = cotangent + (beyond / _divisor(row, _is_idle(of_u))) @ right
        if x.shape[-1] > row.shape[-1]:
            beyond = of_v - v @ (_transposed(v) @ of_v)
            cotangent = cotangent + u @ _transposed(beyond / _divisor(row, _is_idle(of_v)))
        return cotangent

    return np.concatenate([u, row, v], axis=-2), (pullback,)


def pinv(x: Array, rcond: float) -> tuple[Array, Pullbacks]:
    """The pseudoinverse; singular values up to `rcond` of the largest count as 0."""
    y = np.linalg.pinv(x, rcond)
    adjoint = _transposed(y)

    def pullback(g: Array) -> Array:
        turned = _transposed(g)
        to_left = turned @ y @ adjoint
        to_right = adjoint @ y @ turned
        cotangent: Array = (
            to_left + to_right - adjoint @ g @ adjoint - x @ (y @ to_left) - (to_right @ y) @ x
        )
        return cotangent

    return y, (pullback,)


def _turned(vectors: Array, g: Array, row: Array) -> Array:
    """Return how far a cotangent turns vectors into each other, by the gaps of their values.

    Where two values are equal no vectors of theirs are any better than others, and a function of
    them has no derivative: infinity or NaN, but for what does not depend on vectors at all.
    """
    turns = _transposed(vectors) @ g
    itself = like(np.eye(row.shape[-1], dtype=np.bool_), row)
    gaps = _divisor(row - _transposed(row), _is_idle(g) | itself)
    turned: Array = (turns - _transposed(turns)) / gaps
    return turned


def _is_idle(g: Array) -> Array:
    is_idle: Array = np.all(g == 0, axis=(-2, -1), keepdims=True)
    return is_idle


def _divisor(gaps: Array, is_idle: Array) -> Array:
    return np.where((gaps == 0) & is_idle, 1, gaps)


def _diagonal(row: Array) -> Array:
    """Return a row as the diagonal of a square."""
    squares: Array = row * like(np.eye(row.shape[-1], dtype=row.dtype), row)
    return squares


def _transposed(x: Array) -> Array:
    return np.swapaxes(x, -1, -2)
