"""A feed-forward block of a transformer, normalized first."""
# ruff: noqa: D101, D102, D103

from __future__ import annotations

from typing import Generic
from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import Tensor2D, Tensor3D, losses, nn
from tapetensor.typing import B, M, N, T


class FeedForward(nn.Module, Generic[N]):
    norm: nn.LayerNorm[N]
    up: nn.Linear[N, L[16]]
    down: nn.Linear[L[16], N]

    def forward(self, x: Tensor3D[B, M, N, T]) -> Tensor3D[B, M, N, T]:
        y = self.norm.forward(x)
        y = self.down.forward(self.up.forward(y).gelu())
        return y + x


def main() -> None:
    rng = np.random.default_rng(0)
    block = tt.build(FeedForward[L[8]], rng=rng)
    x: Tensor3D[L[2], L[5], L[8]] = tt.normal((2, 5, 8), rng=rng)
    y = block.forward(x.trace())
    pooled = y.mean(axis=1)
    target: Tensor2D[L[2], L[8]] = tt.zeros((2, 8))
    grads = losses.mse(pooled, target).backward()
    assert grads[block.up.weight].shape == (16, 8)
    assert grads[x].shape == (2, 5, 8)


if __name__ == "__main__":
    main()
