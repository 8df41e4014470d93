"""`BatchNorm1d`: training with a tape, inference without."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import nn
from tapetensor.errors import DTypeError, ShapeError
from tapetensor.kernels import normalization
from tapetensor.tensor.apply import apply
from tapetensor.testing import check_grad
from tests.nn.gradients import check_layer

SHAPES: list[tuple[int, ...]] = [(5, 3), (2, 3), (4, 3, 2), (1, 3, 2)]


def uneven(
    rng: np.random.Generator, eps: float = 1e-5, momentum: float = 0.1
) -> nn.BatchNorm1d[Any, np.float64]:
    """Return a layer of three channels that all differ."""
    layer: nn.BatchNorm1d[Any, np.float64]
    layer = nn.BatchNorm1d(3, np.float64, eps=eps, momentum=momentum)
    layer.weight = tt.from_numpy(rng.uniform(0.5, 2.0, 3))
    layer.bias = tt.from_numpy(rng.standard_normal(3))
    layer.running_mean = tt.from_numpy(rng.standard_normal(3))
    layer.running_var = tt.from_numpy(rng.uniform(0.5, 2.0, 3))
    return layer


def normalized(layer: Any, x: Any, mean: Any, var: Any) -> Any:
    per_channel = (1, 3, *[1] * (x.ndim - 2))
    mean, var, weight, bias = (
        np.reshape(one, per_channel)
        for one in (mean, var, layer.weight.numpy(), layer.bias.numpy())
    )
    return (x - mean) / np.sqrt(var + layer.eps) * weight + bias


def statistics(layer: Any) -> tuple[bytes, bytes]:
    return layer.running_mean.numpy().tobytes(), layer.running_var.numpy().tobytes()


@pytest.mark.parametrize("shape", SHAPES)
def test_training_normalizes_by_the_biased_variance_of_the_batch(
    shape: tuple[int, ...], rng: np.random.Generator
) -> None:
    layer, x = uneven(rng), rng.standard_normal(shape)
    axes = (0, 2)[: x.ndim - 1]

    y = layer.forward(tt.from_numpy(x).trace())

    wanted = normalized(layer, x, x.mean(axis=axes), x.var(axis=axes, ddof=0))
    np.testing.assert_allclose(y.detach().numpy(), wanted, rtol=1e-10)
    assert y.owns_tape


@pytest.mark.parametrize("momentum", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("shape", SHAPES)
def test_training_moves_the_statistics_towards_the_unbiased_ones(
    shape: tuple[int, ...], momentum: float, rng: np.random.Generator
) -> None:
    layer, x = uneven(rng, momentum=momentum), rng.standard_normal(shape)
    axes = (0, 2)[: x.ndim - 1]
    mean, var = layer.running_mean.numpy(), layer.running_var.numpy()

    layer.forward(tt.from_numpy(x).trace())

    wanted_mean = (1 - momentum) * mean + momentum * x.mean(axis=axes)
    wanted_var = (1 - momentum) * var + momentum * x.var(axis=axes, ddof=1)
    np.testing.assert_allclose(layer.running_mean.numpy(), wanted_mean, rtol=1e-12)
    np.testing.assert_allclose(layer.running_var.numpy(), wanted_var, rtol=1e-12)
    assert layer.running_mean.dtype == np.float64


@pytest.mark.parametrize("shape", [*SHAPES, (1, 3), (0, 3)])
def test_inference_uses_the_statistics_and_leaves_them_alone(
    shape: tuple[int, ...], rng: np.random.Generator
) -> None:
    layer, x = uneven(rng), rng.standard_normal(shape)
    before = statistics(layer)

    y = layer.forward(tt.from_numpy(x))

    wanted = normalized(layer, x, layer.running_mean.numpy(), layer.running_var.numpy())
    np.testing.assert_allclose(y.numpy(), wanted, rtol=1e-12)
    assert statistics(layer) == before
    assert not y.owns_tape


@pytest.mark.parametrize("shape", SHAPES)
def test_the_gradients_of_training(shape: tuple[int, ...], rng: np.random.Generator) -> None:
    layer = uneven(rng)
    if shape == (2, 3):
        # Two values are always one above and one below: a large eps leaves them a derivative.
        layer.eps = 1.0

    check_layer(layer, tt.from_numpy(rng.standard_normal(shape)), rng)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_gradients_of_inference(shape: tuple[int, ...], rng: np.random.Generator) -> None:
    layer = uneven(rng)

    # The layer itself takes the statistics of the batch for a traced input: so its kernel.
    def infer(x: Any, weight: Any, bias: Any) -> Any:
        given = (layer.running_mean, layer.running_var)
        return apply(normalization.batch_norm_inference, (x, weight, bias, *given), (1e-5,))

    x = tt.from_numpy(rng.standard_normal(shape))
    check_grad(infer, x, layer.weight, layer.bias, rng=rng)


def test_many_batches_lead_the_statistics_to_those_of_the_data(rng: np.random.Generator) -> None:
    layer = nn.BatchNorm1d(1)
    for _ in range(100):
        batch = (rng.standard_normal((32, 1)) * 3.0 + 5.0).astype(np.float32)
        layer.forward(tt.from_numpy(batch, (32, 1)).trace())

    np.testing.assert_allclose(layer.running_mean.numpy(), [5.0], atol=0.5)
    np.testing.assert_allclose(layer.running_var.numpy(), [9.0], atol=1.5)


def test_a_live_tape_does_not_see_later_updates(rng: np.random.Generator) -> None:
    x, other = (tt.from_numpy(rng.standard_normal((5, 3))) for _ in range(2))

    def gradient(*, disturb: bool) -> Any:
        layer = uneven(np.random.default_rng(1))
        y = layer.forward(x.trace()).square().sum()
        if disturb:
            layer.forward(other.trace())
            layer.weight = tt.zeros((3,), np.float64)
        return y.backward()[x].numpy()

    assert np.array_equal(gradient(disturb=False), gradient(disturb=True))


def test_statistics_are_buffers_and_no_parameters() -> None:
    layer = nn.BatchNorm1d(3)

    assert list(layer.parameters()) == ["weight", "bias"]
    assert list(layer.buffers()) == ["running_mean", "running_var"]
    assert layer.running_mean.numpy().tolist() == [0.0, 0.0, 0.0]
    assert layer.running_var.numpy().tolist() == [1.0, 1.0, 1.0]
    assert (layer.eps, layer.momentum) == (1e-5, 0.1)


@pytest.mark.parametrize("shape", [(1, 3), (0, 3), (1, 3, 1), (4, 3, 0)])
def test_a_batch_of_one_is_refused_in_training(shape: Any, rng: np.random.Generator) -> None:
    layer = uneven(rng)
    before, x = statistics(layer), tt.ones(shape, np.float64).trace()

    message = "BatchNorm1d: a variance needs two values per channel or more"
    with pytest.raises(ShapeError, match=message):
        layer.forward(x)
    assert statistics(layer) == before
    assert x.owns_tape


@pytest.mark.parametrize("shape", [(5, 4), (3,), (), (3, 5), (2, 3, 4, 5)])
@pytest.mark.parametrize("traced", [False, True])
def test_another_shape_is_refused(shape: Any, traced: bool, rng: np.random.Generator) -> None:
    layer: Any = uneven(rng)
    before, plain = statistics(layer), tt.ones(shape, np.float64)
    x: Any = plain.trace() if traced else plain

    message = r"BatchNorm1d: the input must have shape \(B, 3\) or \(B, 3, L\), got"
    with pytest.raises(ShapeError, match=message):
        layer.forward(x)
    assert statistics(layer) == before
    assert x.owns_tape is traced


@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_another_dtype_is_refused(dtype: Any, rng: np.random.Generator) -> None:
    layer: Any = uneven(rng)
    before = statistics(layer)

    with pytest.raises(DTypeError, match="BatchNorm1d: the input has dtype"):
        layer.forward(tt.ones((5, 3), dtype).trace())
    assert statistics(layer) == before
