"""Channels mixed at every pixel, then pooled."""
# ruff: noqa: D101, D102, D103

from __future__ import annotations

from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import Tensor2D, Tensor4D, losses, nn
from tapetensor.typing import B, M, N, T


class Pointwise(nn.Module):
    mix: nn.Linear[L[3], L[8]]
    narrow: nn.Linear[L[8], L[4]]

    def forward(self, x: Tensor4D[B, M, N, L[3], T]) -> Tensor2D[B, L[4], T]:
        features = self.mix.forward(x).relu()
        channels = self.narrow.forward(features)
        return channels.mean(axis=1).mean(axis=1)


def main() -> None:
    rng = np.random.default_rng(0)
    model = tt.build(Pointwise, rng=rng)
    images: Tensor4D[L[2], L[5], L[6], L[3]] = tt.uniform((2, 5, 6, 3), rng=rng)
    brightness = images.mean(axis=-1, keepdims=True)
    centred = images - brightness
    target: Tensor2D[L[2], L[4]] = tt.ones((2, 4))
    loss = losses.mse(model.forward(centred.trace()), target)
    grads = loss.backward(wrt=model)
    assert grads[model.mix.weight].shape == (8, 3)


if __name__ == "__main__":
    main()
