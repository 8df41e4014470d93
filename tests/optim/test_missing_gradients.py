"""Gradients that are missing or do not fit: one error names them, and nothing is updated."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor.optim import Adagrad, Adam, AdamW, RMSprop, Sgd
from tests.optim.models import Model, drawn, gradients_of, small_model

OPTIMIZERS: list[Any] = [Sgd, Adam, AdamW, RMSprop, Adagrad]


@pytest.mark.parametrize("make", OPTIMIZERS)
def test_nothing_is_updated_and_the_missing_are_named(make: Any, rng: np.random.Generator) -> None:
    model = small_model(rng)
    before, gradients = model.arrays(), drawn(model, rng)
    del gradients["hidden.bias"], gradients["scale"]
    optimizer = make(model, lr=0.1)
    with pytest.raises(tt.UnusedParametersError, match=r"hidden\.bias: no gradient") as raised:
        optimizer.step(gradients_of(model, **gradients))

    assert "nothing was updated" in str(raised.value)
    assert optimizer.steps == 0
    assert raised.value.names == ("hidden.bias", "scale")
    for name, array in model.arrays().items():
        np.testing.assert_array_equal(array, before[name])


@pytest.mark.parametrize("make", OPTIMIZERS)
def test_a_gradient_of_another_shape_or_dtype_counts_as_missing(
    make: Any, rng: np.random.Generator
) -> None:
    model = small_model(rng)
    before = model.arrays()
    grads = gradients_of(model, **drawn(model, rng))
    grads.remove(model["hidden.bias"])
    grads.remove(model["out.weight"])
    grads.accumulate(
        {
            model["hidden.bias"].id: np.ones((3,)),
            model["out.weight"].id: np.ones((1, 4), np.float32),
        }
    )
    with pytest.raises(tt.UnusedParametersError) as raised:
        make(model, lr=0.1).step(grads)

    message = str(raised.value)
    assert "hidden.bias: a gradient of shape (3,) for a parameter of shape (2,)" in message
    assert "out.weight: a gradient of dtype float32 for a parameter of dtype float64" in message
    assert raised.value.names == ("hidden.bias", "out.weight")
    for name, array in model.arrays().items():
        np.testing.assert_array_equal(array, before[name])


def test_of_large_and_small_parameters_all_that_are_missing_are_named(
    rng: np.random.Generator,
) -> None:
    model = Model(
        large=tt.normal((200, 200), rng=rng),
        small=tt.normal((2,), rng=rng),
        wide=tt.normal((1, 40_000), rng=rng),
        double=tt.normal((2,), np.float64, rng=rng),
    )
    before = model.arrays()
    optimizer = Adam(model)
    with pytest.raises(tt.UnusedParametersError) as raised:
        optimizer.step(gradients_of(model, wide=np.ones((1, 40_000)), small=[1.0, 1.0]))

    assert set(raised.value.names) == {"large", "double"}
    for name, array in model.arrays().items():
        np.testing.assert_array_equal(array, before[name])
