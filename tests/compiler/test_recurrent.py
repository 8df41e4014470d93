"""A loop over time is one step of a plan, forwards and backwards, however long it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import nn, optim
from tapetensor.compiler import plans

LAYERS: dict[str, Callable[[np.random.Generator], Any]] = {
    "RNN": lambda rng: nn.RNN(3, 4, np.float64, rng=rng),
    "GRU": lambda rng: nn.GRU(3, 4, np.float64, rng=rng),
    "LSTM": lambda rng: nn.LSTM(3, 4, np.float64, rng=rng),
    "StackedLSTM": lambda rng: nn.StackedLSTM(3, 4, 2, np.float64, bidirectional=True, rng=rng),
}
EVERY_LAYER = pytest.mark.parametrize("make", LAYERS.values(), ids=LAYERS)


def sequences(steps: int, seed: int = 0) -> Any:
    return tt.normal((2, steps, 3), np.float64, rng=np.random.default_rng(seed))


def train(model: Any, optimizer: Any, x: Any) -> Any:
    outputs, _ = model.forward(x.trace())
    loss = outputs.square().mean()
    value = loss.detach()
    optimizer.step(loss.backward(wrt=model))
    return value


@EVERY_LAYER
def test_training_goes_as_in_eager_mode(make: Callable[[np.random.Generator], Any]) -> None:
    compiled, losses = tt.compile(train), []
    for step in (train, compiled):
        model = make(np.random.default_rng(0))
        optimizer = optim.Sgd(model, lr=0.5)
        losses.append([step(model, optimizer, sequences(6, seed)).item() for seed in range(5)])

    np.testing.assert_allclose(losses[1], losses[0], rtol=1e-12)


@EVERY_LAYER
def test_a_plan_does_not_grow_with_the_number_of_steps(
    make: Callable[[np.random.Generator], Any],
) -> None:
    lines = set()
    for steps in (5, 50):
        model = make(np.random.default_rng(0))
        compiled = tt.compile(train)
        compiled(model, optim.Sgd(model, lr=0.5), sequences(steps))
        (plan,) = plans(compiled)
        lines.add(len(plan.steps))

    assert len(lines) == 1


@EVERY_LAYER
def test_gradients_leave_by_a_tape_from_outside(
    make: Callable[[np.random.Generator], Any],
) -> None:
    model, x = make(np.random.default_rng(0)), sequences(6)

    @tt.compile
    def loss_of(x: Any) -> Any:
        outputs, _ = model.forward(x)
        return outputs.tanh().square().sum()

    for scale in (1.0, 2.0):
        scaled = x * scale
        found = loss_of(scaled.trace()).backward()
        outputs, _ = model.forward(scaled.trace())
        expected = outputs.tanh().square().sum().backward()
        for one in (scaled, *model.parameters().values()):
            np.testing.assert_allclose(found[one].numpy(), expected[one].numpy(), rtol=1e-11)


def test_two_backward_passes_over_one_call_are_told_apart() -> None:
    layer, x = nn.GRU(3, 4, np.float64, rng=np.random.default_rng(0)), sequences(4)

    @tt.compile
    def both(x: Any) -> Any:
        outputs, last = layer.forward(x.trace())
        first = (outputs.sum()).backward()[x]
        again, _ = layer.forward(x.trace())
        return first, (again * 3.0).sum().backward()[x], last.detach()

    first, second, _ = both(x)
    np.testing.assert_allclose(second.numpy(), 3 * first.numpy(), rtol=1e-12)


def test_a_derivative_of_second_order_sees_what_a_kernel_does() -> None:
    layer, x = nn.GRU(3, 4, np.float64, rng=np.random.default_rng(0)), sequences(3)

    def slope(x: Any) -> Any:
        def loss(x: Any) -> Any:
            return layer.forward(x)[0].square().sum()

        return tt.grad(lambda x: tt.grad(loss, x).square().sum(), x)

    np.testing.assert_allclose(tt.compile(slope)(x).numpy(), slope(x).numpy(), rtol=1e-10)
