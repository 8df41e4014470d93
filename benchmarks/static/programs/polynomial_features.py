"""Powers of one variable as columns."""
# ruff: noqa: D103

from __future__ import annotations

from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import Tensor1D, Tensor2D, losses
from tapetensor.typing import N, T


def features(x: Tensor1D[N, T]) -> Tensor2D[N, L[3], T]:
    second = x.square()
    third = second * x
    return tt.stack((x, second, third), axis=0).transpose()


def main() -> None:
    rng = np.random.default_rng(0)
    x: Tensor1D[L[9]] = tt.uniform((9,), rng=rng)
    coefficients: Tensor1D[L[3]] = tt.from_numpy([1.0, -2.0, 0.5], shape=(3,))
    y = features(x) @ coefficients
    assert y.shape == (9,)
    guess: Tensor1D[L[3]] = tt.zeros((3,))
    for _ in range(3):
        prediction = features(x) @ guess.trace()
        loss = losses.huber(prediction, y)
        grads = loss.backward(wrt=guess)
        guess = guess - grads[guess] * 0.5
    assert guess.shape == (3,)


if __name__ == "__main__":
    main()
