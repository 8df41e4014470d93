"""`BatchNorm2d`: what differs from `BatchNorm1d`, with which it shares the rest."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import nn
from tapetensor.errors import ShapeError
from tests.nn.gradients import check_layer

SHAPES = [(4, 3, 2, 5), (1, 3, 1, 2), (3, 4, 5)]


def uneven(rng: np.random.Generator) -> nn.BatchNorm2d[Any, np.float64]:
    layer: nn.BatchNorm2d[Any, np.float64] = nn.BatchNorm2d(3, np.float64)
    layer.weight = tt.from_numpy(rng.uniform(0.5, 2.0, 3))
    layer.bias = tt.from_numpy(rng.standard_normal(3))
    layer.running_mean = tt.from_numpy(rng.standard_normal(3))
    layer.running_var = tt.from_numpy(rng.uniform(0.5, 2.0, 3))
    return layer


def normalized(layer: Any, x: Any, mean: Any, var: Any) -> Any:
    mean, var, weight, bias = (
        one[:, None, None] for one in (mean, var, layer.weight.numpy(), layer.bias.numpy())
    )
    return (x - mean) / np.sqrt(var + layer.eps) * weight + bias


@pytest.mark.parametrize("shape", SHAPES)
def test_training_uses_the_batch_and_moves_the_statistics(
    shape: Any, rng: np.random.Generator
) -> None:
    layer, x = uneven(rng), rng.standard_normal(shape)
    axes = (0, 2, 3) if x.ndim == 4 else (1, 2)
    mean, var = layer.running_mean.numpy(), layer.running_var.numpy()

    y = layer.forward(tt.from_numpy(x).trace())

    wanted = normalized(layer, x, x.mean(axis=axes), x.var(axis=axes))
    np.testing.assert_allclose(y.detach().numpy(), wanted, rtol=1e-9, atol=1e-12)
    assert y.owns_tape
    np.testing.assert_allclose(
        layer.running_mean.numpy(), 0.9 * mean + 0.1 * x.mean(axis=axes), rtol=1e-12
    )
    np.testing.assert_allclose(
        layer.running_var.numpy(), 0.9 * var + 0.1 * x.var(axis=axes, ddof=1), rtol=1e-12
    )


@pytest.mark.parametrize("shape", [*SHAPES, (0, 3, 2, 2), (1, 3, 1, 1)])
def test_inference_uses_the_statistics_and_leaves_them_alone(
    shape: Any, rng: np.random.Generator
) -> None:
    layer, x = uneven(rng), rng.standard_normal(shape)
    before = layer.running_mean.id, layer.running_var.id

    y = layer.forward(tt.from_numpy(x))

    wanted = normalized(layer, x, layer.running_mean.numpy(), layer.running_var.numpy())
    np.testing.assert_allclose(y.numpy(), wanted, rtol=1e-10, atol=1e-12)
    assert (layer.running_mean.id, layer.running_var.id) == before
    assert not y.owns_tape


@pytest.mark.parametrize("shape", [(4, 3, 2, 5), (3, 4, 5)])
def test_the_gradients_of_training(shape: Any, rng: np.random.Generator) -> None:
    check_layer(uneven(rng), tt.from_numpy(rng.standard_normal(shape)), rng)


@pytest.mark.parametrize("shape", [(1, 3, 1, 1), (0, 3, 2, 2), (3, 1, 1)])
def test_one_value_per_channel_is_refused_in_training(shape: Any, rng: np.random.Generator) -> None:
    layer = uneven(rng)
    before, x = layer.running_mean.id, tt.ones(shape, np.float64).trace()

    with pytest.raises(ShapeError, match="BatchNorm2d: a variance needs two values per channel"):
        layer.forward(x)
    assert layer.running_mean.id == before
    assert x.owns_tape
