"""A convolutional network: two convolutions, two poolings, a decoder that stretches again."""
# ruff: noqa: D101, D102, D103

from __future__ import annotations

from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import NoneTape, Tensor1D, Tensor2D, Tensor4D, losses, nn, optim
from tapetensor.typing import B, T

FEATURES: L[72] = 72


class ConvNet(nn.Module):
    first: nn.Conv2d[L[3], L[6], L[3], L[1], L[1]]
    norm: nn.BatchNorm2d[L[6]]
    second: nn.Conv2d[L[6], L[8], L[3], L[1], L[1]]
    pool: nn.MaxPool2d[L[2]]
    back: nn.ConvTranspose2d[L[8], L[3], L[4], L[4]]
    out: nn.Linear[L[72], L[5]]

    def features(self, x: Tensor4D[B, L[3], L[12], L[12], T]) -> Tensor4D[B, L[8], L[3], L[3], T]:
        edges = self.pool.forward(self.norm.forward(self.first.forward(x)).relu())
        return self.pool.forward(self.second.forward(edges).relu())

    def forward(self, x: Tensor4D[B, L[3], L[12], L[12], T]) -> Tensor2D[B, L[5], T]:
        batch, *_ = x.shape
        return self.out.forward(self.features(x).reshape((batch, FEATURES)))

    def restored(self, x: Tensor4D[B, L[3], L[12], L[12], T]) -> Tensor4D[B, L[3], L[12], L[12], T]:
        return self.back.forward(self.features(x))


def main() -> None:
    rng = np.random.default_rng(0)
    model = tt.build(ConvNet, rng=rng)
    optimizer = optim.Sgd(model, lr=0.01)
    images: Tensor4D[L[4], L[3], L[12], L[12]] = tt.uniform((4, 3, 12, 12), rng=rng)
    labels: Tensor1D[L[4], NoneTape, np.int64] = tt.from_numpy([0, 1, 2, 3], (4,), np.int64)
    loss = losses.cross_entropy(model.forward(images.trace()), labels)
    loss = loss + losses.mse(model.restored(images.trace()), images)
    optimizer.step(loss.backward(wrt=model))
    small = tt.avg_pool2d(images, 3)
    large: Tensor4D[L[4], L[3], L[12], L[12]] = tt.upscale2d(small, (12, 12))
    assert (large - images).shape == (4, 3, 12, 12)


if __name__ == "__main__":
    main()
