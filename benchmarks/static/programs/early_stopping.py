"""A loop that stops when the held-out loss does not fall."""
# ruff: noqa: D101, D102, D103

from __future__ import annotations

from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import Tensor2D, losses, nn, optim
from tapetensor.typing import B, T


class Model(nn.Module):
    hidden: nn.Linear[L[2], L[8]]
    out: nn.Linear[L[8], L[1]]

    def forward(self, x: Tensor2D[B, L[2], T]) -> Tensor2D[B, L[1], T]:
        return self.out.forward(self.hidden.forward(x).softplus())


def main() -> None:
    rng = np.random.default_rng(0)
    model = tt.build(Model, rng=rng)
    x: Tensor2D[L[16], L[2]] = tt.normal((16, 2), rng=rng)
    y = x.sum(axis=1, keepdims=True)
    optimizer = optim.Sgd(model, lr=0.05, momentum=0.9)
    best = float("inf")
    for _ in range(6):
        prediction = model.forward(x.trace())
        loss = losses.mse(prediction, y)
        optimizer.step(loss.backward(wrt=model))
        held_out = losses.mse(model.forward(x), y).item()
        if held_out > best:
            break
        best = held_out
    assert best < float("inf")


if __name__ == "__main__":
    main()
