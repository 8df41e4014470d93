"""A recurrent network that takes one step after another."""
# ruff: noqa: D101, D102, D103

from __future__ import annotations

from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import Tensor2D, Tensor3D, losses, nn, optim
from tapetensor.typing import B, T


class Cell(nn.Module):
    inner: nn.Linear[L[3], L[5]]
    state: nn.Linear[L[5], L[5]]

    def forward(self, x: Tensor2D[B, L[3]], h: Tensor2D[B, L[5], T]) -> Tensor2D[B, L[5], T]:
        seen = self.inner.forward(x.retaped(h.tape_type))
        return (self.state.forward(h) + seen).tanh()


def main() -> None:
    rng = np.random.default_rng(0)
    cell = tt.build(Cell, rng=rng)
    steps: Tensor3D[L[6], L[2], L[3]] = tt.normal((6, 2, 3), rng=rng)
    start: Tensor2D[L[2], L[5]] = tt.zeros((2, 5))
    target: Tensor2D[L[2], L[5]] = tt.ones((2, 5))
    h = start.trace()
    for x in steps:
        h = cell.forward(x, h)
    loss = losses.mse(h, target)
    grads = loss.backward(wrt=cell)
    assert grads[cell.state.weight].shape == (5, 5)
    optim.Sgd(cell, lr=0.1).step(grads)


if __name__ == "__main__":
    main()
