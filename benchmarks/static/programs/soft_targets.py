"""Labels turned into smoothed distributions."""
# ruff: noqa: D101, D102, D103

from __future__ import annotations

from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import NoneTape, Tensor1D, Tensor2D, data, losses, nn, optim
from tapetensor.typing import B, T


class Model(nn.Module):
    layer: nn.Linear[L[5], L[4]]

    def forward(self, x: Tensor2D[B, L[5], T]) -> Tensor2D[B, L[4], T]:
        return self.layer.forward(x)


def smoothed(labels: Tensor1D[B, NoneTape, np.int64]) -> Tensor2D[B, L[4]]:
    classes: L[4] = 4
    return data.one_hot(labels, classes) * 0.9 + 0.025


def main() -> None:
    rng = np.random.default_rng(0)
    model = tt.build(Model, rng=rng)
    x: Tensor2D[L[6], L[5]] = tt.normal((6, 5), rng=rng)
    labels: Tensor1D[L[6], NoneTape, np.int64] = tt.from_numpy(rng.integers(4, size=6), (6,))
    logits = model.forward(x.trace())
    loss = losses.cross_entropy_with_probabilities(logits, smoothed(labels))
    optim.AdamW(model, lr=0.01).step(loss.backward(wrt=model))
    assert abs(smoothed(labels).sum(axis=-1).mean().item() - 1.0) < 1e-5


if __name__ == "__main__":
    main()
