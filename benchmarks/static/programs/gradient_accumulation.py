"""Three small batches count as one large one."""
# ruff: noqa: D101, D102, D103

from __future__ import annotations

from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import Tensor2D, losses, nn, optim
from tapetensor.typing import B, T


class Model(nn.Module):
    layer: nn.Linear[L[5], L[2]]

    def forward(self, x: Tensor2D[B, L[5], T]) -> Tensor2D[B, L[2], T]:
        return self.layer.forward(x).tanh()


def main() -> None:
    rng = np.random.default_rng(0)
    model = tt.build(Model, rng=rng)
    optimizer = optim.Sgd(model, lr=0.1)
    target: Tensor2D[L[4], L[2]] = tt.zeros((4, 2))
    x: Tensor2D[L[4], L[5]] = tt.normal((4, 5), rng=rng)
    grads = losses.mse(model.forward(x.trace()), target).backward()
    for _ in range(2):
        more: Tensor2D[L[4], L[5]] = tt.normal((4, 5), rng=rng)
        loss = losses.mse(model.forward(more.trace(grads)), target) / 3.0
        grads = loss.backward()
    assert grads[model.layer.weight].shape == (2, 5)
    optimizer.step(grads)


if __name__ == "__main__":
    main()
