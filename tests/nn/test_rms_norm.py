"""`RMSNorm`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import nn
from tapetensor.errors import DTypeError, ShapeError
from tests.nn.gradients import check_layer


def uneven(rng: np.random.Generator, eps: float) -> nn.RMSNorm[Any, np.float64]:
    """Return a layer of size 4 with a scale that differs from element to element."""
    layer: nn.RMSNorm[Any, np.float64] = nn.RMSNorm(4, np.float64, eps=eps)
    layer.weight = tt.from_numpy(rng.uniform(0.5, 2.0, 4))
    return layer


@pytest.mark.parametrize("leading", [(), (5,), (2, 3)])
def test_the_value_follows_the_formula(leading: tuple[int, ...], rng: np.random.Generator) -> None:
    layer = uneven(rng, eps=0.1)
    x = rng.standard_normal((*leading, 4))

    y = layer.forward(tt.from_numpy(x))

    wanted = x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + 0.1) * layer.weight.numpy()
    np.testing.assert_allclose(y.numpy(), wanted, rtol=1e-12)


@pytest.mark.parametrize("leading", [(), (5,), (2, 3), (0,)])
@pytest.mark.parametrize("eps", [1e-6, 0.5])
def test_the_gradients_with_an_uneven_scale(
    leading: tuple[int, ...], eps: float, rng: np.random.Generator
) -> None:
    check_layer(uneven(rng, eps), tt.from_numpy(rng.standard_normal((*leading, 4))), rng)


def test_its_only_parameter_starts_as_one() -> None:
    layer = nn.RMSNorm(3)

    assert {name: one.numpy().tolist() for name, one in layer.parameters().items()} == {
        "weight": [1.0, 1.0, 1.0]
    }


def test_zeros_stay_zeros_and_have_a_gradient() -> None:
    layer = nn.RMSNorm(2)
    x = tt.zeros((1, 2))

    grads = layer.forward(x.trace()).sum().backward(wrt=x)

    np.testing.assert_allclose(grads[x].numpy(), [[1e3, 1e3]], rtol=1e-6)


@pytest.mark.parametrize("shape", [(5,), (2, 5), (), (4, 2)])
def test_another_size_is_refused(shape: Any) -> None:
    layer: Any = nn.RMSNorm(4)

    with pytest.raises(ShapeError, match="RMSNorm: the last axis of the input must have size 4"):
        layer.forward(tt.ones(shape))


def test_another_dtype_is_refused() -> None:
    layer: Any = nn.RMSNorm(4)

    with pytest.raises(DTypeError, match=r"RMSNorm: the input has dtype float64, .* float32"):
        layer.forward(tt.ones((2, 4), np.float64))
