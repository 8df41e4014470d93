"""Several outputs weighed by a gate."""
# ruff: noqa: D101, D102, D103

from __future__ import annotations

from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import Tensor2D, Tensor3D, losses, nn, optim
from tapetensor.typing import T


class Mixture(nn.Module):
    gate: nn.Linear[L[5], L[3]]
    heads: nn.Linear[L[5], L[6]]

    def forward(self, x: Tensor2D[L[4], L[5], T]) -> Tensor2D[L[4], L[2], T]:
        weights = self.gate.forward(x).softmax(axis=-1)
        outputs: Tensor3D[L[4], L[3], L[2], T] = self.heads.forward(x).reshape((4, 3, 2))
        weighed = outputs.transpose() @ weights.expand_dims(-1)
        return weighed.squeeze(-1)


def main() -> None:
    rng = np.random.default_rng(0)
    model = tt.build(Mixture, rng=rng)
    x: Tensor2D[L[4], L[5]] = tt.normal((4, 5), rng=rng)
    y: Tensor2D[L[4], L[2]] = tt.normal((4, 2), rng=rng)
    loss = losses.mae(model.forward(x.trace()), y)
    optim.Adam(model, lr=0.01).step(loss.backward(wrt=model))
    assert model.forward(x).shape == (4, 2)


if __name__ == "__main__":
    main()
