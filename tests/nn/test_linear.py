"""Layers with one weight or two: values at every rank, and how they start."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import nn
from tapetensor.errors import ArgumentValueError
from tests.nn.gradients import check_layer

LEADING: list[tuple[int, ...]] = [(), (5,), (2, 5), (2, 1, 4), (0,), (2, 0)]


@pytest.mark.parametrize("leading", LEADING)
def test_the_value_is_a_product_and_a_shift(
    leading: tuple[int, ...], rng: np.random.Generator
) -> None:
    layer = nn.Linear(3, 4, np.float64, rng=rng)
    unbiased = nn.UnbiasedLinear(3, 4, np.float64, rng=rng)
    shift: nn.Bias1d[Any, np.float64] = nn.Bias1d(3, np.float64)
    shift.bias = tt.from_numpy(rng.standard_normal(3))
    x = tt.from_numpy(rng.standard_normal((*leading, 3)))

    y = layer.forward(x)

    assert y.shape == (*leading, 4)
    wanted = x.numpy() @ layer.weight.numpy().T + layer.bias.numpy()
    np.testing.assert_allclose(y.numpy(), wanted, rtol=1e-13)
    np.testing.assert_allclose(unbiased.forward(x).numpy(), x.numpy() @ unbiased.weight.numpy().T)
    np.testing.assert_array_equal(shift.forward(x).numpy(), x.numpy() + shift.bias.numpy())


def test_weight_and_bias_start_as_those_of_pytorch(rng: np.random.Generator) -> None:
    layer = nn.Linear(100, 400, rng=rng)
    bound = 1.0 / np.sqrt(100.0)

    for tensor in (layer.weight, layer.bias):
        values = tensor.numpy()
        assert values.dtype == np.float32
        assert 0.97 * bound < np.abs(values).max() <= bound
        # The standard deviation of a uniform distribution; 400 samples leave it 10 %.
        np.testing.assert_allclose(values.std(), bound / np.sqrt(3.0), rtol=0.1)
        assert abs(values.mean()) < 0.1 * bound


def test_what_has_no_bias_or_nothing_else_starts_as_linear_and_as_zeros() -> None:
    unbiased = nn.UnbiasedLinear(30, 4, rng=np.random.default_rng(1))
    linear = nn.Linear(30, 4, rng=np.random.default_rng(1))

    assert np.array_equal(unbiased.weight.numpy(), linear.weight.numpy())
    assert list(unbiased.parameters()) == ["weight"]
    assert nn.Bias1d(3).bias.numpy().tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("shape", [(4, 2), (4, 2, 3), (2, 2, 3, 1), (0, 2)])
def test_a_slope_is_one_for_all_or_one_per_channel(shape: Any, rng: np.random.Generator) -> None:
    one = nn.PReLU(np.float64, init=0.1)
    layer: nn.PReLU1d[Any, np.float64] = nn.PReLU1d(2, np.float64)
    assert layer.weight.numpy().tolist() == [0.25, 0.25]
    layer.weight = tt.from_numpy(np.array([0.1, -0.3]))
    x = tt.from_numpy(rng.standard_normal(shape))

    wanted = np.where(x.numpy() > 0, x.numpy(), 0.1 * x.numpy())
    np.testing.assert_array_equal(one.forward(x).numpy(), wanted)
    assert one.weight.shape == (1,)
    values = np.moveaxis(x.numpy(), 1, -1)
    wanted = np.moveaxis(np.where(values > 0, values, values * layer.weight.numpy()), -1, 1)
    np.testing.assert_array_equal(layer.forward(x).numpy(), wanted)
    check_layer(layer, x, rng)


def test_a_slope_is_a_finite_number() -> None:
    with pytest.raises(ArgumentValueError, match="PReLU1d: init must be finite, got nan"):
        nn.PReLU1d(2, init=float("nan"))
