"""Two inputs side by side."""
# ruff: noqa: D101, D102, D103

from __future__ import annotations

from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import Tensor2D, losses, nn, optim
from tapetensor.typing import B, T


class TwoInputs(nn.Module):
    left: nn.Linear[L[3], L[4]]
    right: nn.Linear[L[5], L[4]]
    out: nn.Linear[L[8], L[2]]

    def forward(self, a: Tensor2D[B, L[3], T], b: Tensor2D[B, L[5], T]) -> Tensor2D[B, L[2], T]:
        left = self.left.forward(a).relu()
        right = self.right.forward(b).relu()
        both: Tensor2D[B, L[8], T] = tt.concat((left, right), axis=-1)
        return self.out.forward(both)


def main() -> None:
    rng = np.random.default_rng(0)
    model = tt.build(TwoInputs, rng=rng)
    a: Tensor2D[L[6], L[3]] = tt.normal((6, 3), rng=rng)
    b: Tensor2D[L[6], L[5]] = tt.normal((6, 5), rng=rng)
    target: Tensor2D[L[6], L[2]] = tt.zeros((6, 2))
    loss = losses.mse(model.forward(a.trace(), b.trace()), target)
    optim.Adam(model, lr=0.01).step(loss.backward(wrt=model))
    joined: Tensor2D[L[6], L[8]] = tt.concat((a, b), axis=1)
    assert joined.sum(axis=0).shape == (8,)
    assert model.forward(a, b).shape == (6, 2)


if __name__ == "__main__":
    main()
