"""Two classes told apart by one layer."""
# ruff: noqa: D101, D102, D103

from __future__ import annotations

from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import Tensor1D, Tensor2D, losses, nn, optim
from tapetensor.typing import B, T


class Classifier(nn.Module):
    score: nn.Linear[L[4], L[1]]

    def forward(self, x: Tensor2D[B, L[4], T]) -> Tensor1D[B, T]:
        return self.score.forward(x).squeeze(-1)


def main() -> None:
    rng = np.random.default_rng(0)
    model = tt.build(Classifier, rng=rng)
    x: Tensor2D[L[16], L[4]] = tt.normal((16, 4), rng=rng)
    labels = (x.sum(axis=1) > 0.0).astype(np.float32)
    optimizer = optim.Sgd(model, lr=0.5)
    for _ in range(4):
        logits = model.forward(x.trace())
        loss = losses.binary_cross_entropy_with_logits(logits, labels)
        optimizer.step(loss.backward(wrt=model))
    probabilities = model.forward(x).sigmoid()
    assert probabilities.shape == (16,)


if __name__ == "__main__":
    main()
