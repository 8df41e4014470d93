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

_METHODS = ["abs", "cos", "elu", "exp", "gelu", "leaky_relu", "log", "log_softmax", "relu"]
_METHODS += ["sigmoid", "silu", "sin", "softmax", "softplus", "sqrt", "square", "tanh"]
_CLASSES = {name.lower(): value for name, value in vars(activations).items()}
ROWS: list[tuple[Any, Callable[[Any], Any]]] = [
    *((_CLASSES[name.replace("_", "")](), getattr(tt.Tensor, name)) for name in _METHODS),
    (nn.CELU(), lambda x: x.elu()),
    (nn.CELU(0.5), lambda x: (x / 0.5).elu() * 0.5),
    (nn.ELU(0.5), lambda x: x.elu(0.5)),
    (nn.GELU("none"), lambda x: x.gelu("none")),
    (nn.GELU("tanh"), lambda x: x.gelu("tanh")),
    (nn.LeakyReLU(0.2), lambda x: x.leaky_relu(0.2)),
    (nn.SELU(), lambda x: x.elu(1.6732632423543772) * 1.0507009873554805),
]

_LINES = [nn.ReLU6(), nn.Hardtanh(), nn.Hardshrink(), nn.Softshrink(), nn.Threshold(0.0, 1.0)]


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


def test_the_slopes_of_rectifiers_are_finite_numbers() -> None:
    with pytest.raises(ArgumentValueError, match="LeakyReLU: negative_slope must be finite, got"):
        nn.LeakyReLU(float("nan"))
    with pytest.raises(ArgumentValueError, match="ELU: alpha must be finite, got inf"):
        nn.ELU(float("inf"))
    with pytest.raises(ArgumentValueError, match="CELU: alpha must be"):
        nn.CELU(0.0)
    with pytest.raises(ArgumentValueError, match="PReLU1d: init must be finite, got nan"):
        nn.PReLU1d(2, init=float("nan"))


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


@pytest.mark.parametrize("layer", [nn.Mish(), nn.LogSigmoid(), *_LINES], ids=repr)
def test_a_composed_activation_passes_a_nan_and_is_finite_at_any_size(layer: Any) -> None:
    x = tt.from_numpy([np.nan, 1e30, -1e30], (3,))
    found = layer.forward(x.trace())
    gradient = found.sum().backward()[x].numpy()

    assert np.isnan(found.detach().numpy()).tolist() == [True, False, False]
    assert np.isfinite(gradient[1:]).all()
    # Straight lines pass the cotangent of a NaN, too.
    assert layer not in _LINES or gradient[0] == 1.0
