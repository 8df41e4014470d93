"""One hidden layer, integer labels, Adam."""
# ruff: noqa: D101, D102, D103

from __future__ import annotations

from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import NoneTape, Tensor1D, Tensor2D, losses, nn, optim
from tapetensor.typing import B, T


class Mlp(nn.Module):
    hidden: nn.Linear[L[6], L[8]]
    out: nn.Linear[L[8], L[3]]

    def forward(self, x: Tensor2D[B, L[6], T]) -> Tensor2D[B, L[3], T]:
        return self.out.forward(self.hidden.forward(x).relu())


def accuracy(model: Mlp, x: Tensor2D[B, L[6]], labels: Tensor1D[B, NoneTape, np.int64]) -> float:
    right = model.forward(x).argmax(axis=-1) == labels
    return right.astype(np.float32).mean().item()


def main() -> None:
    rng = np.random.default_rng(0)
    model = tt.build(Mlp, rng=rng)
    x: Tensor2D[L[12], L[6]] = tt.normal((12, 6), rng=rng)
    labels: Tensor1D[L[12], NoneTape, np.int64] = tt.from_numpy(rng.integers(3, size=12), (12,))
    optimizer = optim.Adam(model, lr=0.01)
    for _ in range(3):
        loss = losses.cross_entropy(model.forward(x.trace()), labels)
        optimizer.step(loss.backward(wrt=model))
    assert 0.0 <= accuracy(model, x, labels) <= 1.0


if __name__ == "__main__":
    main()
