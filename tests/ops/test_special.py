"""Special functions against the standard library's."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import losses
from tapetensor.kernels.numerics.special import erf, normal_cdf_of_single


@pytest.mark.parametrize(("dtype", "units"), [(np.float64, 4.0), (np.float32, 4.0)])
def test_erf_is_right_to_a_few_units_in_the_last_place(
    dtype: type[np.generic], units: float
) -> None:
    # All three ranges, their seams, tiny arguments, and beyond the last digit of 1.
    grid = np.concatenate((np.linspace(-7.0, 7.0, 4001), [0.46875, 4.0, 6.0, 1e-8, 1e-30]))
    x = grid.astype(dtype)

    y = erf(x)

    exact = np.array([math.erf(one) for one in x.tolist()])
    assert y.dtype == dtype
    np.testing.assert_array_less(np.abs(y - exact), units * np.spacing(np.abs(y)) + 1e-300)


def test_the_normal_distribution_function_of_float32_is_right_to_its_last_digit() -> None:
    x = np.concatenate((np.linspace(-9.0, 9.0, 40001), [1e-30, -1e-8, 5.6, -5.6, -40.0, 1e20]))
    x = x.astype(np.float32)

    phi = normal_cdf_of_single(x)

    exact = np.array([0.5 * math.erfc(-one / math.sqrt(2.0)) for one in x.tolist()])
    assert phi.dtype == np.float32
    np.testing.assert_array_less(np.abs(phi - exact), 3 * 2.0**-24)
    inner = x > -5.5
    np.testing.assert_allclose(phi[inner], exact[inner], rtol=2e-5)


@pytest.mark.parametrize("weights", [None, 2.0])
def test_logits_of_infinity_cost_nothing_where_they_are_right(weights: float | None) -> None:
    logits = tt.from_numpy([np.inf, -np.inf, np.inf, -np.inf], (4,))
    labels = tt.from_numpy([1.0, 0.0, 0.0, 1.0], (4,))
    options: Any = {} if weights is None else {"pos_weight": tt.full((4,), weights)}
    found = losses.binary_cross_entropy_with_logits(logits, labels, reduction="none", **options)

    np.testing.assert_array_equal(found.numpy(), [0.0, 0.0, np.inf, np.inf])


@pytest.mark.parametrize("scale", [1e30, 1e19, 1.0, 1e-25, 1e-30])
def test_the_standard_deviation_of_large_and_small_singles_is_finite(scale: float) -> None:
    x = tt.from_numpy(np.array([1.0, 2.0, 3.0, 4.0], np.float32) * np.float32(scale))
    deviation = x.trace().std()

    assert deviation.item() == pytest.approx(1.25**0.5 * scale, rel=1e-6)
    slopes = np.array([-1.5, -0.5, 0.5, 1.5]) / (4 * 1.25**0.5)
    np.testing.assert_allclose(deviation.backward()[x].numpy(), slopes, rtol=1e-6)


@pytest.mark.parametrize("large", [1e4, 1e9, 1e38])
def test_logaddexp_of_large_numbers_shares_the_gradient_between_them(large: float) -> None:
    x, y = tt.full((2,), large), tt.full((2,), large)

    grads = x.trace().logaddexp(y.trace()).sum().backward()

    np.testing.assert_array_equal(grads[x].numpy(), [0.5, 0.5])
    np.testing.assert_array_equal(grads[y].numpy(), [0.5, 0.5])
    of_number = x.trace().logaddexp(float(x.numpy()[0])).sum().backward()[x]
    np.testing.assert_array_equal(of_number.numpy(), [0.5, 0.5])
