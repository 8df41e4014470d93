"""Special functions, scans and attention, at the ends of what numbers can hold."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import losses
from tapetensor.arrays.array import Array
from tapetensor.kernels import scan
from tapetensor.kernels.numerics import recurrence
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


CHANNELS = 2


def by_steps(x: Array, a: Array, b: Array, g: Array) -> tuple[Array, Array, Array, Array]:
    """Return the states and the three gradients, one step at a time, from the definition."""
    h, adjoint = np.zeros_like(x), np.zeros_like(x)
    for t in range(len(x)):
        h[t] = b[t] * x[t] + (a[t] * h[t - 1] if t else 0.0)
    for t in reversed(range(len(x))):
        adjoint[t] = g[t] + (a[t + 1] * adjoint[t + 1] if t + 1 < len(x) else 0.0)
    before = np.concatenate([np.zeros((1, x.shape[1])), h[:-1]])
    return h, b * adjoint, adjoint * before, adjoint * x


@pytest.mark.parametrize("length", [1, 2, 63, 64, 65, 66, 129, 200])
def test_every_length_around_that_of_a_block(
    length: int, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recurrence, "_BLOCK_BYTES", 64 * CHANNELS * 8)
    x, b, g = (rng.standard_normal((length, CHANNELS)) for _ in range(3))
    a = rng.uniform(-1.0, 1.0, (length, CHANNELS))

    h, pullbacks = scan.ssm_scan(x, a, b)
    found = [pullback(g) for pullback in pullbacks if pullback is not None]

    for value, wanted in zip([h, *found], by_steps(x, a, b, g), strict=True):
        np.testing.assert_array_equal(value, wanted)


def test_the_pullbacks_share_one_backward_scan_but_not_between_cotangents(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs: list[int] = []
    run = recurrence.run_recurrence
    x, a, b, g, other = (rng.standard_normal((5, CHANNELS)) for _ in range(5))
    _, pullbacks = scan.ssm_scan(x, a, b)

    def counted(out: Array, values: Array, decay: Array) -> None:
        runs.append(len(values))
        run(out, values, decay)

    monkeypatch.setattr(recurrence, "run_recurrence", counted)
    for cotangent in (g, other, g):
        before = len(runs)
        found = [pullback(cotangent) for pullback in pullbacks if pullback is not None]

        assert len(runs) == before + 1
        for value, wanted in zip(found, by_steps(x, a, b, cotangent)[1:], strict=True):
            np.testing.assert_array_equal(value, wanted)


@pytest.mark.parametrize("size", [1e3, 1e18])
def test_large_scores_stay_finite(size: float) -> None:
    # Warnings are errors here, so an overflow on the way would fail the test.
    query = tt.full((2, 4), size)
    key = tt.from_numpy(np.eye(3, 4, dtype=np.float32) * np.float32(size))
    value = tt.from_numpy(np.arange(6.0, dtype=np.float32).reshape(3, 2))

    output = tt.scaled_dot_product_attention(query.trace(), key.trace(), value.trace())

    np.testing.assert_allclose(output.detach().numpy(), [[2.0, 3.0]] * 2)
    grads = output.sum().backward()
    assert all(np.isfinite(grads[one].numpy()).all() for one in (query, key, value))


def test_a_query_that_sees_no_key_gives_zeros_and_passes_no_gradient(
    rng: np.random.Generator,
) -> None:
    query, key, value = (tt.normal((2, 3), rng=rng) for _ in range(3))
    mask = tt.from_numpy(np.array([[True, True], [False, False]]))

    output = tt.scaled_dot_product_attention(query.trace(), key, value, mask=mask)

    assert output.detach().numpy()[1].tolist() == [0.0, 0.0, 0.0]
    gradient = output.sum().backward()[query].numpy()
    assert gradient[1].tolist() == [0.0, 0.0, 0.0]
    assert gradient[0].any()
