"""Two heads, by reshape and permute."""
# ruff: noqa: D101, D102, D103

from __future__ import annotations

from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import Tensor3D, Tensor4D, nn, optim
from tapetensor.typing import T


class Attention(nn.Module):
    query: nn.Linear[L[6], L[6]]
    key: nn.Linear[L[6], L[6]]
    value: nn.Linear[L[6], L[6]]
    out: nn.Linear[L[6], L[6]]

    def heads(self, x: Tensor3D[L[2], L[5], L[6], T]) -> Tensor4D[L[2], L[2], L[5], L[3], T]:
        split: Tensor4D[L[2], L[5], L[2], L[3], T] = x.reshape((2, 5, 2, 3))
        return split.permute_dims((0, 2, 1, 3))

    def forward(self, x: Tensor3D[L[2], L[5], L[6], T]) -> Tensor3D[L[2], L[5], L[6], T]:
        q = self.heads(self.query.forward(x))
        k = self.heads(self.key.forward(x))
        v = self.heads(self.value.forward(x))
        mixed = (q @ k.transpose()).softmax(axis=-1) @ v
        joined: Tensor3D[L[2], L[5], L[6], T] = mixed.permute_dims((0, 2, 1, 3)).reshape((2, 5, 6))
        return self.out.forward(joined)


def main() -> None:
    rng = np.random.default_rng(0)
    layer = tt.build(Attention, rng=rng)
    x: Tensor3D[L[2], L[5], L[6]] = tt.normal((2, 5, 6), rng=rng)
    loss = layer.forward(x.trace()).square().mean()
    optim.Sgd(layer, lr=0.1).step(loss.backward(wrt=layer))
    assert layer.forward(x).shape == (2, 5, 6)


if __name__ == "__main__":
    main()
