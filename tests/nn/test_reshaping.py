"""`Reshape`."""

from __future__ import annotations

from typing import Literal as L

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import nn
from tapetensor.errors import ArgumentTypeError, ArgumentValueError
from tests.nn.gradients import check_layer


def test_every_example_gets_the_shape_that_the_type_says(rng: np.random.Generator) -> None:
    layer = tt.build(nn.Reshape[L[2], L[3]], rng=rng)
    x = tt.from_numpy(rng.standard_normal((5, 6)))

    np.testing.assert_array_equal(layer.forward(x).numpy(), x.numpy().reshape(5, 2, 3))
    check_layer(layer, x, rng)
    assert layer.forward(tt.ones((0, 3, 2))).shape == (0, 2, 3)
    assert nn.Reshape().forward(tt.ones((4, 1))).shape == (4,)


def test_sizes_are_ints_that_are_not_negative() -> None:
    with pytest.raises(ArgumentTypeError, match=r"Reshape: a size must be an int, got 2.0"):
        nn.Reshape(2.0)
    with pytest.raises(ArgumentValueError, match="Reshape: a size must not be negative, got -1"):
        nn.Reshape(-1)
