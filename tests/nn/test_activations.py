"""Activations: each is its Tensor method."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import nn
from tapetensor.errors import ArgumentTypeError, ArgumentValueError
from tapetensor.nn import activations
from tests.nn.gradients import check_layer

ROWS: list[tuple[Any, Callable[[Any], Any]]] = [
    (nn.Abs(), lambda x: x.abs()),
    (nn.CELU(), lambda x: x.elu()),
    (nn.CELU(0.5), lambda x: (x / 0.5).elu() * 0.5),
    (nn.Cos(), lambda x: x.cos()),
    (nn.ELU(), lambda x: x.elu()),
    (nn.ELU(0.5), lambda x: x.elu(0.5)),
    (nn.Exp(), lambda x: x.exp()),
    (nn.GELU(), lambda x: x.gelu()),
    (nn.GELU("none"), lambda x: x.gelu("none")),
    (nn.GELU("tanh"), lambda x: x.gelu("tanh")),
    (nn.LeakyReLU(), lambda x: x.leaky_relu()),
    (nn.LeakyReLU(0.2), lambda x: x.leaky_relu(0.2)),
    (nn.Log(), lambda x: x.log()),
    (nn.LogSoftmax(), lambda x: x.log_softmax()),
    (nn.ReLU(), lambda x: x.relu()),
    (nn.SELU(), lambda x: x.elu(1.6732632423543772) * 1.0507009873554805),
    (nn.Sigmoid(), lambda x: x.sigmoid()),
    (nn.SiLU(), lambda x: x.silu()),
    (nn.Sin(), lambda x: x.sin()),
    (nn.Softmax(), lambda x: x.softmax()),
    (nn.Softplus(), lambda x: x.softplus()),
    (nn.Sqrt(), lambda x: x.sqrt()),
    (nn.Square(), lambda x: x.square()),
    (nn.Tanh(), lambda x: x.tanh()),
]


def test_every_activation_has_a_row() -> None:
    classes = {
        value
        for value in vars(activations).values()
        if inspect.isclass(value)
        and value.__module__ == activations.__name__
        # What others derive from is no layer itself.
        and not value.__subclasses__()
    }

    assert {type(layer) for layer, _ in ROWS} == classes
    assert all(getattr(nn, one.__name__) is one for one in classes)


@pytest.mark.parametrize(("layer", "method"), ROWS, ids=[repr(layer) for layer, _ in ROWS])
def test_an_activation_is_its_tensor_method(
    layer: Any, method: Callable[[Any], Any], rng: np.random.Generator
) -> None:
    # Positive, for log and sqrt.
    x = tt.from_numpy(rng.uniform(0.1, 2.0, (3, 4)))

    assert np.array_equal(layer.forward(x).numpy(), method(x).numpy())
    assert not layer.forward(x).owns_tape
    grads, wanted = (run(x.trace()).sum().backward() for run in (layer.forward, method))
    assert np.array_equal(grads[x].numpy(), wanted[x].numpy())
    check_layer(layer, x, rng)


def test_the_slopes_of_rectifiers_are_finite_numbers() -> None:
    with pytest.raises(ArgumentValueError, match="LeakyReLU: negative_slope must be finite, got"):
        nn.LeakyReLU(float("nan"))
    with pytest.raises(ArgumentValueError, match="ELU: alpha must be finite, got inf"):
        nn.ELU(float("inf"))
    with pytest.raises(ArgumentValueError, match="CELU: alpha must be"):
        nn.CELU(0.0)


def test_composed_activations_say_what_they_cannot_take() -> None:
    wrong: Any = tt.ones((2,), np.int64)
    odd: Any = tt.ones((2, 3)).trace()
    for layer in (nn.Mish(), nn.GLU(), nn.Hardswish(), nn.Threshold(0.0, 1.0)):
        with pytest.raises(tt.DTypeError, match=type(layer).__name__):
            layer.forward(wrong)
    with pytest.raises(tt.AxisError, match=r"GLU: the last axis must be even, .* \(2, 3\)"):
        nn.GLU().forward(odd)
    assert odd.owns_tape
    with pytest.raises(ArgumentValueError, match="Hardtanh: high must be above low"):
        nn.Hardtanh(1.0, 1.0)
    with pytest.raises(ArgumentTypeError, match="Threshold: value must be a number"):
        nn.Threshold(0.0, wrong)
    with pytest.raises(tt.ShapeError, match=r"InstanceNorm2d: takes \(N, C, H, W\)"):
        nn.InstanceNorm2d().forward(odd)


def test_composed_activations_pass_a_nan_and_are_finite_at_any_size() -> None:
    x = tt.from_numpy([np.nan, 1e30, -1e30], (3,))
    for layer in (nn.Mish(), nn.Hardshrink(), nn.Threshold(0.0, 1.0), nn.LogSigmoid(), nn.ReLU6()):
        found = layer.forward(x.trace())
        gradient = found.sum().backward()[x].numpy()
        assert np.isnan(found.detach().numpy()).tolist() == [True, False, False]
        assert np.isfinite(gradient[1:]).all()


@pytest.mark.parametrize(
    "layer", [nn.ReLU6(), nn.Hardtanh(), nn.Hardshrink(), nn.Softshrink(), nn.Threshold(0.0, 1.0)]
)
def test_a_piecewise_linear_activation_that_passes_a_nan_passes_its_cotangent(layer: Any) -> None:
    x = tt.from_numpy([np.nan, 0.25], (2,))
    found = layer.forward(x.trace())

    assert np.isnan(found.detach().numpy()[0])
    assert found.sum().backward()[x].detach().numpy()[0] == 1.0
