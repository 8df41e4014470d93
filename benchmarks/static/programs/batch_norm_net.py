"""Training moves the running statistics, inference uses them."""
# ruff: noqa: D101, D102, D103

from __future__ import annotations

from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import Tensor2D, losses, nn, optim
from tapetensor.typing import B, T


class Net(nn.Module):
    hidden: nn.Linear[L[4], L[6]]
    norm: nn.BatchNorm1d[L[6]]
    out: nn.Linear[L[6], L[2]]

    def forward(self, x: Tensor2D[B, L[4], T]) -> Tensor2D[B, L[2], T]:
        return self.out.forward(self.norm.forward(self.hidden.forward(x)).relu())


def main() -> None:
    rng = np.random.default_rng(0)
    model = tt.build(Net, rng=rng)
    x: Tensor2D[L[8], L[4]] = tt.normal((8, 4), rng=rng)
    y: Tensor2D[L[8], L[2]] = tt.normal((8, 2), rng=rng)
    optimizer = optim.AdamW(model, lr=0.01)
    for _ in range(3):
        loss = losses.huber(model.forward(x.trace()), y)
        optimizer.step(loss.backward(wrt=model))
    one: Tensor2D[L[1], L[4]] = tt.ones((1, 4))
    assert model.forward(one).shape == (1, 2)


if __name__ == "__main__":
    main()
