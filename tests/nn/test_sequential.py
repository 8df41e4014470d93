"""`Sequential`."""

from __future__ import annotations

import re
from typing import Any
from typing import Literal as L

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import Tensor2D, nn
from tapetensor.errors import ArgumentTypeError, BuildError, ShapeError


class NoForward(nn.Module):
    act: nn.ReLU


def test_the_output_of_each_goes_into_the_next(rng: np.random.Generator) -> None:
    first, last = nn.Linear(4, 8, rng=rng), nn.Linear(8, 2, rng=rng)
    model = nn.Sequential(first, nn.ReLU(), last)
    x: Tensor2D[Any, Any] = tt.normal((5, 4), rng=rng)

    assert np.array_equal(model.forward(x).numpy(), last.forward(first.forward(x).relu()).numpy())
    assert not model.forward(x).owns_tape
    assert model.forward(x.trace()).owns_tape


def test_it_is_built_from_its_type_arguments(rng: np.random.Generator) -> None:
    class Net(nn.Module):
        body: nn.Sequential[nn.Linear[L[4], L[8]], nn.ReLU, nn.Linear[L[8], L[2]]]

    model = tt.build(Net, rng=rng)

    assert repr(model) == (
        "Net(\n"
        "  body: Sequential(\n"
        "    0: Linear(in_features=4, out_features=8)\n"
        "    1: ReLU()\n"
        "    2: Linear(in_features=8, out_features=2)\n"
        "  )\n"
        ")"
    )
    assert model.body.forward(tt.ones((3, 4))).shape == (3, 2)


def test_a_layer_of_another_size_is_refused_as_a_field(rng: np.random.Generator) -> None:
    class Net(nn.Module):
        body: nn.Sequential[nn.Linear[L[4], L[8]], nn.ReLU]

    body: Any = nn.Sequential(nn.Linear(4, 9, rng=rng), nn.ReLU())
    with pytest.raises(ShapeError, match=re.escape("Net: body.layers.0.weight has shape (9, 4)")):
        Net(body=body)
    body = nn.Sequential(nn.Linear(4, 8, rng=rng))
    with pytest.raises(ShapeError, match=r"Net: body.layers has 1 elements, .* says 2"):
        Net(body=body)


def test_an_error_names_the_layer_that_it_comes_from(rng: np.random.Generator) -> None:
    model = nn.Sequential(nn.Linear(4, 8, rng=rng), nn.ReLU(), nn.Linear(9, 2, rng=rng))
    x = tt.ones((3, 4)).trace()

    with pytest.raises(ShapeError, match="must have size 9") as caught:
        model.forward(x)
    assert caught.value.__notes__ == [
        "cause and cure: python -m tapetensor explain ShapeError",
        "in layer 2 of the Sequential: Linear(in_features=9, out_features=2)",
    ]


def test_what_is_no_module_is_refused(rng: np.random.Generator) -> None:
    with pytest.raises(ArgumentTypeError, match="Sequential: give one module or more"):
        nn.Sequential()
    with pytest.raises(ArgumentTypeError, match="Sequential: layer 1 is a type, not a Module"):
        nn.Sequential(nn.ReLU(), nn.ReLU)
    with pytest.raises(ArgumentTypeError, match="Sequential: layer 0 is a list, not a Module"):
        nn.Sequential([nn.ReLU()])
    with pytest.raises(BuildError, match=r"Sequential: layer 0, a NoForward, has no forward\(\)"):
        nn.Sequential(NoForward(act=nn.ReLU()))


def test_without_type_arguments_it_cannot_be_built(rng: np.random.Generator) -> None:
    message = "build: Sequential: Sequential[Layers] needs a value for Layers; "
    with pytest.raises(BuildError, match=re.escape(message)):
        tt.build(nn.Sequential, rng=rng)
