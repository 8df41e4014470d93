"""Gradients that are missing or do not fit: all else is updated, then one error names them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor.optim import Adagrad, Adam, AdamW, RMSprop, Sgd
from tests.optim.models import Model, drawn, gradients_of, small_model

OPTIMIZERS: list[Any] = [Sgd, Adam, AdamW, RMSprop, Adagrad]


@pytest.mark.parametrize("make", OPTIMIZERS)
def test_everything_else_is_updated_and_the_missing_are_named(
    make: Any, rng: np.random.Generator
) -> None:
    model = small_model(rng)
    before, gradients = model.arrays(), drawn(model, rng)
    del gradients["hidden.bias"], gradients["scale"]
    with pytest.raises(tt.UnusedParametersError, match=r"hidden\.bias: no gradient") as raised:
        make(model, lr=0.1).step(gradients_of(model, **gradients))

    assert raised.value.names == ("hidden.bias", "scale")
    for name, array in model.arrays().items():
        assert np.array_equal(array, before[name]) == (name in raised.value.names)


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
        assert np.array_equal(array, before[name]) == (name in raised.value.names)


def test_both_names_of_a_shared_parameter_are_listed() -> None:
    shared = tt.ones((2,))
    model = Model(embedding=shared, bias=tt.ones((1,)), out=shared)
    with pytest.raises(tt.UnusedParametersError, match="embedding = out: no gradient") as raised:
        Sgd(model).step(gradients_of(model, bias=[1.0]))

    assert raised.value.names == ("embedding", "out")


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
    with pytest.raises(tt.UnusedParametersError) as raised:
        Adam(model).step(gradients_of(model, wide=np.ones((1, 40_000)), small=[1.0, 1.0]))

    assert set(raised.value.names) == {"large", "double"}
    for name, array in model.arrays().items():
        assert np.array_equal(array, before[name]) == (name in raised.value.names)


@pytest.mark.parametrize("make", OPTIMIZERS)
def test_a_step_without_any_gradient_changes_nothing(make: Any, rng: np.random.Generator) -> None:
    model = small_model(rng)
    twin = Model(**{name: tt.from_numpy(array) for name, array in model.arrays().items()})
    optimizer, other = make(model), make(twin)
    with pytest.raises(tt.UnusedParametersError) as raised:
        optimizer.step(tt.Gradients())
    assert raised.value.names == tuple(model.parameters())

    for _ in range(3):
        gradients = drawn(model, rng)
        optimizer.step(gradients_of(model, **gradients))
        other.step(gradients_of(twin, **gradients))
    for name, array in twin.arrays().items():
        np.testing.assert_array_equal(array, model.arrays()[name])


def test_after_a_missed_step_a_whole_model_goes_on_through_backward(
    rng: np.random.Generator,
) -> None:
    x = tt.normal((4, 2), rng=rng)
    used, unused = tt.ones((2,)), tt.ones((2,))
    optimizer = Sgd(Model(used=used, unused=unused), lr=0.1)
    with pytest.raises(tt.UnusedParametersError, match=r"unused: no gradient.*wrt"):
        optimizer.step((x.trace() * used).mean().backward())
    optimizer.step((x.trace() * used * unused).mean().backward())

    assert not np.array_equal(unused.numpy(), [1.0, 1.0])


def test_what_an_optimizer_updates_goes_by_all_its_names() -> None:
    shared = tt.ones((2,))
    model = Model(embedding=shared, bias=tt.ones((1,)), out=shared)
    optimizer = Sgd(model, lr=0.1)

    assert optimizer.parameters() == model.parameters()
    assert (shared.trace() * 2.0).sum().backward(wrt=optimizer)[shared].shape == (2,)
