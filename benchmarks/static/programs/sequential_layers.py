"""Layers one after another, without a forward of one's own."""
# ruff: noqa: D103

from __future__ import annotations

from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import NoneTape, OwnedTape, Tensor1D, Tensor2D, losses, nn, optim


def main() -> None:
    rng = np.random.default_rng(0)
    first: nn.Linear[L[6], L[8]] = nn.Linear(6, 8, rng=rng)
    norm: nn.LayerNorm[L[8]] = nn.LayerNorm(8)
    last: nn.Linear[L[8], L[3]] = nn.Linear(8, 3, rng=rng)
    model = nn.Sequential(first, norm, nn.GELU(), last)
    x: Tensor2D[L[5], L[6]] = tt.normal((5, 6), rng=rng)
    labels: Tensor1D[L[5], NoneTape, np.int64] = tt.from_numpy(rng.integers(3, size=5), (5,))
    optimizer = optim.Adam(model, lr=0.01)
    for _ in range(2):
        logits: Tensor2D[L[5], L[3], OwnedTape] = model.forward(x.trace())
        loss = losses.cross_entropy(logits, labels)
        optimizer.step(loss.backward(wrt=model))
    output: Tensor2D[L[5], L[3]] = model.forward(x)
    assert output.argmax(axis=-1).shape == (5,)


if __name__ == "__main__":
    main()
