"""Results of which one is dropped, as of ``_, (h, c) = lstm(x)``: the rest keeps its dims."""

from __future__ import annotations

from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import OwnedTape, Tensor2D, Tensor3D, nn
from tapetensor.typing import B, N, T
from tests.typing.check import assert_type, check

rng = np.random.default_rng(0)
lstm: nn.LSTM[L[4], L[8]] = nn.LSTM(4, 8, rng=rng)
stacked: nn.StackedLSTM[L[4], L[8], L[2]] = nn.StackedLSTM(4, 8, 2, rng=rng)


def last(x: Tensor3D[B, N, L[4], T]) -> Tensor2D[B, L[8], T]:
    _, (h, c) = lstm.forward(x)
    assert_type(c, Tensor2D[B, L[8], T])
    return assert_type(h, Tensor2D[B, L[8], T])


def of_the_last_layer(x: Tensor3D[B, N, L[4], T]) -> Tensor2D[B, L[8], T]:
    _, (h, _) = stacked.forward(x)
    return assert_type(h[-1], Tensor2D[B, L[8], T])


def parted(x: Tensor3D[B, N, L[4], T]) -> tuple[Tensor2D[B, N, T], tuple[Tensor2D[B, N], float]]:
    return x.sum(axis=-1), (x.detach().mean(axis=-1), 0.5)


x: Tensor3D[L[2], L[5], L[4]] = tt.ones((2, 5, 4))
check(assert_type(last(x.trace()), Tensor2D[L[2], L[8], OwnedTape]), (2, 8))
check(of_the_last_layer(x), (2, 8))


def of_a_function(x: Tensor3D[B, N, L[4], T]) -> None:
    _, (mean, weight) = parted(x)
    assert_type(mean, Tensor2D[B, N])
    assert_type(weight, float)


of_a_function(x)
