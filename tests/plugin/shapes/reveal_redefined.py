# mypy: allow-redefinition
"""A name that takes tensors of several shapes: an open dim of the last is not one of the first."""

from __future__ import annotations

from typing import Any
from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import OwnedTape, Tensor0D, Tensor2D, Tensor3D, Tensor4D, nn
from tapetensor.typing import B, M, N, T
from tests.typing.check import assert_type, check

rng = np.random.default_rng(0)


class Narrowing(nn.Module):
    first: nn.Linear[L[3], L[4]]
    second: nn.Linear[L[4], L[5]]
    third: nn.Linear[L[2], L[7]]

    def forward(self, x: Tensor2D[B, L[3], T], n: int) -> Tensor2D[B, L[7], T]:
        x = self.first.forward(x)
        x = self.second.forward(x)
        assert_type(x, Tensor2D[B, L[5], T])
        x = x[:, :n]
        assert_type(x, Tensor2D[B, Any, T])
        x = self.third.forward(x)
        assert_type(x, Tensor2D[B, L[7], T])
        return x


def narrowed(n: int) -> Tensor3D[L[3], Any, L[5]]:
    x = tt.zeros((3, 4))
    x = tt.zeros((3, 4, 5))
    x = x[:, :n]
    return assert_type(x, Tensor3D[L[3], Any, L[5]])


def in_one_branch(n: int, *, first: bool) -> None:
    x = tt.zeros((3, 4))
    x = tt.zeros((2, 4))
    if first:
        x = x[:n]
        assert_type(x, Tensor2D[Any, L[4]])
    check(assert_type(x, Tensor2D[Any, L[4]]), (2, 4))


def of_a_parameter(x: Tensor2D[M, N], n: int) -> Tensor2D[Any, N]:
    x = x[:n]
    return assert_type(x, Tensor2D[Any, N])


def shrunk(x: Tensor4D[B, L[8], L[16], L[16]], pool: nn.MaxPool2d[L[2]]) -> None:
    x = nn.Conv2d(8, 4, 3, padding=1, rng=rng).forward(x)
    for _ in range(2):
        x = pool.forward(x)
    check(assert_type(x, Tensor4D[B, L[4], Any, Any]), (2, 4, 4, 4))


class Mlp(nn.Module):
    hidden: nn.Linear[L[3], L[4]]
    middle: nn.Linear[L[4], L[4]]
    out: nn.Linear[L[4], L[7]]

    def forward(self, x: Tensor2D[B, L[3], T]) -> Tensor2D[B, L[7], T]:
        for layer in [self.hidden, self.middle]:
            x = layer.forward(x).relu()
        return self.out.forward(x)


def other_dtypes(values: Any) -> None:
    x = tt.zeros((3,), np.int64)
    x = tt.zeros((3,))
    x = tt.from_numpy(values, (3,))
    check(assert_type(x, tt.Tensor1D[L[3], tt.NoneTape, Any]), (3,))


def added(rows: list[Tensor2D[L[2], L[4]]]) -> Tensor0D[OwnedTape]:
    """What begins as a number and is added to is a tensor; that there is something is granted."""
    sums = []
    for _ in range(2):
        total = 0.0
        for row in rows:
            total = total + row.trace().mean()
        assert_type(total, Tensor0D[OwnedTape])
        started = 0
        for row in rows:
            started += row.trace().square().mean() * 0.5
        assert_type(started, Tensor0D[OwnedTape])
        running = 0.0
        for row in rows:
            running += row.mean().item()
        assert_type(running, float)
        sums.append(total + started * running)
    return sums[0]


def shown_and_used(x: Tensor2D[L[2], L[4]]) -> Tensor0D:
    """A number and a tensor of one name that have nothing to do with each other stay two."""
    best = 0.0
    if x.mean().item() > best:
        best = x.mean().item()
    assert_type(best, float)
    best = x.max()
    return assert_type(best, Tensor0D)


model = tt.build(Narrowing, rng=rng)
check(added([tt.ones((2, 4))]), ())
check(shown_and_used(tt.ones((2, 4))), ())
check(model.forward(tt.zeros((6, 3)), 2), (6, 7))
check(tt.build(Mlp, rng=rng).forward(tt.zeros((6, 3))), (6, 7))
check(narrowed(2), (3, 2, 5))
in_one_branch(2, first=True)
check(of_a_parameter(tt.zeros((3, 4)), 2), (2, 4))
shrunk(tt.zeros((2, 8, 16, 16)), nn.MaxPool2d(2))
other_dtypes(np.zeros(3))
