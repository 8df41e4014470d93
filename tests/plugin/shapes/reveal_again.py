"""A name that is used again: its type is true of the new value, of the old one, and in between."""

from __future__ import annotations

from typing import Any
from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import Tensor2D, Tensor4D, losses, nn
from tapetensor.typing import B, M, N, T
from tests.typing.check import assert_type, check

rng = np.random.default_rng(0)


class Halving(nn.Module):
    keep: nn.Conv2d[L[8], L[8], L[3], L[1], L[1]]
    half: nn.Conv2d[L[8], L[8], L[3], L[2], L[1]]

    def after(self, x: Tensor4D[B, L[8], M, N, T], n: int) -> Tensor4D[B, L[8], Any, N, T]:
        h = self.keep.forward(x)
        assert_type(h, Tensor4D[B, L[8], M, N, T])
        h = h[:, :, :n]
        assert_type(h, Tensor4D[B, L[8], Any, N, T])
        return h

    def in_one_branch(
        self, x: Tensor4D[B, L[8], M, N, T], n: int, *, first: bool
    ) -> Tensor4D[B, L[8], Any, N, T]:
        h = self.keep.forward(x)
        if first:
            h = self.keep.forward(h)
            assert_type(h, Tensor4D[B, L[8], M, N, T])
        else:
            h = h[:, :, :n]
        assert_type(h, Tensor4D[B, L[8], Any, N, T])
        h = self.keep.forward(h)
        assert_type(h, Tensor4D[B, L[8], Any, N, T])
        return h

    def in_a_loop(self, x: Tensor4D[B, L[8], M, N, T], n: int) -> Tensor4D[B, L[8], Any, N, T]:
        h = self.keep.forward(x)
        for _ in range(2):
            h = self.keep.forward(h)
            h = h[:, :, :n]
        assert_type(h, Tensor4D[B, L[8], Any, N, T])
        return h


def grown(x: Tensor2D[M, N], n: int) -> Tensor2D[Any, N]:
    rows = x
    for _ in range(n):
        rows = tt.concat((rows, x))
    assert_type(rows, Tensor2D[Any, N])
    return rows


def counted(n: int) -> Tensor2D[Any, L[3]]:
    rows = tt.zeros((1, 3))
    while rows.shape[0] < n:
        rows = tt.concat((rows, tt.zeros((2, 3))))
    assert_type(rows, Tensor2D[Any, L[3]])
    return rows


def generated(ids: Tensor2D[B, M], n: int) -> Tensor2D[B, Any]:
    """A parameter says what it is given."""
    b, _ = ids.shape
    check(assert_type(ids, Tensor2D[B, M]), (2, 3))
    for _ in range(n):
        ids = tt.concat((ids, tt.zeros((b, 1))), axis=1)
    return assert_type(ids, Tensor2D[B, Any])


def shrunk(x: Tensor4D[B, L[8], L[16], L[16]], pool: nn.MaxPool2d[L[2]]) -> None:
    for _ in range(2):
        x = pool.forward(x)
    check(assert_type(x, Tensor4D[B, L[8], Any, Any]), (2, 8, 4, 4))


halving = Halving(
    keep=nn.Conv2d(8, 8, 3, padding=1, rng=rng), half=nn.Conv2d(8, 8, 3, 2, 1, rng=rng)
)
image = tt.zeros((2, 8, 6, 5))
assert halving.after(image, 4).shape == (2, 8, 4, 5)
assert halving.in_one_branch(image, 4, first=False).shape == (2, 8, 4, 5)
assert halving.in_a_loop(image, 4).shape == (2, 8, 4, 5)
assert grown(tt.zeros((2, 3)), 3).shape == (8, 3)
assert counted(4).shape == (5, 3)
check(generated(tt.zeros((2, 3)), 2), (2, 5))
shrunk(tt.zeros((2, 8, 16, 16)), nn.MaxPool2d(2))


def measured(n: int) -> None:
    """An `int` fits a number."""
    counted: Tensor2D[int, L[16]] = tt.zeros((n, 16))
    losses.mse(counted, tt.zeros((5, 16)))


measured(5)
