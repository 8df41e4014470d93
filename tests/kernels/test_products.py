"""Products of layers are right however their operands lie, and lie as the BLAS is fast."""

from __future__ import annotations

import numpy as np
import pytest

from tapetensor.arrays.array import Array
from tapetensor.kernels.linear_algebra import linear
from tapetensor.kernels.numerics.along_axes import row_products


def _array(shape: tuple[int, ...], seed: int) -> Array:
    return np.random.default_rng(seed).standard_normal(shape)


def _layouts(x: Array) -> list[Array]:
    """Return the array as it is, in Fortran order, and with gaps."""
    apart = np.zeros((x.shape[0], 2 * x.shape[1]))[:, ::2]
    apart[...] = x
    return [x, np.asfortranarray(x), apart]


@pytest.mark.parametrize("sizes", [(48, 64, 96), (96, 64, 48), (2, 64, 96), (64, 64, 64)])
def test_a_layer_is_its_formula_however_its_operands_lie(sizes: tuple[int, int, int]) -> None:
    rows, inner, outer = sizes
    weight, bias, g = _array((outer, inner), 1), _array((outer,), 2), _array((rows, outer), 3)
    for x in _layouts(_array((rows, inner), 0)):
        for cotangent in _layouts(g):
            y, pullbacks = linear(x, weight, bias)
            to_x, to_weight, to_bias = [one(cotangent) for one in pullbacks if one is not None]

            np.testing.assert_allclose(y, x @ weight.T + bias, rtol=1e-12, atol=1e-12)
            np.testing.assert_allclose(to_x, g @ weight, rtol=1e-12, atol=1e-12)
            np.testing.assert_allclose(to_weight, g.T @ x, rtol=1e-12, atol=1e-12)
            np.testing.assert_allclose(to_bias, g.sum(axis=0), rtol=1e-12, atol=1e-12)


def test_a_large_product_that_is_wider_than_tall_lies_in_fortran_order() -> None:
    weight, bias = _array((96, 64), 1), _array((96,), 2)

    wide, _ = linear(_array((48, 64), 0), weight, bias)
    tall, _ = linear(_array((128, 64), 0), weight, bias)
    small, _ = linear(_array((8, 64), 0), weight, bias)

    assert wide.flags.f_contiguous
    assert tall.flags.c_contiguous
    assert small.flags.c_contiguous


def test_products_of_rows_are_the_same_however_they_lie() -> None:
    lhs, rhs = _array((20, 64), 0), _array((20, 64), 1)
    expected = (lhs * rhs).sum(axis=1, keepdims=True)
    for x in _layouts(lhs):
        for y in _layouts(rhs):
            np.testing.assert_allclose(row_products(x, y), expected, rtol=1e-12, atol=1e-12)
