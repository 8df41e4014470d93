"""Layers that normalize, against their formulas: by features, by groups, and by the batch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import nn
from tapetensor.errors import ArgumentValueError, ShapeError
from tapetensor.kernels import normalization
from tapetensor.kernels.numerics import along_axes as sums
from tapetensor.tensor.apply import apply
from tapetensor.testing import check_grad
from tests.nn.gradients import check_layer

SHAPES: list[tuple[int, ...]] = [(5, 4), (4, 4, 2), (1, 4, 2), (4, 4, 2, 5), (1, 4, 1, 2)]


def uneven(layer: Any, rng: np.random.Generator) -> Any:
    """Return the layer with a scale, a shift and statistics that differ between channels."""
    layer.weight = tt.from_numpy(rng.uniform(0.5, 2.0, 4))
    if "bias" in layer.parameters():
        layer.bias = tt.from_numpy(rng.standard_normal(4))
    if layer.buffers():
        layer.running_mean = tt.from_numpy(rng.standard_normal(4))
        layer.running_var = tt.from_numpy(rng.uniform(0.5, 2.0, 4))
    return layer


def batch_norm(rng: np.random.Generator, ndim: int = 2, **options: float) -> Any:
    kind = nn.BatchNorm2d if ndim == 4 else nn.BatchNorm1d
    return uneven(kind(4, np.float64, **options), rng)


def scaled(layer: Any, x: Any, mean: Any, var: Any, axis: int) -> Any:
    """Return what is normalized, times the weight and plus the bias along an axis."""
    along = [1] * x.ndim
    along[axis] = 4
    weight = layer.weight.numpy().reshape(along)
    bias = layer.bias.numpy().reshape(along) if "bias" in layer.parameters() else 0.0
    return (x - mean) / np.sqrt(var + layer.eps) * weight + bias


def of_batch(layer: Any, x: Any, mean: Any, var: Any) -> Any:
    along = (1, 4, *[1] * (x.ndim - 2))
    return scaled(layer, x, mean.reshape(along), var.reshape(along), 1)


def over_batch(x: Any) -> tuple[int, ...]:
    return (0, *range(2, x.ndim))


def statistics(layer: Any) -> tuple[bytes, bytes]:
    return layer.running_mean.numpy().tobytes(), layer.running_var.numpy().tobytes()


@pytest.mark.parametrize("leading", [(), (5,), (2, 3)])
def test_features_are_normalized_by_those_beside_them(
    leading: tuple[int, ...], rng: np.random.Generator
) -> None:
    layer = uneven(nn.LayerNorm(4, np.float64, eps=0.1), rng)
    by_square = uneven(nn.RMSNorm(4, np.float64, eps=0.1), rng)
    x = rng.standard_normal((*leading, 4))

    mean, var = x.mean(axis=-1, keepdims=True), x.var(axis=-1, keepdims=True)
    squares = (x * x).mean(axis=-1, keepdims=True)
    for one, wanted in (
        (layer, scaled(layer, x, mean, var, -1)),
        (by_square, scaled(by_square, x, 0.0, squares, -1)),
    ):
        y = one.forward(tt.from_numpy(x))
        np.testing.assert_allclose(y.numpy(), wanted, rtol=1e-12)
        check_layer(one, tt.from_numpy(x), rng)


@pytest.mark.parametrize("groups", [1, 2, 4])
@pytest.mark.parametrize("rest", [(), (5,), (2, 3)])
def test_channels_are_normalized_by_their_group(
    groups: int, rest: tuple[int, ...], rng: np.random.Generator
) -> None:
    layer = uneven(nn.GroupNorm(groups, 4, np.float64, eps=0.1), rng)
    x = rng.standard_normal((3, 4, *rest))
    parts = x.reshape(3, groups, -1)

    y = layer.forward(tt.from_numpy(x))

    along = (3, 4, *[1] * len(rest))
    mean, var = (
        np.repeat(one, 4 // groups, axis=1).reshape(along)
        for one in (parts.mean(axis=-1), parts.var(axis=-1))
    )
    np.testing.assert_allclose(y.numpy(), scaled(layer, x, mean, var, 1), rtol=1e-12)
    check_layer(layer, tt.from_numpy(x), rng)


@pytest.mark.parametrize("momentum", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("shape", SHAPES)
def test_training_normalizes_by_the_batch_and_moves_the_statistics_by_its_unbiased_variance(
    shape: tuple[int, ...], momentum: float, rng: np.random.Generator
) -> None:
    layer, x = batch_norm(rng, len(shape), momentum=momentum), rng.standard_normal(shape)
    axes = over_batch(x)
    mean, var = layer.running_mean.numpy(), layer.running_var.numpy()

    y = layer.forward(tt.from_numpy(x).trace())

    wanted = of_batch(layer, x, x.mean(axis=axes), x.var(axis=axes, ddof=0))
    np.testing.assert_allclose(y.detach().numpy(), wanted, rtol=1e-9, atol=1e-12)
    wanted_mean = (1 - momentum) * mean + momentum * x.mean(axis=axes)
    wanted_var = (1 - momentum) * var + momentum * x.var(axis=axes, ddof=1)
    np.testing.assert_allclose(layer.running_mean.numpy(), wanted_mean, rtol=1e-12)
    np.testing.assert_allclose(layer.running_var.numpy(), wanted_var, rtol=1e-12)
    assert layer.running_mean.dtype == np.float64
    check_layer(layer, tt.from_numpy(x), rng)


@pytest.mark.parametrize("shape", [*SHAPES, (1, 4), (0, 4), (0, 4, 2, 2)])
def test_inference_uses_the_statistics_and_leaves_them_alone(
    shape: tuple[int, ...], rng: np.random.Generator
) -> None:
    layer, x = batch_norm(rng, len(shape)), rng.standard_normal(shape)
    before = statistics(layer)

    y = layer.forward(tt.from_numpy(x))

    wanted = of_batch(layer, x, layer.running_mean.numpy(), layer.running_var.numpy())
    np.testing.assert_allclose(y.numpy(), wanted, rtol=1e-10, atol=1e-12)
    assert statistics(layer) == before
    assert not y.owns_tape


def test_an_image_may_stand_without_a_batch(rng: np.random.Generator) -> None:
    layer, x = batch_norm(rng, 4), rng.standard_normal((4, 3, 5))

    y = layer.forward(tt.from_numpy(x).trace())

    wanted = of_batch(layer, x[None], x.mean(axis=(1, 2)), x.var(axis=(1, 2)))[0]
    np.testing.assert_allclose(y.detach().numpy(), wanted, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("shape", SHAPES[:3])
def test_the_gradients_of_inference(shape: tuple[int, ...], rng: np.random.Generator) -> None:
    layer = batch_norm(rng)

    # The layer itself takes the statistics of the batch for a traced input: so its kernel.
    def infer(x: Any, weight: Any, bias: Any) -> Any:
        given = (layer.running_mean, layer.running_var)
        return apply(normalization.batch_norm_inference, (x, weight, bias, *given), (1e-5,))

    x = tt.from_numpy(rng.standard_normal(shape))
    check_grad(infer, x, layer.weight, layer.bias, rng=rng)


def test_a_live_tape_does_not_see_later_updates(rng: np.random.Generator) -> None:
    x, other = (tt.from_numpy(rng.standard_normal((5, 4))) for _ in range(2))

    def gradient(*, disturb: bool) -> Any:
        layer = batch_norm(np.random.default_rng(1))
        y = layer.forward(x.trace()).square().sum()
        if disturb:
            layer.forward(other.trace())
            layer.weight = tt.zeros((4,), np.float64)
        return y.backward()[x].numpy()

    assert np.array_equal(gradient(disturb=False), gradient(disturb=True))


@pytest.mark.parametrize("layer", [nn.LayerNorm(3), nn.RMSNorm(3), nn.BatchNorm1d(3)])
def test_a_scale_starts_as_one_and_a_shift_as_zero(layer: Any) -> None:
    names = ["weight"] if isinstance(layer, nn.RMSNorm) else ["weight", "bias"]
    assert list(layer.parameters()) == names
    assert layer.weight.numpy().tolist() == [1.0, 1.0, 1.0]
    assert names == ["weight"] or layer.bias.numpy().tolist() == [0.0, 0.0, 0.0]
    if layer.buffers():
        assert list(layer.buffers()) == ["running_mean", "running_var"]
        assert layer.running_mean.numpy().tolist() == [0.0, 0.0, 0.0]
        assert layer.running_var.numpy().tolist() == [1.0, 1.0, 1.0]
        assert (layer.eps, layer.momentum) == (1e-5, 0.1)


def test_long_rows_are_as_exact_as_short_ones(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = (1000 + rng.standard_normal((2, 1 << 16))).astype(np.float32)
    exact = x.astype(np.float64)
    wanted = (exact - exact.mean(-1, keepdims=True)) / exact.std(-1, keepdims=True)

    y = nn.LayerNorm(1 << 16).forward(tt.from_numpy(x, x.shape))

    np.testing.assert_allclose(y.numpy(), wanted, rtol=1e-4, atol=2e-4)
    monkeypatch.setattr(sums, "SHORT", 3)
    layer = uneven(nn.LayerNorm(4, np.float64), rng)
    check_layer(layer, tt.from_numpy(rng.standard_normal((5, 4))), rng)


def test_zeros_stay_zeros_and_one_feature_becomes_its_bias() -> None:
    layer = nn.RMSNorm(2)
    x = tt.zeros((1, 2))

    grads = layer.forward(x.trace()).sum().backward(wrt=x)

    np.testing.assert_allclose(grads[x].numpy(), [[1e3, 1e3]], rtol=1e-6)
    alone = nn.LayerNorm(1)
    assert alone.forward(tt.full((3, 1), 7.0)).numpy().tolist() == [[0.0], [0.0], [0.0]]


def test_groups_that_do_not_divide_the_channels_are_refused() -> None:
    with pytest.raises(ArgumentValueError, match="GroupNorm: 3 groups do not divide"):
        nn.GroupNorm(3, 4)


@pytest.mark.parametrize("shape", [(1, 4), (0, 4), (1, 4, 1), (4, 4, 0), (1, 4, 1, 1), (4, 1, 1)])
def test_a_batch_of_one_value_is_refused_in_training(shape: Any, rng: np.random.Generator) -> None:
    layer = batch_norm(rng, 4 if shape[-1:] == (1,) and shape != (1, 4, 1) else 2)
    before, x = statistics(layer), tt.ones(shape, np.float64).trace()

    with pytest.raises(ShapeError, match=r"BatchNorm.d: a variance needs two values per channel"):
        layer.forward(x)
    assert statistics(layer) == before
    assert x.owns_tape
