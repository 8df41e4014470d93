"""Least squares by hand: parameters are tensors, a step makes new ones."""

from __future__ import annotations

from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import NoneTape, Tensor0D, Tensor1D, Tensor2D
from tapetensor.typing import B, T

Features = L[3]
LEARNING_RATE = 0.1


def predict(
    x: Tensor2D[B, Features, T], weight: Tensor1D[Features], bias: Tensor0D
) -> Tensor1D[B, T]:
    return x @ weight + bias


def mean_squared_error(prediction: Tensor1D[B, T], target: Tensor1D[B]) -> Tensor0D[T]:
    return (prediction - target).square().mean()


def train(
    x: Tensor2D[B, Features], y: Tensor1D[B], steps: int
) -> tuple[Tensor1D[Features], Tensor0D, list[float]]:
    weight: Tensor1D[Features] = tt.zeros((3,))
    bias: Tensor0D = tt.zeros(())
    losses = []
    for _ in range(steps):
        loss = mean_squared_error(predict(x.trace(), weight, bias), y)
        losses.append(loss.item())
        grads = loss.backward(wrt=[weight, bias])
        weight = weight - grads[weight] * LEARNING_RATE
        bias = bias - grads[bias] * LEARNING_RATE
    return weight, bias, losses


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    inputs: Tensor2D[L[64], Features] = tt.normal((64, 3), rng=rng)
    truth: Tensor1D[Features, NoneTape] = tt.from_numpy([1.0, -2.0, 0.5], (3,))
    targets = predict(inputs, truth, tt.full((), 0.25))

    found, offset, history = train(inputs, targets, steps=200)

    assert history[-1] < 1e-6 * history[0]
    np.testing.assert_allclose(found.numpy(), truth.numpy(), atol=1e-3)
    assert abs(offset.item() - 0.25) < 1e-3
