"""A learnt query weighs the positions of a sequence."""
# ruff: noqa: D101, D102, D103

from __future__ import annotations

from typing import Generic
from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import Tensor1D, Tensor2D, Tensor3D, losses, nn
from tapetensor.typing import B, M, N, T


class Pooling(nn.Module, Generic[N]):
    query: Tensor1D[N] = nn.parameter(nn.init.normal(0.5))
    out: nn.Linear[N, L[2]]

    def forward(self, x: Tensor3D[B, M, N, T]) -> Tensor2D[B, L[2], T]:
        weights = (x @ self.query).softmax(axis=-1)
        weighed = x * weights.expand_dims(-1)
        return self.out.forward(weighed.sum(axis=1))


def main() -> None:
    rng = np.random.default_rng(0)
    model = tt.build(Pooling[L[6]], rng=rng)
    x: Tensor3D[L[3], L[4], L[6]] = tt.normal((3, 4, 6), rng=rng)
    target: Tensor2D[L[3], L[2]] = tt.ones((3, 2))
    loss = losses.mse(model.forward(x.trace()), target)
    grads = loss.backward(wrt=model)
    assert grads[model.query].shape == (6,)
    assert model.forward(x).shape == (3, 2)


if __name__ == "__main__":
    main()
