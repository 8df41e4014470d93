"""A sequence of layers built from its annotation."""
# ruff: noqa: D101, D102, D103

from __future__ import annotations

from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import Tensor2D, losses, nn, optim
from tapetensor.typing import B, T


class Net(nn.Module):
    body: nn.Sequential[nn.Linear[L[4], L[6]], nn.Tanh, nn.Linear[L[6], L[6]], nn.ReLU]
    head: nn.Linear[L[6], L[2]]

    def forward(self, x: Tensor2D[B, L[4], T]) -> Tensor2D[B, L[2], T]:
        features: Tensor2D[B, L[6], T] = self.body.forward(x)
        return self.head.forward(features)


def main() -> None:
    rng = np.random.default_rng(0)
    model = tt.build(Net, rng=rng)
    x: Tensor2D[L[7], L[4]] = tt.normal((7, 4), rng=rng)
    y: Tensor2D[L[7], L[2]] = tt.zeros((7, 2))
    loss = losses.mse(model.forward(x.trace()), y)
    optim.Sgd(model, lr=0.1).step(loss.backward(wrt=model))
    assert model.forward(x).shape == (7, 2)


if __name__ == "__main__":
    main()
