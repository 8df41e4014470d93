"""Layers that pool, stretch, flatten and shift images."""

from __future__ import annotations

from typing import Any
from typing import Literal as L

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import nn
from tapetensor.errors import ArgumentTypeError, ArgumentValueError
from tests.nn.gradients import check_layer
from tests.ops import windows_reference as reference

_MEAN = reference.pool2d(lambda seen: seen.mean(axis=(-2, -1)), 0.0)
_MAX = reference.pool2d(lambda seen: seen.max(axis=(-2, -1)), -np.inf)
_MIN = reference.pool2d(lambda seen: seen.min(axis=(-2, -1)), np.inf)

# A layer, and what it does to an array.
LAYERS: list[tuple[nn.Module, Any]] = [
    (nn.AvgPool2d(2), lambda x: _MEAN(x, 2)),
    (nn.AvgPool2d(3, 2, 1), lambda x: _MEAN(x, 3, stride=2, padding=1)),
    (nn.MaxPool2d(2), lambda x: _MAX(x, 2)),
    (nn.MaxPool2d(3, stride=1, padding=1), lambda x: _MAX(x, 3, stride=1, padding=1)),
    (nn.MinPool2d(2), lambda x: _MIN(x, 2)),
    (nn.MinPool2d(2, stride=3), lambda x: _MIN(x, 2, stride=3)),
    (nn.GlobalAvgPool2d(), lambda x: x.mean(axis=(-2, -1))),
    (nn.GlobalMaxPool2d(), lambda x: x.max(axis=(-2, -1))),
    (nn.GlobalMinPool2d(), lambda x: x.min(axis=(-2, -1))),
    (nn.Upscale2d(7, 12), lambda x: reference.upscale2d(x, (7, 12))),
    (nn.Upscale2d(7, 6, "bilinear"), lambda x: reference.upscale2d(x, (7, 6), "bilinear")),
    (nn.Upscale2dBy(2), lambda x: x.repeat(2, axis=-1).repeat(2, axis=-2)),
    (nn.Upscale2dBy(3, mode="bilinear"), lambda x: reference.upscale2d(x, (15, 18), "bilinear")),
    (
        nn.Upscale2d(7, 6, "bicubic", align_corners=False),
        lambda x: reference.upscale2d(x, (7, 6), "bicubic", align_corners=False),
    ),
    (nn.Flatten(), lambda x: x.reshape(x.shape[0], -1)),
]
NAMES = [f"{type(layer).__name__}-{number}" for number, (layer, _) in enumerate(LAYERS)]


@pytest.mark.parametrize("shape", [(2, 3, 5, 6), (3, 5, 6)])
@pytest.mark.parametrize(("layer", "wanted"), LAYERS, ids=NAMES)
def test_value_and_gradient(layer: Any, wanted: Any, shape: Any, rng: np.random.Generator) -> None:
    x = tt.from_numpy(rng.standard_normal(shape))

    y = layer.forward(x)

    np.testing.assert_allclose(y.numpy(), wanted(x.numpy()), rtol=1e-12, atol=1e-14)
    assert y.shape == wanted(x.numpy()).shape
    np.testing.assert_array_equal(layer.forward(x.trace()).detach().numpy(), y.detach().numpy())
    check_layer(layer, x, rng)


@pytest.mark.parametrize("shape", [(2, 3, 5, 6), (3, 5, 6), (0, 3, 2, 2)])
def test_a_bias_shifts_channels_and_is_trained(shape: Any, rng: np.random.Generator) -> None:
    layer: nn.Bias2d[Any, np.float64] = nn.Bias2d(3, np.float64)
    assert layer.bias.numpy().tolist() == [0.0, 0.0, 0.0]
    layer.bias = tt.from_numpy(rng.standard_normal(3))
    x = tt.from_numpy(rng.standard_normal(shape))

    wanted = x.numpy() + layer.bias.numpy()[:, None, None]
    np.testing.assert_array_equal(layer.forward(x).numpy(), wanted)
    check_layer(layer, x, rng)


def test_build_reads_the_numbers_from_the_annotation(rng: np.random.Generator) -> None:
    class Net(nn.Module):
        halve: nn.MaxPool2d[L[2]]
        overlap: nn.AvgPool2d[L[3], L[2], L[1]]
        least: nn.MinPool2d[L[4], L[1]]
        to_size: nn.Upscale2d[L[9], L[7]]
        double: nn.Upscale2dBy[L[2]] = nn.options(mode="bilinear")
        bias: nn.Bias2d[L[3]]
        norm: nn.BatchNorm2d[L[3]]
        mean: nn.GlobalAvgPool2d
        flat: nn.Flatten

    net = tt.build(Net, rng=rng)

    assert (net.halve.kernel_size, net.halve.stride, net.halve.padding) == (2, 2, 0)
    assert (net.overlap.kernel_size, net.overlap.stride, net.overlap.padding) == (3, 2, 1)
    assert (net.least.kernel_size, net.least.stride, net.least.padding) == (4, 1, 0)
    assert (net.to_size.height, net.to_size.width, net.to_size.mode) == (9, 7, "nearest")
    assert (net.double.factor, net.double.mode) == (2, "bilinear")
    assert net.norm.running_var.shape == (3,)
    assert repr(nn.MaxPool2d((2, 1))) == (
        "MaxPool2d(kernel_size=(2, 1), stride=(2, 1), padding=0, dilation=1)"
    )
    assert repr(net.overlap) == "AvgPool2d(kernel_size=3, stride=2, padding=1, dilation=1)"


@pytest.mark.parametrize("cls", [nn.AvgPool2d, nn.MaxPool2d, nn.MinPool2d])
def test_numbers_that_no_pooling_can_have_are_refused(cls: Any) -> None:
    name = cls.__name__
    with pytest.raises(ArgumentValueError, match=f"{name}: stride must be > 0, got 0"):
        cls(2, 0)
    with pytest.raises(ArgumentTypeError, match=f"{name}: stride must be an int, got 1.0"):
        cls(2, 1.0)
    with pytest.raises(ArgumentValueError, match=f"{name}: padding must not be negative, got -1"):
        cls(2, 2, -1)
    message = f"{name}: padding must be at most half of the kernel_size 2, got 2"
    with pytest.raises(ArgumentValueError, match=message):
        cls(2, 2, 2)


@pytest.mark.parametrize("cls", [nn.Upscale2d, nn.Upscale2dBy])
def test_another_mode_is_refused(cls: Any) -> None:
    sizes = (2, 2) if cls is nn.Upscale2d else (2,)
    with pytest.raises(ArgumentValueError, match=f"{cls.__name__}: mode must be .*, got 'cubic'"):
        cls(*sizes, mode="cubic")
