"""Attention over generic dims, one head."""
# ruff: noqa: D101, D102, D103

from __future__ import annotations

from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import Tensor3D, nn
from tapetensor.typing import B, K, M, N, T


def attention(
    query: Tensor3D[B, M, K, T], key: Tensor3D[B, N, K, T], value: Tensor3D[B, N, K, T]
) -> Tensor3D[B, M, K, T]:
    scores = query @ key.transpose() * 0.5
    return scores.softmax(axis=-1) @ value


class SelfAttention(nn.Module):
    query: nn.Linear[L[4], L[4]]
    key: nn.Linear[L[4], L[4]]
    value: nn.Linear[L[4], L[4]]

    def forward(self, x: Tensor3D[B, M, L[4], T]) -> Tensor3D[B, M, L[4], T]:
        q = self.query.forward(x)
        k = self.key.forward(x)
        return attention(q, k, self.value.forward(x))


def main() -> None:
    rng = np.random.default_rng(0)
    layer = tt.build(SelfAttention, rng=rng)
    x: Tensor3D[L[2], L[3], L[4]] = tt.normal((2, 3, 4), rng=rng)
    grads = layer.forward(x.trace()).square().sum().backward()
    assert grads[x].shape == (2, 3, 4)
    assert layer.forward(x).shape == (2, 3, 4)


if __name__ == "__main__":
    main()
