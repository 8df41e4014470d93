"""Batches of data, sizes from an enum, dtypes of arrays that are written down, totals of losses."""

from __future__ import annotations

from enum import IntEnum
from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import NoneTape, OwnedTape, Tensor0D, Tensor1D, Tensor2D, data, nn
from tests.typing.check import assert_type, check

rng = np.random.default_rng(0)
x: Tensor2D[L[6], L[4]] = tt.ones((6, 4))
y: Tensor1D[L[6], NoneTape, np.int64] = tt.arange(6)


class Width(IntEnum):
    HIDDEN = 8
    OUT = 3


for rows in data.batches_exact(x, size=2):
    check(assert_type(rows, Tensor2D[L[2], L[4]]), (2, 4))
for some, labels in data.batches_exact(x, y, size=3, rng=rng):
    check(assert_type(some, Tensor2D[L[3], L[4]]), (3, 4))
    check(assert_type(labels, Tensor1D[L[3], NoneTape, np.int64]), (3,))

head = nn.Linear(Width.HIDDEN, Width.OUT, rng=rng)
assert_type(head, nn.Linear[L[8], L[3]])
check(assert_type(tt.zeros((2, Width.OUT)), Tensor2D[L[2], L[3]]), (2, 3))
check(
    assert_type(tt.ones((Width.OUT, 2)) @ tt.ones((2, Width.HIDDEN)), Tensor2D[L[3], L[8]]), (3, 8)
)

assert_type(tt.from_numpy(np.array([0, -1]), (2,)), Tensor1D[L[2], NoneTape, np.int64])
assert_type(
    tt.from_numpy(np.asarray([[0.5, 1]]), (1, 2)), Tensor2D[L[1], L[2], NoneTape, np.float64]
)


def losses_of(rows: Tensor2D[L[6], L[4]]) -> list[Tensor0D[OwnedTape]]:
    return [rows.trace().mean(), rows.trace().square().mean()]


assert_type(sum(losses_of(x)), Tensor0D[OwnedTape]).backward()
total = 0.0
for loss in losses_of(x):
    total = total + loss
check(assert_type(total, Tensor0D[OwnedTape]), ())
started = 0
for loss in losses_of(x):
    started += loss
check(assert_type(started, Tensor0D[OwnedTape]), ())
