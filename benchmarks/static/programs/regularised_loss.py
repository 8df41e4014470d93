"""A loss with a penalty on the weights."""
# ruff: noqa: D101, D102, D103

from __future__ import annotations

from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import OwnedTape, Tensor0D, Tensor2D, losses, nn, optim
from tapetensor.typing import B, T


class Model(nn.Module):
    layer: nn.Linear[L[6], L[2]]

    def forward(self, x: Tensor2D[B, L[6], T]) -> Tensor2D[B, L[2], T]:
        return self.layer.forward(x)


def penalty(model: Model) -> Tensor0D[OwnedTape]:
    return model.layer.weight.trace().square().sum() * 0.01


def main() -> None:
    rng = np.random.default_rng(0)
    model = tt.build(Model, rng=rng)
    x: Tensor2D[L[5], L[6]] = tt.normal((5, 6), rng=rng)
    y: Tensor2D[L[5], L[2]] = tt.normal((5, 2), rng=rng)
    optimizer = optim.Sgd(model, lr=0.1)
    for _ in range(3):
        loss = losses.mse(model.forward(x.trace()), y) + penalty(model)
        optimizer.step(loss.backward(wrt=model))
    assert penalty(model).item() > 0.0


if __name__ == "__main__":
    main()
