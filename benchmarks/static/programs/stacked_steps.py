"""The outputs of three steps stacked along a time axis."""
# ruff: noqa: D101, D102, D103

from __future__ import annotations

from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import Tensor2D, Tensor3D, nn
from tapetensor.typing import B, T


class Step(nn.Module):
    layer: nn.Linear[L[4], L[4]]

    def forward(self, x: Tensor2D[B, L[4], T]) -> Tensor2D[B, L[4], T]:
        return self.layer.forward(x).tanh()


def unroll(step: Step, x: Tensor2D[B, L[4], T]) -> Tensor3D[L[3], B, L[4], T]:
    first = step.forward(x)
    second = step.forward(first)
    third = step.forward(second)
    return tt.stack((first, second, third))


def main() -> None:
    rng = np.random.default_rng(0)
    step = tt.build(Step, rng=rng)
    x: Tensor2D[L[5], L[4]] = tt.normal((5, 4), rng=rng)
    history = unroll(step, x.trace())
    by_batch = history.permute_dims((1, 0, 2))
    loss = by_batch.mean(axis=1).square().mean()
    grads = loss.backward(wrt=step)
    assert grads[step.layer.bias].shape == (4,)
    assert unroll(step, x).mean(axis=0).shape == (5, 4)


if __name__ == "__main__":
    main()
