"""Contexts: the scenarios of hodu's guide, with the results that mathematics demands.

Run it with ``python examples/contexts.py [--steps N]``. All models learn ``y = 2 x + 1`` from eight
points by gradient descent on the mean squared error. That has a closed form, a linear recurrence
for weight and bias, which every scenario is compared with: a context must not change a result.

Nothing here needs a context to save memory: what is recorded is freed with its tensors. What a
context adds is the certainty that no tape made in one part of a program is used in another.
"""

from __future__ import annotations

import argparse
import gc
import sys
import time
from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import TapeClosedError, Tensor2D, losses, nn, optim
from tapetensor.typing import B, T

LEARNING_RATE = 0.1
Column = Tensor2D[L[8], L[1]]


class Line(nn.Module):
    """``y = weight * x + bias``."""

    layer: nn.Linear[L[1], L[1]]

    def forward(self, x: Tensor2D[B, L[1], T]) -> Tensor2D[B, L[1], T]:
        """Apply the layer."""
        return self.layer.forward(x)


def make_line(seed: int) -> Line:
    """Return a line with random coefficients."""
    return tt.build(Line, rng=np.random.default_rng(seed))


def data() -> tuple[Column, Column]:
    """Return the points and their targets."""
    values = np.linspace(-1.0, 1.0, 8, dtype=np.float32).reshape(8, 1)
    return tt.from_numpy(values, (8, 1)), tt.from_numpy(2.0 * values + 1.0, (8, 1))


def coefficients(model: Line) -> tuple[float, float]:
    """Return weight and bias."""
    return model.layer.weight.item(), model.layer.bias.item()


def expected(start: tuple[float, float], steps: int) -> tuple[float, float]:
    """Return weight and bias after so many steps of gradient descent, in closed form.

    The points have mean 0, so the two errors shrink independently of each other.
    """
    x = np.linspace(-1.0, 1.0, 8)
    shrink_weight = (1.0 - 2.0 * LEARNING_RATE * float(np.mean(x * x))) ** steps
    shrink_bias = (1.0 - 2.0 * LEARNING_RATE) ** steps
    return 2.0 + (start[0] - 2.0) * shrink_weight, 1.0 + (start[1] - 1.0) * shrink_bias


def train_step(model: Line, optimizer: optim.Sgd) -> float:
    """Take one step and return the loss before it."""
    x, y = data()
    loss = losses.mse(model.forward(x.trace()), y)
    value = loss.item()
    optimizer.step(tt.compute_gradients(loss, wrt=model))
    return value


def report(name: str, model: Line, start: tuple[float, float], steps: int) -> None:
    """Print what a model has learnt, and make sure that it is what it must be."""
    reached, wanted = coefficients(model), expected(start, steps)
    print(f"  {name}: weight {reached[0]:.4f}, bias {reached[1]:.4f} after {steps} steps")
    assert np.allclose(reached, wanted, atol=1e-4), f"{name}: {reached} is not {wanted}"


def default_context(steps: int) -> None:
    """Train in context 0, which is always there."""
    print("1. The default context")
    model = make_line(1)
    start = coefficients(model)
    optimizer = optim.Sgd(model, lr=LEARNING_RATE)
    for _ in range(steps):
        train_step(model, optimizer)
        optimizer.zero_grad()
    report("default", model, start, steps)


def custom_context(steps: int) -> None:
    """Train in a context of its own; what is forgotten there cannot be used afterwards."""
    print("2. A custom context")
    model = make_line(2)
    start = coefficients(model)
    optimizer = optim.Sgd(model, lr=LEARNING_RATE)
    x, _ = data()
    with tt.GradientContext():
        for _ in range(steps):
            train_step(model, optimizer)
            tt.clear_tape()
        forgotten = model.forward(x.trace())
    report("custom", model, start, steps)
    try:
        forgotten.mean()
    except TapeClosedError as error:
        print(f"  used after the context: {error}")
    else:
        raise AssertionError("the tape should be closed")
    # The value is still there.
    assert forgotten.detach().numpy().shape == (8, 1)


