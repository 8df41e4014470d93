"""Gradients that are missing or not finite: nothing is updated, and they are named."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import optim
from tapetensor.io import state_dict
from tapetensor.optim import Adagrad, Adam, AdamW, RMSprop, Sgd
from tests.optim.models import drawn, gradients_of, small_model

OPTIMIZERS: list[Any] = [Sgd, Adam, AdamW, RMSprop, Adagrad]


@pytest.mark.parametrize("make", OPTIMIZERS)
def test_nothing_is_updated_and_what_is_missing_or_does_not_fit_is_named(
    make: Any, rng: np.random.Generator
) -> None:
    model = small_model(rng)
    before = model.arrays()
    grads = gradients_of(model, **drawn(model, rng))
    for name in ("hidden.bias", "scale", "out.weight"):
        grads.remove(model[name])
    wrong: Any = {"hidden.bias": np.ones((3,)), "out.weight": np.ones((1, 4), np.float32)}
    grads.accumulate({model[name].id: array for name, array in wrong.items()})
    optimizer = make(model, lr=0.1)
    with pytest.raises(tt.UnusedParametersError, match="nothing was updated") as raised:
        optimizer.step(grads)

    message = str(raised.value)
    assert "scale: no gradient" in message
    assert "hidden.bias: a gradient of shape (3,) for a parameter of shape (2,)" in message
    assert "out.weight: a gradient of dtype float32 for a parameter of dtype float64" in message
    assert raised.value.names == ("hidden.bias", "scale", "out.weight")
    assert optimizer.steps == 0
    for name, array in model.arrays().items():
        np.testing.assert_array_equal(array, before[name])


@pytest.mark.parametrize("make", OPTIMIZERS)
@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_nothing_is_updated_and_the_parameter_is_named(
    make: Any, wrong: float, rng: np.random.Generator
) -> None:
    model = small_model(rng)
    optimizer = make(model, check_finite=True)
    arrays = drawn(model, rng)
    optimizer.step(gradients_of(model, **arrays))
    before, state = model.arrays(), state_dict(optimizer)
    arrays["out.weight"][0, 2] = wrong
    said = r"nothing was updated, for the gradient of out\.weight is not finite: 1 of 4"
    with pytest.raises(tt.NumericalInstabilityError, match=said):
        optimizer.step(gradients_of(model, **arrays))
    only = {"out.weight": arrays["out.weight"]}
    with pytest.raises(tt.NumericalInstabilityError, match=said):
        optimizer.step(gradients_of(model, **only), unused="skip")

    for name, array in model.arrays().items():
        np.testing.assert_array_equal(array, before[name])
    for name, array in state_dict(optimizer).items():
        np.testing.assert_array_equal(array, state[name])


@pytest.mark.filterwarnings("error")
def test_large_gradients_are_finite(rng: np.random.Generator) -> None:
    model = small_model(rng, np.float32)
    arrays = {name: np.full(one.shape, 3e38, np.float32) for name, one in model.arrays().items()}
    optim.Sgd(model, check_finite=True).step(gradients_of(model, **arrays))


def test_a_compiled_step_refuses_them_at_the_call_that_has_them() -> None:
    weight, other = tt.ones((3,)), tt.ones((40_000,))
    optimizer = optim.Adam([weight, other], check_finite=True)

    def step(x: Any, y: Any) -> None:
        loss = (x.trace() * weight).sqrt().sum() + (y.trace() * other).sum()
        optimizer.step(loss.backward(wrt=optimizer))

    compiled = tt.compile(step)
    y: Any = tt.ones((40_000,))
    good = tt.from_numpy([1.0, 2.0, 3.0], (3,))
    compiled(good, y)
    compiled(good, y)
    before = weight.numpy(), other.numpy()
    with (
        np.errstate(all="ignore"),
        pytest.raises(tt.NumericalInstabilityError, match=r"gradient of 0 is not finite: 1 of 3"),
    ):
        compiled(tt.from_numpy([1.0, 0.0, 3.0], (3,)), y)
    np.testing.assert_array_equal(weight.numpy(), before[0])
    np.testing.assert_array_equal(other.numpy(), before[1])
    assert optimizer.steps == 2
    compiled(good, y)
    assert optimizer.steps == 3


def test_it_is_off_unless_it_is_asked_for() -> None:
    weight = tt.ones((1,))
    grads = tt.Gradients()
    grads.insert(weight, np.array([np.nan], np.float32))
    optim.Sgd([weight]).step(grads)
    assert np.isnan(weight.numpy()).all()
    wrong: Any = "stop"
    with pytest.raises(tt.ArgumentTypeError, match="check_finite must be True or False"):
        optim.Sgd([weight], check_finite=wrong)
