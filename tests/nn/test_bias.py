"""Layers with one weight: a matrix, a bias, a slope; and chance that the type states."""

from __future__ import annotations

from typing import Any
from typing import Literal as L

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import nn
from tapetensor.errors import ArgumentTypeError, ArgumentValueError, DTypeError, ShapeError
from tests.nn.gradients import check_layer

LEADING: list[tuple[int, ...]] = [(), (5,), (2, 3), (0,)]


@pytest.mark.parametrize("leading", LEADING)
def test_a_linear_layer_without_bias_is_a_product(
    leading: tuple[int, ...], rng: np.random.Generator
) -> None:
    layer = nn.UnbiasedLinear(3, 4, np.float64, rng=rng)
    x = tt.from_numpy(rng.standard_normal((*leading, 3)))

    np.testing.assert_allclose(layer.forward(x).numpy(), x.numpy() @ layer.weight.numpy().T)
    assert list(layer.parameters()) == ["weight"]
    check_layer(layer, x, rng)


def test_its_weight_starts_as_that_of_linear() -> None:
    unbiased = nn.UnbiasedLinear(30, 4, rng=np.random.default_rng(1))
    linear = nn.Linear(30, 4, rng=np.random.default_rng(1))

    assert np.array_equal(unbiased.weight.numpy(), linear.weight.numpy())


@pytest.mark.parametrize("leading", LEADING)
def test_a_bias_is_added_along_the_last_axis(
    leading: tuple[int, ...], rng: np.random.Generator
) -> None:
    layer: nn.Bias1d[Any, np.float64] = nn.Bias1d(3, np.float64)
    assert layer.bias.numpy().tolist() == [0.0, 0.0, 0.0]
    layer.bias = tt.from_numpy(rng.standard_normal(3))
    x = tt.from_numpy(rng.standard_normal((*leading, 3)))

    np.testing.assert_array_equal(layer.forward(x).numpy(), x.numpy() + layer.bias.numpy())
    check_layer(layer, x, rng)


@pytest.mark.parametrize("shape", [(3, 4), (5,), (), (0, 2)])
def test_one_slope_for_all(shape: Any, rng: np.random.Generator) -> None:
    layer = nn.PReLU(np.float64, init=0.1)
    x = tt.from_numpy(rng.standard_normal(shape))

    wanted = np.where(x.numpy() > 0, x.numpy(), 0.1 * x.numpy())
    np.testing.assert_array_equal(layer.forward(x).numpy(), wanted)
    assert layer.weight.shape == (1,)
    check_layer(layer, x, rng)


@pytest.mark.parametrize("shape", [(4, 2), (4, 2, 3), (2, 2, 3, 1), (0, 2)])
def test_one_slope_per_channel(shape: Any, rng: np.random.Generator) -> None:
    layer: nn.PReLU1d[Any, np.float64] = nn.PReLU1d(2, np.float64)
    assert layer.weight.numpy().tolist() == [0.25, 0.25]
    layer.weight = tt.from_numpy(np.array([0.1, -0.3]))
    x = tt.from_numpy(rng.standard_normal(shape))

    values = np.moveaxis(x.numpy(), 1, -1)
    wanted = np.moveaxis(np.where(values > 0, values, values * layer.weight.numpy()), -1, 1)
    np.testing.assert_array_equal(layer.forward(x).numpy(), wanted)
    check_layer(layer, x, rng)


def test_one_in_n_is_dropped_and_the_type_says_it() -> None:
    drop = tt.build(nn.DropoutOneIn[L[4]], rng=np.random.default_rng(0))
    x = tt.ones((10_000,))

    y = drop.forward(x.trace())

    assert drop.forward(x) is x
    np.testing.assert_allclose((y.detach().numpy() == 0.0).mean(), 0.25, atol=0.02)
    assert set(y.detach().numpy().ravel().tolist()) == {0.0, float(np.float32(4.0 / 3.0))}
    assert np.array_equal(y.backward(x)[x].numpy(), y.detach().numpy())


@pytest.mark.parametrize(
    ("layer", "shape", "message"),
    [
        (nn.UnbiasedLinear(3, 2, rng=np.random.default_rng(0)), (2, 4), "the last axis"),
        (nn.Bias1d(3), (2, 4), "the last axis of the input must have size 3"),
        (nn.Bias1d(3), (), "the last axis"),
        (nn.PReLU1d(3), (3,), r"axis 1 of the input must have size 3, got shape \(3,\)"),
        (nn.PReLU1d(3), (3, 2), "axis 1"),
    ],
)
def test_another_size_is_refused(layer: Any, shape: Any, message: str) -> None:
    x = tt.ones(shape).trace()

    with pytest.raises(ShapeError, match=rf"{type(layer).__name__}: .*{message}"):
        layer.forward(x)
    assert x.owns_tape


@pytest.mark.parametrize("layer", [nn.Bias1d(3), nn.PReLU(), nn.PReLU1d(3)])
def test_another_dtype_and_an_array_are_refused(layer: Any) -> None:
    name = type(layer).__name__
    with pytest.raises(DTypeError, match=f"{name}: the input has dtype float64, .* float32"):
        layer.forward(tt.ones((3, 3, 3, 3), np.float64))
    with pytest.raises(ArgumentTypeError, match=f"{name}: the input must be a tensor"):
        layer.forward(np.ones((3, 3, 3, 3), np.float32))


def test_a_slope_is_a_finite_number() -> None:
    with pytest.raises(ArgumentValueError, match="PReLU1d: init must be finite, got nan"):
        nn.PReLU1d(2, init=float("nan"))
