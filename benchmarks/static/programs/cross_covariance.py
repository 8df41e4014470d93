"""Statistics of two views of the same data."""
# ruff: noqa: D103

from __future__ import annotations

from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import Tensor2D
from tapetensor.typing import B, M, N, T


def covariance(x: Tensor2D[B, M, T], y: Tensor2D[B, N]) -> Tensor2D[M, N, T]:
    centred_x = x - x.mean(axis=0)
    centred_y = y - y.mean(axis=0)
    return centred_x.transpose() @ centred_y / 6.0


def main() -> None:
    rng = np.random.default_rng(0)
    x: Tensor2D[L[6], L[3]] = tt.normal((6, 3), rng=rng)
    y: Tensor2D[L[6], L[4]] = tt.normal((6, 4), rng=rng)
    table = covariance(x, y)
    strongest = table.abs().max(axis=0)
    assert strongest.shape == (4,)
    loss = covariance(x.trace(), y).square().sum()
    grads = loss.backward()
    assert grads[x].shape == (6, 3)


if __name__ == "__main__":
    main()
