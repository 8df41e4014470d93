"""Stacks of matrices: swapped axes, and the derivative of determinants, singular ones too."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapetensor.arrays.array import Array
from tapetensor.arrays.libraries import like
from tapetensor.arrays.stand_ins import is_captured, plain, run_check
from tapetensor.kernels.numerics.decorators import FEW_STEPS, native_from, single_step


@single_step
def cofactors(x: Array, determinants: Array) -> Array:
    """Return the cofactors of square matrices, whose determinants are given.

    They are ``det(x) * inv(x).T``, and polynomials of the elements, so that a singular matrix has
    them as well.
    """
    found = plain(determinants)
    if is_captured(found):
        # A derivative of higher order that is compiled: one program has no choice by value.
        run_check(_refuse_singular, determinants)
        return _by_inverse(x, determinants)
    is_singular = _is_singular(found)
    if not np.any(is_singular):
        return _by_inverse(x, determinants)
    is_here = np.reshape(is_singular, (*is_singular.shape, 1, 1))
    unit = like(np.eye(x.shape[-1], dtype=x.dtype), x)
    regular = _by_inverse(np.where(is_here, unit, x), np.where(is_singular, 1, determinants))
    return np.where(is_here, _by_minors(np.where(is_here, x, unit)), regular)


def _is_singular(determinants: Array) -> Array:
    # One that is no normal number may be that of a matrix that has an inverse.
    is_singular: Array = np.absolute(determinants) < np.finfo(determinants.dtype).tiny
    return is_singular


def _refuse_singular(determinants: Array) -> None:
    if np.any(_is_singular(determinants)):
        raise np.linalg.LinAlgError("Singular matrix")


def _by_inverse(x: Array, determinants: Array) -> Array:
    scale = np.reshape(determinants, (*determinants.shape, 1, 1))
    return scale * transposed(np.linalg.inv(x))


def _by_minors(x: Array) -> Array:
    """Return the cofactors of matrices of any rank.

    Turned by its singular vectors, which are constants here, a matrix is diagonal. Where a, the
    part of the singular values that are not 0, and d are regular and nearly 0,
    ``det [[a, b], [c, d]] = det(a) det(d - c inv(a) b)``, and what follows divides by a alone.
    """
    size = x.shape[-1]
    u, values, right = np.linalg.svd(plain(x))
    smallest = values[..., :1] * (size * np.finfo(values.dtype).eps)
    ranks = np.sum(values > smallest, axis=-1)
    kept = min(int(ranks.min()), size - 1)
    turned = transposed(u) @ x @ transposed(right)
    a, b = turned[..., :kept, :kept], turned[..., :kept, kept:]
    c, d = turned[..., kept:, :kept], turned[..., kept:, kept:]
    inverse, volume = np.linalg.inv(a), np.reshape(np.linalg.det(a), (*x.shape[:-2], 1, 1))
    below, beside = c @ inverse, inverse @ b
    of_rest, rest = _adjugate(d - c @ beside)
    of_rest = volume * transposed(of_rest)
    of_c, of_b = -of_rest @ transposed(beside), -transposed(below) @ of_rest
    of_a = rest * (volume * transposed(inverse)) - of_b @ transposed(beside)
    rows = [np.concatenate(pair, axis=-1) for pair in ((of_a, of_b), (of_c, of_rest))]
    sign = np.reshape(np.linalg.det(u) * np.linalg.det(right), volume.shape)
    found: Array = np.rint(sign) * (u @ np.concatenate(rows, axis=-2) @ right)
    return found


def _adjugate(x: Array) -> tuple[Array, Array]:
    """Return the adjugate and the determinant, by the algorithm of Faddeev and LeVerrier.

    Nothing is divided by but integers: both are polynomials, of which every derivative is right.
    """
    size = x.shape[-1]
    unit: Any = like(np.eye(size, dtype=x.dtype), x)
    factor = unit + np.zeros_like(x)
    for order in range(1, size):
        product = x @ factor
        factor = product - unit * (_trace(product, unit) / order)
    sign = 1.0 if size % 2 else -1.0
    return sign * factor, sign * _trace(x @ factor, unit) / size


def _trace(x: Array, unit: Array) -> Array:
    total: Array = np.sum(x * unit, axis=(-2, -1), keepdims=True)
    return total


def transposed(x: Array) -> Array:
    """Return a stack of matrices with their axes swapped."""
    return np.swapaxes(x, -1, -2)


@native_from(FEW_STEPS)
def columns_as_rows(x: Array) -> Array:
    """Return a stack of matrices with their axes swapped, for a product with another."""
    return np.swapaxes(x, -1, -2)
