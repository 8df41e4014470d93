"""All distances between two sets of points."""
# ruff: noqa: D103

from __future__ import annotations

from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import Tensor2D
from tapetensor.typing import K, M, N, T


def distances(x: Tensor2D[M, K, T], y: Tensor2D[N, K]) -> Tensor2D[M, N, T]:
    squares_x = x.square().sum(axis=1, keepdims=True)
    squares_y = y.square().sum(axis=1)
    products = x @ y.transpose()
    return products * -2.0 + squares_x + squares_y


def main() -> None:
    rng = np.random.default_rng(0)
    points: Tensor2D[L[8], L[3]] = tt.normal((8, 3), rng=rng)
    centres: Tensor2D[L[4], L[3]] = tt.normal((4, 3), rng=rng)
    table = distances(points, centres)
    nearest = (-table).argmax(axis=1)
    assert nearest.shape == (8,)
    loss = distances(points.trace(), centres).min(axis=1).mean()
    grads = loss.backward()
    assert grads[points].shape == (8, 3)


if __name__ == "__main__":
    main()
