"""A step gives parameters new data; whoever holds on to the old goes on seeing the old."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor.optim import Adagrad, Adam, AdamW, Optimizer, RMSprop, Sgd
from tests.optim.models import Array, Model, gradients_of

LARGE = (300, 250)


def momentum(model: Model) -> Optimizer:
    return Sgd(model, momentum=0.9)


OPTIMIZERS: list[Any] = [Sgd, momentum, Adam, AdamW, RMSprop, Adagrad]


def stepped(model: Model, optimizer: Optimizer, times: int) -> None:
    for _ in range(times):
        ones = {name: np.ones_like(array) for name, array in model.arrays().items()}
        optimizer.step(gradients_of(model, **ones))


@pytest.mark.parametrize("shape", [(2, 3), LARGE])
@pytest.mark.parametrize("make", OPTIMIZERS)
@pytest.mark.parametrize("earlier_steps", [0, 1, 2, 3])
def test_a_tape_that_is_alive_keeps_the_values_that_it_recorded(
    make: Any, shape: tuple[int, int], earlier_steps: int, rng: np.random.Generator
) -> None:
    model = Model(w=tt.normal(shape, rng=rng), v=tt.normal(shape, rng=rng))
    optimizer = make(model)
    stepped(model, optimizer, earlier_steps)
    x: tt.Tensor[Any, tt.NoneTape, np.float32] = tt.normal(shape, rng=rng)
    old = model["w"].numpy().copy()
    loss = (x.trace() * model["w"]).sum()
    product = x.trace() @ model["w"].transpose()
    stepped(model, optimizer, 5)

    np.testing.assert_array_equal(loss.backward()[x].numpy(), old)
    cotangent = tt.ones(product.shape)
    np.testing.assert_allclose(
        product.backward(cotangent)[x].numpy(), cotangent.numpy() @ old, rtol=1e-4, atol=1e-4
    )
    assert not np.array_equal(model["w"].numpy(), old)


@pytest.mark.parametrize("shape", [(2, 3), LARGE])
@pytest.mark.parametrize("make", OPTIMIZERS)
def test_views_and_handles_keep_the_values_that_they_had(
    make: Any, shape: tuple[int, int], rng: np.random.Generator
) -> None:
    model = Model(w=tt.normal(shape, rng=rng))
    optimizer = make(model)
    held: list[tuple[Array, Any]] = []
    for _ in range(6):
        w = model["w"]
        values = w.numpy().copy()
        held.append((values, w.numpy()))
        held.append((values.T[1:], w.numpy().T[1:]))
        held.append((values, w.detach()))
        held.append((values, w.trace()))
        held.append((values, copy.copy(w)))
        held.append((values.reshape(-1), w.reshape((-1,))))
        buffer: Any = w.numpy()
        held.append((values, memoryview(buffer)))
        stepped(model, optimizer, 1)

    for values, holder in held:
        seen = holder.detach().numpy() if isinstance(holder, tt.Tensor) else np.asarray(holder)
        np.testing.assert_array_equal(seen, values)


@pytest.mark.parametrize("shape", [(2, 3), LARGE])
def test_a_buffer_that_nobody_holds_is_used_again(
    shape: tuple[int, int], rng: np.random.Generator
) -> None:
    model = Model(w=tt.normal(shape, rng=rng), v=tt.normal((4,), rng=rng))
    optimizer = Adam(model)
    addresses = set()
    for _ in range(20):
        stepped(model, optimizer, 1)
        addresses.add(model["w"].numpy().__array_interface__["data"][0])

    assert len(addresses) == 2
