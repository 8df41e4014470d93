"""Pooling by logsumexp over time."""
# ruff: noqa: D101, D102, D103

from __future__ import annotations

from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import NoneTape, Tensor1D, Tensor2D, Tensor3D, losses, nn, optim
from tapetensor.typing import B, M, T


class Pool(nn.Module):
    score: nn.Linear[L[4], L[6]]

    def forward(self, x: Tensor3D[B, M, L[4], T]) -> Tensor2D[B, L[6], T]:
        return self.score.forward(x).logsumexp(axis=1)


def main() -> None:
    rng = np.random.default_rng(0)
    model = tt.build(Pool, rng=rng)
    x: Tensor3D[L[2], L[5], L[4]] = tt.normal((2, 5, 4), rng=rng)
    labels: Tensor1D[L[2], NoneTape, np.int64] = tt.arange(2)
    loss = losses.cross_entropy(model.forward(x.trace()), labels)
    optim.Adam(model, lr=0.01).step(loss.backward(wrt=model))
    pooled = model.forward(x)
    largest = pooled.max(axis=-1, keepdims=True)
    assert (pooled - largest).max().item() == 0.0


if __name__ == "__main__":
    main()
