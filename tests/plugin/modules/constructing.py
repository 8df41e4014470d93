"""Layers that an `__init__` makes with computed sizes: they are what is computed, for any width."""

from __future__ import annotations

from typing import Generic, NewType
from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import Tensor2D, Tensor4D, nn
from tapetensor.typing import B, K, M, Mul, N, T
from tests.typing.check import assert_type, check

Width = NewType("Width", int)
rng = np.random.default_rng(0)


class Mlp(nn.Module, Generic[K, N]):
    up: nn.Linear[K, Mul[L[4], K]]
    down: nn.Linear[Mul[L[4], K], N]

    def __init__(self, width: K, out: N) -> None:
        self.up = nn.Linear(width, 4 * width, rng=rng)
        inner = 4 * width
        self.down = nn.Linear(inner, out, rng=rng)

    def forward(self, x: Tensor2D[B, K, T]) -> Tensor2D[B, N, T]:
        return self.down.forward(self.up.forward(x).gelu())


class Narrower(nn.Module, Generic[K]):
    up: nn.Linear[K, Mul[L[4], K]]

    def __init__(self, width: K) -> None:
        # E: expression has type "Linear[K, Mul[K, Literal[3]], floating[_32Bit]]", variable
        self.up = nn.Linear(width, 3 * width, rng=rng)

    def forward(self, x: Tensor2D[B, K, T]) -> Tensor2D[B, Mul[L[4], K], T]:
        return self.up.forward(x)


class OfNominalWidth(nn.Module):
    queries_keys_values: nn.Linear[Width, Mul[L[3], Width]]

    def __init__(self, width: Width) -> None:
        # E: expression has type "Linear[Width, Mul[Width, Literal[2]], floating[_32Bit]]"
        self.queries_keys_values = nn.Linear(width, 2 * width, rng=rng)

    def forward(self, x: Tensor2D[B, Width, T]) -> Tensor2D[B, Mul[L[3], Width], T]:
        return self.queries_keys_values.forward(x)


class WithoutPadding(nn.Module, Generic[M, N]):
    conv: nn.Conv2d[M, N, L[3], L[1], L[1]]

    def __init__(self, channels: M, out: N) -> None:
        # E: Conv2d[M, N, Literal[3], Literal[1], Literal[0], Literal[1]
        self.conv = nn.Conv2d(channels, out, 3, rng=rng)

    def forward(self, x: Tensor4D[B, M, L[8], L[8], T]) -> Tensor4D[B, N, L[8], L[8], T]:
        return self.conv.forward(x)


mlp = assert_type(Mlp(8, 3), Mlp[L[8], L[3]])
check(assert_type(mlp.forward(tt.ones((2, 8))), Tensor2D[L[2], L[3]]), (2, 3))
