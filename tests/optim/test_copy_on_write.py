"""A step gives parameters new data; whoever holds on to the old goes on seeing the old."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor.optim import Adam, Optimizer, Sgd
from tests.optim.models import HOLDS, OPTIMIZERS, Array, Model, gradients_of, seen_by

LARGE = (300, 250)


def momentum(model: Model) -> Optimizer:
    return Sgd(model, momentum=0.9)


def stepped(model: Model, optimizer: Optimizer, times: int) -> None:
    for _ in range(times):
        ones = {name: np.ones_like(array) for name, array in model.arrays().items()}
        optimizer.step(gradients_of(model, **ones))


@pytest.mark.parametrize("shape", [(2, 3), LARGE])
@pytest.mark.parametrize("make", [*OPTIMIZERS, momentum])
def test_views_handles_and_tapes_keep_the_values_that_they_had(
    make: Any, shape: tuple[int, int], rng: np.random.Generator
) -> None:
    model = Model(w=tt.normal(shape, rng=rng))
    optimizer = make(model)
    held: list[tuple[Any, Array]] = []
    # One at a time: what nobody else holds on to is counted to the last reference.
    for hold in HOLDS:
        holder = hold(model["w"])
        held.append((holder, seen_by(holder)))
        stepped(model, optimizer, 1)

    for holder, values in held:
        np.testing.assert_array_equal(seen_by(holder), values)
    gradient = held[-1][0].sum().backward()[model["w"]]
    np.testing.assert_allclose(gradient.numpy() ** 2, 4 * held[-1][1], rtol=1e-5)


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
