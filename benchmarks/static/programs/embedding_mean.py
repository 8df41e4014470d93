"""The mean of word vectors, classified."""
# ruff: noqa: D101, D102, D103

from __future__ import annotations

from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import NoneTape, Tensor1D, Tensor2D, losses, nn, optim
from tapetensor.typing import B, M, T


class BagOfWords(nn.Module):
    table: nn.Embedding[L[20], L[6]]
    out: nn.Linear[L[6], L[2]]

    def forward(self, ids: Tensor2D[B, M, T, np.int64]) -> Tensor2D[B, L[2], T]:
        vectors = self.table.forward(ids)
        return self.out.forward(vectors.mean(axis=1))


def main() -> None:
    rng = np.random.default_rng(0)
    model = tt.build(BagOfWords, rng=rng)
    ids: Tensor2D[L[4], L[7], NoneTape, np.int64] = tt.from_numpy(
        rng.integers(20, size=(4, 7)), (4, 7)
    )
    labels: Tensor1D[L[4], NoneTape, np.int64] = tt.from_numpy([0, 1, 1, 0], (4,), np.int64)
    optimizer = optim.Adam(model, lr=0.01)
    for _ in range(3):
        loss = losses.cross_entropy(model.forward(ids.trace()), labels)
        optimizer.step(loss.backward(wrt=model))
    assert model.forward(ids).shape == (4, 2)


if __name__ == "__main__":
    main()
