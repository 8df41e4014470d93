"""Broadcasts over channels, rows and images."""
# ruff: noqa: D103

from __future__ import annotations

from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import Tensor1D, Tensor2D, Tensor4D


def main() -> None:
    rng = np.random.default_rng(0)
    images: Tensor4D[L[2], L[3], L[4], L[5]] = tt.uniform((2, 3, 4, 5), rng=rng)
    per_row = images.mean(axis=-1, keepdims=True)
    centred = images - per_row
    scale: Tensor1D[L[5]] = tt.uniform((5,), rng=rng)
    scaled = centred * scale
    channels_last = scaled.permute_dims((0, 2, 3, 1))
    flat: Tensor2D[L[2], L[60]] = channels_last.reshape((2, 60))
    weight: Tensor2D[L[60], L[3]] = tt.normal((60, 3), rng=rng, std=0.1)
    scores = flat @ weight
    assert scores.shape == (2, 3)
    loss = (flat.trace() @ weight).square().mean()
    grads = loss.backward(wrt=weight)
    assert grads[weight].shape == (60, 3)


if __name__ == "__main__":
    main()
