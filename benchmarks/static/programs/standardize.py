"""A generic function over the columns of any matrix."""
# ruff: noqa: D103

from __future__ import annotations

from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import Tensor2D
from tapetensor.typing import M, N, T


def standardize(x: Tensor2D[M, N, T]) -> Tensor2D[M, N, T]:
    centred = x - x.mean(axis=0)
    spread = centred.square().mean(axis=0)
    return centred / (spread + 1e-6).sqrt()


def gram(x: Tensor2D[M, N, T]) -> Tensor2D[N, N, T]:
    return x.transpose() @ x


def main() -> None:
    rng = np.random.default_rng(0)
    x: Tensor2D[L[7], L[3]] = tt.normal((7, 3), rng=rng, mean=2.0)
    scaled = standardize(x)
    correlation = gram(scaled) / 7.0
    identity: Tensor2D[L[3], L[3]] = tt.eye(3)
    distance = (correlation - identity).square().sum()
    grads = (gram(standardize(x.trace())) - identity).square().sum().backward()
    assert grads[x].shape == (7, 3)
    assert distance.item() >= 0.0


if __name__ == "__main__":
    main()
