"""A convolution whose stride is its size, by reshape and a matrix product."""
# ruff: noqa: D101, D102, D103

from __future__ import annotations

from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import NoneTape, Tensor1D, Tensor2D, Tensor3D, Tensor5D, losses, nn, optim
from tapetensor.typing import T


class Patches(nn.Module):
    embed: nn.Linear[L[4], L[8]]
    norm: nn.LayerNorm[L[8]]
    head: nn.Linear[L[8], L[3]]

    def forward(self, images: Tensor3D[L[2], L[6], L[6], T]) -> Tensor2D[L[2], L[3], T]:
        blocks: Tensor5D[L[2], L[3], L[2], L[3], L[2], T] = images.reshape((2, 3, 2, 3, 2))
        rows: Tensor5D[L[2], L[3], L[3], L[2], L[2], T] = blocks.permute_dims((0, 1, 3, 2, 4))
        patches: Tensor3D[L[2], L[9], L[4], T] = rows.reshape((2, 9, 4))
        features = self.norm.forward(self.embed.forward(patches)).relu()
        return self.head.forward(features.mean(axis=1))


def main() -> None:
    rng = np.random.default_rng(0)
    model = tt.build(Patches, rng=rng)
    images: Tensor3D[L[2], L[6], L[6]] = tt.uniform((2, 6, 6), rng=rng)
    labels: Tensor1D[L[2], NoneTape, np.int64] = tt.arange(2)
    loss = losses.cross_entropy(model.forward(images.trace()), labels)
    optim.Adam(model, lr=0.01).step(loss.backward(wrt=model))
    assert model.forward(images).shape == (2, 3)


if __name__ == "__main__":
    main()
