"""Two layers as functions of tensors, no modules."""
# ruff: noqa: D103

from __future__ import annotations

from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import Tensor1D, Tensor2D, losses
from tapetensor.typing import B, K, N, T


def hidden(x: Tensor2D[B, N, T], weight: Tensor2D[N, K], bias: Tensor1D[K]) -> Tensor2D[B, K, T]:
    return (x @ weight + bias).relu()


def main() -> None:
    rng = np.random.default_rng(0)
    x: Tensor2D[L[10], L[4]] = tt.normal((10, 4), rng=rng)
    y: Tensor2D[L[10], L[2]] = tt.normal((10, 2), rng=rng)
    w1: Tensor2D[L[4], L[7]] = tt.normal((4, 7), rng=rng, std=0.1)
    b1: Tensor1D[L[7]] = tt.zeros((7,))
    w2: Tensor2D[L[7], L[2]] = tt.normal((7, 2), rng=rng, std=0.1)
    b2: Tensor1D[L[2]] = tt.zeros((2,))
    features = hidden(x.trace(), w1, b1)
    output = features @ w2 + b2
    loss = losses.mse(output, y)
    grads = loss.backward(wrt=(w1, b1, w2, b2))
    w1 = w1 - grads[w1] * 0.1
    b1 = b1 - grads[b1] * 0.1
    w2 = w2 - grads[w2] * 0.1
    b2 = b2 - grads[b2] * 0.1
    assert (hidden(x, w1, b1) @ w2 + b2).shape == (10, 2)


if __name__ == "__main__":
    main()
