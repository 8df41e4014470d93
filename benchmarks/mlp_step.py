"""One training step of a 64-32-10 MLP, batch 32, Adam: tapetensor beside numpy written by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal as L

import numpy as np

import tapetensor as tt
from benchmarks.timing import interleaved_medians
from tapetensor import NoneTape, Tensor1D, Tensor2D, losses, nn, optim
from tapetensor.gradients import Array
from tapetensor.typing import B, T

LEARNING_RATE = 1e-3
BETAS = (0.9, 0.999)
EPS = 1e-8


class Mlp(nn.Module):
    """The model of workload W1."""

    hidden: nn.Linear[L[64], L[32]]
    out: nn.Linear[L[32], L[10]]

    def forward(self, x: Tensor2D[B, L[64], T]) -> Tensor2D[B, L[10], T]:
        """Return the logits."""
        return self.out.forward(self.hidden.forward(x).relu())


def tapetensor_step(
    model: Mlp, x: Tensor2D[L[32], L[64]], labels: Tensor1D[L[32], NoneTape, np.int64]
) -> Callable[[], float]:
    """Return a training step that returns its loss."""
    optimizer = optim.Adam(model, lr=LEARNING_RATE, betas=BETAS, eps=EPS)

    def step() -> float:
        loss = losses.cross_entropy(model.forward(x.trace()), labels)
        value = loss.item()
        optimizer.step(loss.backward(wrt=model))
        return value

    return step


def numpy_step(parameters: list[Array], x: Array, labels: Array) -> Callable[[], float]:
    """Return the same step in plain numpy, which allocates freely."""
    w1, b1, w2, b2 = parameters
    means = [np.zeros_like(p) for p in parameters]
    squares = [np.zeros_like(p) for p in parameters]
    rows = np.arange(len(labels))
    count = 0

    def step() -> float:
        nonlocal w1, b1, w2, b2, count
        h = x @ w1.T + b1
        a = np.maximum(h, 0)
        logits = a @ w2.T + b2
        shifted = logits - logits.max(axis=1, keepdims=True)
        log_probabilities = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
        value = -log_probabilities[rows, labels].mean()
        g = np.exp(log_probabilities)
        g[rows, labels] -= 1
        g /= len(labels)
        g_hidden = (g @ w2) * (h > 0)
        gradients = [g_hidden.T @ x, g_hidden.sum(0), g.T @ a, g.sum(0)]
        count += 1
        updated = []
        for i, (p, gradient) in enumerate(zip([w1, b1, w2, b2], gradients, strict=True)):
            means[i] = BETAS[0] * means[i] + (1 - BETAS[0]) * gradient
            squares[i] = BETAS[1] * squares[i] + (1 - BETAS[1]) * gradient * gradient
            mean = means[i] / (1 - BETAS[0] ** count)
            square = squares[i] / (1 - BETAS[1] ** count)
            updated.append(p - LEARNING_RATE * mean / (np.sqrt(square) + EPS))
        w1, b1, w2, b2 = updated
        return float(value)

    return step


def make() -> dict[str, Callable[[], float]]:
    """Return both steps, from the same weights and data."""
    rng = np.random.default_rng(0)
    model = tt.build(Mlp, rng=rng)
    x: Tensor2D[L[32], L[64]] = tt.normal((32, 64), rng=rng)
    labels: Tensor1D[L[32], NoneTape, np.int64] = tt.from_numpy(rng.integers(10, size=32), (32,))
    parameters = [p.numpy().copy() for p in model.parameters().values()]
    return {
        "tapetensor": tapetensor_step(model, x, labels),
        "numpy": numpy_step(parameters, x.numpy(), labels.numpy()),
    }


def measure(rounds: int = 2000) -> dict[str, float]:
    """Return the median seconds of each step, after checking that both compute the same."""
    steps = make()
    losses_of_five = {name: [step() for _ in range(5)] for name, step in steps.items()}
    np.testing.assert_allclose(
        losses_of_five["tapetensor"], losses_of_five["numpy"], rtol=1e-4, atol=0
    )
    return interleaved_medians(steps, rounds)


def main() -> None:
    """Print both times and their ratio."""
    medians = measure()
    print("A training step of a 64-32-10 MLP, batch 32, Adam, microseconds")
    print(f"numpy by hand  {medians['numpy'] * 1e6:8.1f}")
    print(f"tapetensor     {medians['tapetensor'] * 1e6:8.1f}")
    print(f"ratio          {medians['tapetensor'] / medians['numpy']:8.2f}")


if __name__ == "__main__":
    main()
