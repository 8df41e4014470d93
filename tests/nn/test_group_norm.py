"""`GroupNorm`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import nn
from tapetensor.errors import ArgumentValueError, DTypeError, ShapeError
from tests.nn.gradients import check_layer


def uneven(groups: int, rng: np.random.Generator) -> nn.GroupNorm[Any, Any, np.float64]:
    """Return a layer of 4 channels with a scale and a shift that differ between them."""
    layer: nn.GroupNorm[Any, Any, np.float64] = nn.GroupNorm(groups, 4, np.float64, eps=0.1)
    layer.weight = tt.from_numpy(rng.uniform(0.5, 2.0, 4))
    layer.bias = tt.from_numpy(rng.standard_normal(4))
    return layer


@pytest.mark.parametrize("groups", [1, 2, 4])
@pytest.mark.parametrize("rest", [(), (5,), (2, 3)])
def test_the_value_follows_the_formula(
    groups: int, rest: tuple[int, ...], rng: np.random.Generator
) -> None:
    layer = uneven(groups, rng)
    x = rng.standard_normal((3, 4, *rest))

    y = layer.forward(tt.from_numpy(x))

    for sample, wanted in zip(x, y.numpy(), strict=True):
        for part, of_part, weight, bias in zip(
            *(np.split(one, groups) for one in (sample, wanted)),
            *(np.split(one.numpy(), groups) for one in (layer.weight, layer.bias)),
            strict=True,
        ):
            scaled = (part - part.mean()) / np.sqrt(part.var() + 0.1)
            channels = (-1, *[1] * len(rest))
            expected = scaled * weight.reshape(channels) + bias.reshape(channels)
            np.testing.assert_allclose(of_part, expected, rtol=1e-12)


@pytest.mark.parametrize("shape", [(3, 4), (2, 4, 5), (2, 4, 3, 2), (0, 4, 3)])
def test_the_gradients_with_an_uneven_scale(
    shape: tuple[int, ...], rng: np.random.Generator
) -> None:
    check_layer(uneven(2, rng), tt.from_numpy(rng.standard_normal(shape)), rng)


def test_groups_that_do_not_divide_the_channels_are_refused() -> None:
    with pytest.raises(ArgumentValueError, match="GroupNorm: 3 groups do not divide"):
        nn.GroupNorm(3, 4)


@pytest.mark.parametrize("shape", [(4,), (), (2, 5), (4, 2)])
def test_another_number_of_channels_is_refused(shape: Any) -> None:
    layer: Any = nn.GroupNorm(2, 4)

    with pytest.raises(ShapeError, match=r"GroupNorm: the input must have shape \(B, 4, \.\.\.\)"):
        layer.forward(tt.ones(shape))


def test_another_dtype_is_refused() -> None:
    layer: Any = nn.GroupNorm(2, 4)

    with pytest.raises(DTypeError, match=r"GroupNorm: the input has dtype float64, .* float32"):
        layer.forward(tt.ones((2, 4), np.float64))
