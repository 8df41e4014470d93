"""An epoch of batches of one size."""
# ruff: noqa: D101, D102, D103

from __future__ import annotations

from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import Tensor2D, data, losses, nn, optim
from tapetensor.typing import B, T


class Model(nn.Module):
    layer: nn.Linear[L[3], L[2]]

    def forward(self, x: Tensor2D[B, L[3], T]) -> Tensor2D[B, L[2], T]:
        return self.layer.forward(x)


def main() -> None:
    rng = np.random.default_rng(0)
    model = tt.build(Model, rng=rng)
    x: Tensor2D[L[20], L[3]] = tt.normal((20, 3), rng=rng)
    y: Tensor2D[L[20], L[2]] = tt.normal((20, 2), rng=rng)
    optimizer = optim.Adam(model, lr=0.01)
    size: L[5] = 5
    total = 0.0
    for batch_x, batch_y in data.batches_exact(x, y, size=size, rng=rng):
        loss = losses.mse(model.forward(batch_x.trace()), batch_y)
        total += loss.item()
        optimizer.step(loss.backward(wrt=model))
    assert total > 0.0


if __name__ == "__main__":
    main()
