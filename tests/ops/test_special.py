"""Special functions against the standard library's."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tapetensor.kernels.special import erf


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


def test_erf_of_the_ends_of_the_line() -> None:
    y = erf(np.array([0.0, -0.0, np.inf, -np.inf, np.nan]))

    np.testing.assert_array_equal(y, [0.0, 0.0, 1.0, -1.0, np.nan])
    np.testing.assert_array_equal(np.signbit(y[:2]), [False, True])
