"""`LayerNorm`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import nn
from tapetensor.errors import DTypeError, ShapeError
from tapetensor.kernels.numerics import along_axes
from tests.nn.gradients import check_layer


def uneven(rng: np.random.Generator, eps: float = 1e-5) -> nn.LayerNorm[Any, np.float64]:
    """Return a layer of size 4 with a scale and a shift that differ from element to element."""
    layer: nn.LayerNorm[Any, np.float64] = nn.LayerNorm(4, np.float64, eps=eps)
    layer.weight = tt.from_numpy(rng.uniform(0.5, 2.0, 4))
    layer.bias = tt.from_numpy(rng.standard_normal(4))
    return layer


@pytest.mark.parametrize("leading", [(), (5,), (2, 3)])
def test_the_value_follows_the_formula(leading: tuple[int, ...], rng: np.random.Generator) -> None:
    layer = uneven(rng, eps=0.1)
    x = rng.standard_normal((*leading, 4))

    y = layer.forward(tt.from_numpy(x))

    mean, var = x.mean(axis=-1, keepdims=True), x.var(axis=-1, keepdims=True)
    wanted = (x - mean) / np.sqrt(var + 0.1) * layer.weight.numpy() + layer.bias.numpy()
    np.testing.assert_allclose(y.numpy(), wanted, rtol=1e-12)


@pytest.mark.parametrize("leading", [(), (5,), (2, 3), (0,)])
def test_the_gradients_with_an_uneven_scale(
    leading: tuple[int, ...], rng: np.random.Generator
) -> None:
    check_layer(uneven(rng), tt.from_numpy(rng.standard_normal((*leading, 4))), rng)


def test_the_gradients_of_long_rows(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(along_axes, "SHORT", 3)
    check_layer(uneven(rng), tt.from_numpy(rng.standard_normal((5, 4))), rng)


def test_weight_and_bias_start_as_one_and_zero() -> None:
    layer = nn.LayerNorm(3)

    assert layer.weight.numpy().tolist() == [1.0, 1.0, 1.0]
    assert layer.bias.numpy().tolist() == [0.0, 0.0, 0.0]
    assert layer.eps == 1e-5


def test_long_rows_are_as_exact_as_short_ones(rng: np.random.Generator) -> None:
    x = (1000 + rng.standard_normal((2, 1 << 16))).astype(np.float32)
    exact = x.astype(np.float64)
    wanted = (exact - exact.mean(-1, keepdims=True)) / exact.std(-1, keepdims=True)

    y = nn.LayerNorm(1 << 16).forward(tt.from_numpy(x, x.shape))

    np.testing.assert_allclose(y.numpy(), wanted, rtol=1e-4, atol=2e-4)


def test_both_tapes_give_the_same(rng: np.random.Generator) -> None:
    layer = uneven(rng)
    x = tt.from_numpy(rng.standard_normal((5, 4)))

    assert np.array_equal(layer.forward(x).numpy(), layer.forward(x.trace()).detach().numpy())


def test_one_feature_becomes_its_bias() -> None:
    layer = nn.LayerNorm(1)

    assert layer.forward(tt.full((3, 1), 7.0)).numpy().tolist() == [[0.0], [0.0], [0.0]]


@pytest.mark.parametrize("shape", [(5,), (2, 5), (), (4, 2)])
def test_another_size_is_refused(shape: Any) -> None:
    layer: Any = nn.LayerNorm(4)

    with pytest.raises(ShapeError, match="LayerNorm: the last axis of the input must have size 4"):
        layer.forward(tt.ones(shape))


def test_another_dtype_is_refused() -> None:
    layer: Any = nn.LayerNorm(4)

    with pytest.raises(DTypeError, match=r"LayerNorm: the input has dtype float64, .* float32"):
        layer.forward(tt.ones((2, 4), np.float64))
