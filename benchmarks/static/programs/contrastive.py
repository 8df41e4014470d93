"""Pairs that belong together find each other in the batch."""
# ruff: noqa: D101, D102, D103

from __future__ import annotations

from typing import Generic
from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import NoneTape, Tensor1D, Tensor2D, losses, nn
from tapetensor.typing import B, N, T


class Tower(nn.Module, Generic[N]):
    project: nn.Linear[N, L[4]]

    def forward(self, x: Tensor2D[B, N, T]) -> Tensor2D[B, L[4], T]:
        y = self.project.forward(x)
        length = y.square().sum(axis=-1, keepdims=True).sqrt()
        return y / (length + 1e-6)


def main() -> None:
    rng = np.random.default_rng(0)
    text = tt.build(Tower[L[5]], rng=rng)
    image = tt.build(Tower[L[7]], rng=rng)
    words: Tensor2D[L[6], L[5]] = tt.normal((6, 5), rng=rng)
    pixels: Tensor2D[L[6], L[7]] = tt.normal((6, 7), rng=rng)
    labels: Tensor1D[L[6], NoneTape, np.int64] = tt.arange(6)
    similarity = text.forward(words.trace()) @ image.forward(pixels.trace()).transpose()
    loss = losses.cross_entropy(similarity * 10.0, labels)
    grads = loss.backward()
    assert grads[text.project.weight].shape == (4, 5)
    assert grads[image.project.weight].shape == (4, 7)


if __name__ == "__main__":
    main()
