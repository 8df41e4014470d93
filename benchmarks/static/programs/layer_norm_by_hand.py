"""Normalization of the last axis, from its parts."""
# ruff: noqa: D101, D102, D103

from __future__ import annotations

from typing import Generic
from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import Tensor, Tensor1D, Tensor2D, nn
from tapetensor.typing import B, Ds, N, T


def normalize(x: Tensor[tuple[*Ds, N], T]) -> Tensor[tuple[*Ds, N], T]:
    mean = x.mean(axis=-1, keepdims=True)
    centred = x - mean
    variance = centred.square().mean(axis=-1, keepdims=True)
    return centred / (variance + 1e-5).sqrt()


class Norm(nn.Module, Generic[N]):
    scale: Tensor1D[N] = nn.parameter(nn.init.ones)
    shift: Tensor1D[N] = nn.parameter(nn.init.zeros)

    def forward(self, x: Tensor2D[B, N, T]) -> Tensor2D[B, N, T]:
        return normalize(x) * self.scale + self.shift


def main() -> None:
    rng = np.random.default_rng(0)
    norm = tt.build(Norm[L[6]], rng=rng)
    x: Tensor2D[L[3], L[6]] = tt.normal((3, 6), rng=rng)
    weights: Tensor2D[L[3], L[6]] = tt.normal((3, 6), rng=rng)
    loss = (norm.forward(x.trace()) * weights).sum()
    grads = loss.backward()
    assert grads[norm.scale].shape == (6,)
    assert abs(norm.forward(x).mean().item()) < 1e-5


if __name__ == "__main__":
    main()
