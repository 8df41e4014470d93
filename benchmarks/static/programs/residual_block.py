"""Two layers around which the input is added."""
# ruff: noqa: D101, D102, D103

from __future__ import annotations

from typing import Generic
from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import Tensor1D, Tensor2D, nn, optim
from tapetensor.typing import B, N, T


class Block(nn.Module, Generic[N]):
    narrow: nn.Linear[N, L[4]]
    widen: nn.Linear[L[4], N]

    def forward(self, x: Tensor2D[B, N, T]) -> Tensor2D[B, N, T]:
        inner = self.narrow.forward(x).relu()
        return x + self.widen.forward(inner)


class Tower(nn.Module):
    first: Block[L[6]]
    blocks: list[Block[L[6]]] = nn.repeat(2)
    head: nn.Linear[L[6], L[1]]

    def forward(self, x: Tensor2D[B, L[6], T]) -> Tensor1D[B, T]:
        y = self.first.forward(x)
        for block in self.blocks:
            y = block.forward(y)
        return self.head.forward(y).squeeze(-1)


def main() -> None:
    rng = np.random.default_rng(0)
    model = tt.build(Tower, rng=rng)
    x: Tensor2D[L[3], L[6]] = tt.normal((3, 6), rng=rng)
    loss = model.forward(x.trace()).square().mean()
    optim.Adam(model, lr=0.001).step(loss.backward(wrt=model))
    assert model.forward(x).shape == (3,)


if __name__ == "__main__":
    main()
