"""A function of two traced inputs, with its own functions generic over dims, tapes and dtypes."""

from __future__ import annotations

from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import NoneTape, Tensor, Tensor1D, Tensor2D
from tapetensor.typing import B, F, N, S, T


def distances(
    x: Tensor2D[B, N, T, F], y: Tensor2D[B, N, T, F]
) -> tuple[Tensor1D[B, T, F], Tensor1D[B, T, F]]:
    """Return the Euclidean and the largest distance between the rows of two matrices."""
    difference = x - y
    euclidean = difference.square().sum(axis=-1).sqrt()
    return euclidean, difference.abs().max(axis=-1)


def smooth_abs(x: Tensor[S, T, F], width: float) -> Tensor[S, T, F]:
    return (x.square() + width * width).sqrt()


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    x: Tensor2D[L[4], L[3], NoneTape, np.float64] = tt.normal((4, 3), np.float64, rng=rng)
    y: Tensor2D[L[4], L[3], NoneTape, np.float64] = tt.normal((4, 3), np.float64, rng=rng)

    euclidean, largest = distances(x.trace(), y.trace())
    grads = (smooth_abs(euclidean, 0.1) + largest).sum().backward()

    # Moving both points together changes no distance.
    np.testing.assert_allclose((grads[x] + grads[y]).numpy(), 0.0, atol=1e-12)
    assert grads[x].dtype == np.float64
