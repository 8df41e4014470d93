"""The input squeezed through few features and back."""
# ruff: noqa: D101, D102, D103

from __future__ import annotations

from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import Tensor2D, losses, nn, optim
from tapetensor.typing import B, T


class Autoencoder(nn.Module):
    down: nn.Linear[L[8], L[5]]
    code: nn.Linear[L[5], L[2]]
    up: nn.Linear[L[2], L[5]]
    out: nn.Linear[L[5], L[8]]

    def encode(self, x: Tensor2D[B, L[8], T]) -> Tensor2D[B, L[2], T]:
        return self.code.forward(self.down.forward(x).relu())

    def decode(self, z: Tensor2D[B, L[2], T]) -> Tensor2D[B, L[8], T]:
        return self.out.forward(self.up.forward(z).relu())

    def forward(self, x: Tensor2D[B, L[8], T]) -> Tensor2D[B, L[8], T]:
        return self.decode(self.encode(x))


def main() -> None:
    rng = np.random.default_rng(0)
    model = tt.build(Autoencoder, rng=rng)
    x: Tensor2D[L[6], L[8]] = tt.uniform((6, 8), rng=rng)
    optimizer = optim.Adam(model, lr=0.01)
    for _ in range(3):
        loss = losses.mse(model.forward(x.trace()), x)
        optimizer.step(loss.backward(wrt=model))
    assert model.encode(x).shape == (6, 2)


if __name__ == "__main__":
    main()