def two_models(steps: int) -> None:
    """Train a main model in context 0 and, interleaved with it, an auxiliary one in its own.

    In the guide the auxiliary context is alive while the main model runs. So the main model records
    there too, and the call that should clear its tape clears that of context 0, which is empty. A
    context here is active inside its block and nowhere else, and `zero_grad` clears the active one.
    """
    print("3. Two models, each in its own context")
    main_model, aux_model = make_line(3), make_line(4)
    main_start, aux_start = coefficients(main_model), coefficients(aux_model)
    main_optimizer = optim.Sgd(main_model, lr=LEARNING_RATE)
    aux_optimizer = optim.Sgd(aux_model, lr=LEARNING_RATE)
    x, y = data()
    for _ in range(steps):
        main_loss = losses.mse(main_model.forward(x.trace()), y)
        with tt.GradientContext():
            # A whole step of the other model, while the tape of the main one is alive.
            train_step(aux_model, aux_optimizer)
            aux_optimizer.zero_grad()
        main_optimizer.step(tt.compute_gradients(main_loss, wrt=main_model))
        main_optimizer.zero_grad()
    report("main", main_model, main_start, steps)
    report("auxiliary", aux_model, aux_start, steps)


def nested_contexts(steps: int) -> None:
    """Train three models, each in a context inside that of the one before."""
    print("4. Three nested contexts")
    models = [make_line(seed) for seed in (5, 6, 7)]
    starts = [coefficients(model) for model in models]
    outer, middle, inner = [optim.Sgd(model, lr=LEARNING_RATE) for model in models]
    x, y = data()
    for _ in range(steps):
        with tt.GradientContext():
            outer_loss = losses.mse(models[0].forward(x.trace()), y)
            with tt.GradientContext():
                middle_loss = losses.mse(models[1].forward(x.trace()), y)
                with tt.GradientContext():
                    train_step(models[2], inner)
                    tt.clear_tape()
                middle.step(tt.compute_gradients(middle_loss, wrt=models[1]))
            outer.step(tt.compute_gradients(outer_loss, wrt=models[0]))
    for name, model, start in zip(("outer", "middle", "inner"), models, starts, strict=True):
        report(name, model, start, steps)


def allocated_blocks() -> int:
    """Return how many blocks of memory Python's objects take; every array has one at least."""
    gc.collect()
    return sys.getallocatedblocks()


def forgotten_clear(steps: int) -> None:
    """Never clear anything: memory stays flat, and so does the time of a step."""
    print("5. The clear call forgotten")
    model = make_line(8)
    start = coefficients(model)
    optimizer = optim.Sgd(model, lr=LEARNING_RATE)
    part = max(steps // 10, 1)
    for _ in range(part):
        train_step(model, optimizer)
    times = np.zeros(steps - part)
    before = allocated_blocks()
    for step in range(steps - part):
        begin = time.perf_counter()
        train_step(model, optimizer)
        times[step] = time.perf_counter() - begin
    grown = allocated_blocks() - before
    first, last = np.median(times[:part]), np.median(times[-part:])
    report("forgetful", model, start, steps)
    print(
        f"  {steps - part} steps later there are {grown:+d} blocks of memory; a step takes "
        f"{first * 1e6:.0f} us at the beginning and {last * 1e6:.0f} us at the end"
    )
    # A step that leaves a tape behind leaves dozens.
    assert grown < (steps - part) / 2, f"memory grew by {grown} blocks"


def main() -> None:
    """Run all scenarios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--steps", type=int, default=100, help="training steps of scenarios 1 to 4")
    parser.add_argument("--forgetful-steps", type=int, default=10_000, help="of scenario 5")
    arguments = parser.parse_args()
    default_context(arguments.steps)
    custom_context(arguments.steps)
    two_models(arguments.steps)
    nested_contexts(arguments.steps)
    forgotten_clear(arguments.forgetful_steps)


if __name__ == "__main__":
    main()
