"""A line through points, by gradient descent written out."""
# ruff: noqa: D103

from __future__ import annotations

from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import Tensor1D, Tensor2D, losses
from tapetensor.typing import B, K, N, T


def predict(x: Tensor2D[B, N, T], weight: Tensor2D[N, K], bias: Tensor1D[K]) -> Tensor2D[B, K, T]:
    return x @ weight + bias


def main() -> None:
    rng = np.random.default_rng(0)
    x: Tensor2D[L[20], L[3]] = tt.normal((20, 3), rng=rng)
    true_weight: Tensor2D[L[3], L[1]] = tt.from_numpy([[2.0], [-1.0], [0.5]], shape=(3, 1))
    y = x @ true_weight
    weight: Tensor2D[L[3], L[1]] = tt.zeros((3, 1))
    bias: Tensor1D[L[1]] = tt.zeros((1,))
    for _ in range(5):
        loss = losses.mse(predict(x.trace(), weight, bias), y)
        grads = loss.backward(wrt=(weight, bias))
        weight = weight - grads[weight] * 0.1
        bias = bias - grads[bias] * 0.1
    assert losses.mse(predict(x, weight, bias), y).item() < 3.0


if __name__ == "__main__":
    main()
