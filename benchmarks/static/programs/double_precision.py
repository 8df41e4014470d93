"""The same model in float64."""
# ruff: noqa: D101, D102, D103

from __future__ import annotations

from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import NoneTape, Tensor2D, losses, nn
from tapetensor.typing import B, T


class Model(nn.Module):
    hidden: nn.Linear[L[3], L[5], np.float64]
    out: nn.Linear[L[5], L[1], np.float64]

    def forward(self, x: Tensor2D[B, L[3], T, np.float64]) -> Tensor2D[B, L[1], T, np.float64]:
        return self.out.forward(self.hidden.forward(x).sin())


def main() -> None:
    rng = np.random.default_rng(0)
    model = tt.build(Model, rng=rng)
    x: Tensor2D[L[4], L[3], NoneTape, np.float64] = tt.normal((4, 3), np.float64, rng=rng)
    y: Tensor2D[L[4], L[1], NoneTape, np.float64] = tt.ones((4, 1), np.float64)
    loss = losses.mse(model.forward(x.trace()), y)
    grads = loss.backward(wrt=model)
    assert grads[model.out.weight].dtype == np.float64
    small = x.astype(np.float32)
    plain: Tensor2D[L[4], L[3]] = tt.ones((4, 3))
    assert (small + plain).shape == (4, 3)


if __name__ == "__main__":
    main()
