"""`Repeated`, and lists whose length is a type variable."""

from __future__ import annotations

from typing import Any, Generic
from typing import Literal as L

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import nn
from tapetensor.errors import ArgumentTypeError, BuildError, ShapeError
from tapetensor.typing import K, N
from tests.nn.gradients import check_layer


class Tower(nn.Module, Generic[N, K]):
    blocks: list[nn.Linear[N, N]] = nn.repeat("K")


class Lost(nn.Module, Generic[N]):
    blocks: list[nn.Linear[N, N]] = nn.repeat("M")


def linear(rng: np.random.Generator, out_features: int = 4) -> Any:
    return nn.Linear(4, out_features, np.float64, rng=rng)


def test_the_modules_run_one_after_another(rng: np.random.Generator) -> None:
    layers = [linear(rng) for _ in range(3)]
    model: Any = nn.Repeated(layers=layers)
    x = tt.from_numpy(rng.standard_normal((5, 4)))

    wanted = layers[2].forward(layers[1].forward(layers[0].forward(x)))
    np.testing.assert_array_equal(model.forward(x).numpy(), wanted.numpy())
    check_layer(model, x, rng)


def test_the_type_says_how_many(rng: np.random.Generator) -> None:
    model = tt.build(nn.Repeated[nn.Linear[L[4], L[4]], L[3]], rng=rng)

    assert len(model.layers) == 3
    weights = [layer.weight.numpy() for layer in model.layers]
    assert not np.array_equal(weights[0], weights[1])
    assert len(tt.build(Tower[L[2], L[5]], rng=rng).blocks) == 5


def test_another_number_of_modules_is_refused_as_a_field(rng: np.random.Generator) -> None:
    class Net(nn.Module):
        body: nn.Repeated[nn.Linear[L[4], L[4]], L[3]]

    two: Any = nn.Repeated(layers=[nn.Linear(4, 4, rng=rng), nn.Linear(4, 4, rng=rng)])
    with pytest.raises(ShapeError, match=r"Net: body.layers has 2 elements, .* body says 3"):
        Net(body=two)


def test_a_length_that_cannot_be_read_is_named(rng: np.random.Generator) -> None:
    with pytest.raises(BuildError, match=r"build: Lost.blocks: the dim 'M' has no size"):
        tt.build(Lost[L[2]], rng=rng)
    with pytest.raises(BuildError, match=r"build: Tower.blocks: the dim Any has no size"):
        tt.build(Tower[L[2], Any], rng=rng)


def test_a_module_must_keep_the_shape(rng: np.random.Generator) -> None:
    model: Any = nn.Repeated(layers=[linear(rng, 3)])

    with pytest.raises(ShapeError, match=r"Repeated: layer 0 made shape \(5, 3\) of \(5, 4\)"):
        model.forward(tt.ones((5, 4), np.float64))
    with pytest.raises(ArgumentTypeError, match="Repeated: the input must be a tensor"):
        model.forward([1.0])
