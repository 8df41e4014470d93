"""Parameters of one's own, with an initializer each."""
# ruff: noqa: D101, D102, D103

from __future__ import annotations

from typing import Generic
from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import Tensor1D, Tensor2D, nn, optim
from tapetensor.typing import B, M, N, T


class Affine(nn.Module, Generic[M, N]):
    weight: Tensor2D[M, N] = nn.parameter(nn.init.normal(0.1))
    shift: Tensor1D[N] = nn.parameter(nn.init.zeros)
    seen: Tensor1D[N] = nn.buffer(nn.init.zeros)

    def forward(self, x: Tensor2D[B, M, T]) -> Tensor2D[B, N, T]:
        return x @ self.weight + self.shift


class Pair(nn.Module):
    first: Affine[L[3], L[4]]
    second: Affine[L[4], L[2]]

    def forward(self, x: Tensor2D[B, L[3], T]) -> Tensor2D[B, L[2], T]:
        return self.second.forward(self.first.forward(x).relu())


def main() -> None:
    rng = np.random.default_rng(0)
    model = tt.build(Pair, rng=rng)
    x: Tensor2D[L[5], L[3]] = tt.normal((5, 3), rng=rng)
    loss = model.forward(x.trace()).abs().mean()
    grads = loss.backward(wrt=model)
    assert grads[model.first.weight].shape == (3, 4)
    optim.Sgd(model, lr=0.1).step(grads)


if __name__ == "__main__":
    main()
