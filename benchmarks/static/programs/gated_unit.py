"""Features split into values and gates."""
# ruff: noqa: D101, D102, D103

from __future__ import annotations

from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import Tensor2D, losses, nn, optim
from tapetensor.typing import B, T


class Gated(nn.Module):
    widen: nn.Linear[L[4], L[12]]
    narrow: nn.Linear[L[6], L[4]]

    def forward(self, x: Tensor2D[B, L[4], T]) -> Tensor2D[B, L[4], T]:
        values, gates = self.widen.forward(x).split(2, axis=-1)
        return self.narrow.forward(values * gates.sigmoid())


def main() -> None:
    rng = np.random.default_rng(0)
    model = tt.build(Gated, rng=rng)
    x: Tensor2D[L[3], L[4]] = tt.normal((3, 4), rng=rng)
    y: Tensor2D[L[3], L[4]] = tt.zeros((3, 4))
    loss = losses.mse(model.forward(x.trace()), y)
    optim.Sgd(model, lr=0.1).step(loss.backward(wrt=model))
    assert model.forward(x).shape == (3, 4)


if __name__ == "__main__":
    main()
