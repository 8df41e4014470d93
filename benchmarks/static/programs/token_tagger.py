"""A label for every position of a sequence."""
# ruff: noqa: D101, D102, D103

from __future__ import annotations

from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import NoneTape, Tensor2D, Tensor3D, losses, nn, optim
from tapetensor.typing import B, M, T


class Tagger(nn.Module):
    table: nn.Embedding[L[12], L[5]]
    norm: nn.LayerNorm[L[5]]
    hidden: nn.Linear[L[5], L[9]]
    out: nn.Linear[L[9], L[4]]

    def forward(self, ids: Tensor2D[B, M, T, np.int64]) -> Tensor3D[B, M, L[4], T]:
        vectors = self.norm.forward(self.table.forward(ids))
        return self.out.forward(self.hidden.forward(vectors).silu())


def main() -> None:
    rng = np.random.default_rng(0)
    model = tt.build(Tagger, rng=rng)
    ids: Tensor2D[L[3], L[6], NoneTape, np.int64] = tt.from_numpy(
        rng.integers(12, size=(3, 6)), (3, 6)
    )
    tags: Tensor2D[L[3], L[6], NoneTape, np.int64] = tt.from_numpy(
        rng.integers(4, size=(3, 6)), (3, 6)
    )
    logits = model.forward(ids.trace())
    loss = losses.cross_entropy(logits, tags)
    optim.Sgd(model, lr=0.1).step(loss.backward(wrt=model))
    assert model.forward(ids).argmax(axis=-1).shape == (3, 6)


if __name__ == "__main__":
    main()
