"""Dropout in training, the identity in inference."""
# ruff: noqa: D101, D102, D103

from __future__ import annotations

from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import Tensor2D, losses, nn, optim
from tapetensor.typing import B, T


class Net(nn.Module):
    hidden: nn.Linear[L[5], L[12]]
    drop: nn.Dropout = nn.options(p=0.5)
    out: nn.Linear[L[12], L[2]]

    def forward(self, x: Tensor2D[B, L[5], T]) -> Tensor2D[B, L[2], T]:
        return self.out.forward(self.drop.forward(self.hidden.forward(x).silu()))


def main() -> None:
    rng = np.random.default_rng(0)
    model = tt.build(Net, rng=rng)
    x: Tensor2D[L[4], L[5]] = tt.normal((4, 5), rng=rng)
    y: Tensor2D[L[4], L[2]] = tt.normal((4, 2), rng=rng)
    optimizer = optim.Adam(model, lr=0.01)
    for epoch in range(3):
        optimizer.lr = 0.01 / (epoch + 1)
        loss = losses.mse(model.forward(x.trace()), y)
        optimizer.step(loss.backward(wrt=model))
    assert (model.forward(x) == model.forward(x)).astype(np.float32).min().item() == 1.0


if __name__ == "__main__":
    main()
