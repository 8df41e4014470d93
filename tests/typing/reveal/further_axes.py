"""Ops along one axis: the axes beyond the first two and the last, from -3 to 3."""

from __future__ import annotations

from typing import Any
from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import NoneTape, OwnedTape, Tensor, Tensor2D, Tensor3D, Tensor4D, Tensor5D
from tapetensor.typing import B, K, N, T
from tests.typing.check import assert_type, check
from tests.typing.operands import grid, m, positions, q, z, zc

row: Tensor4D[L[5], L[4], L[1], L[3]] = tt.ones((5, 4, 1, 3))
column: Tensor4D[L[5], L[4], L[2], L[1]] = tt.ones((5, 4, 2, 1))
channel: Tensor4D[L[5], L[1], L[2], L[3]] = tt.ones((5, 1, 2, 3))

# `concat`: a cache of keys and values grows along the last axis but one.
check(assert_type(tt.concat((q, row), axis=2), Tensor4D[L[5], L[4], Any, L[3]]), (5, 4, 3, 3))
check(
    assert_type(tt.concat((q.trace(), row), axis=-2), Tensor4D[L[5], L[4], Any, L[3], OwnedTape]),
    (5, 4, 3, 3),
)
check(
    assert_type(tt.concat((q, row.trace()), axis=-2), Tensor4D[L[5], L[4], Any, L[3], OwnedTape]),
    (5, 4, 3, 3),
)
check(
    assert_type(tt.concat((z, zc.trace()), axis=2), Tensor3D[L[4], L[2], Any, OwnedTape]), (4, 2, 4)
)
check(
    assert_type(tt.concat((q.trace(), column), axis=3), Tensor4D[L[5], L[4], L[2], Any, OwnedTape]),
    (5, 4, 2, 4),
)
check(
    assert_type(
        tt.concat((q.trace(), channel.trace()), axis=-3),
        Tensor4D[L[5], Any, L[2], L[3], OwnedTape],
    ),
    (5, 5, 2, 3),
)
check(assert_type(tt.concat([q, q], axis=2), Tensor4D[L[5], L[4], Any, L[3]]), (5, 4, 4, 3))
check(assert_type(tt.concat([q, q], axis=-2), Tensor4D[L[5], L[4], Any, L[3]]), (5, 4, 4, 3))
check(assert_type(tt.concat([q, q], axis=3), Tensor4D[L[5], L[4], L[2], Any]), (5, 4, 2, 6))
check(assert_type(tt.concat([q, q], axis=-3), Tensor4D[L[5], Any, L[2], L[3]]), (5, 8, 2, 3))

# `stack`
check(assert_type(tt.stack((m, m), axis=1), Tensor3D[L[2], L[2], L[3]]), (2, 2, 3))
check(
    assert_type(tt.stack((z, z.trace()), axis=1), Tensor4D[L[4], L[2], L[2], L[3], OwnedTape]),
    (4, 2, 2, 3),
)
check(
    assert_type(tt.stack((z.trace(), z), axis=-2), Tensor4D[L[4], L[2], L[2], L[3], OwnedTape]),
    (4, 2, 2, 3),
)
check(assert_type(tt.stack((m, m), axis=2), Tensor3D[L[2], L[3], L[2]]), (2, 3, 2))
check(assert_type(tt.stack([z, z], axis=2), Tensor4D[L[4], L[2], Any, L[3]]), (4, 2, 2, 3))
check(assert_type(tt.stack([z, z], axis=-2), Tensor4D[L[4], L[2], Any, L[3]]), (4, 2, 2, 3))

# `split`
for along_two in z.trace().split(3, axis=2):
    check(assert_type(along_two, Tensor3D[L[4], L[2], Any, OwnedTape]), (4, 2, 1))
for last_but_one in q.split(2, axis=-2):
    check(assert_type(last_but_one, Tensor4D[L[5], L[4], Any, L[3]]), (5, 4, 1, 3))
for along_three in q.split([1, 1, 1], axis=3):
    check(assert_type(along_three, Tensor4D[L[5], L[4], L[2], Any]), (5, 4, 2, 1))
for channels in q.split(2, axis=-3):
    check(assert_type(channels, Tensor4D[L[5], Any, L[2], L[3]]), (5, 2, 2, 3))

# `squeeze`, `expand_dims` and `roll`
check(assert_type(column.squeeze(3), Tensor3D[L[5], L[4], L[2]]), (5, 4, 2))
check(assert_type(channel.trace().squeeze(-3), Tensor3D[L[5], L[2], L[3], OwnedTape]), (5, 2, 3))
check(assert_type(z.expand_dims(3), Tensor4D[L[4], L[2], L[3], L[1]]), (4, 2, 3, 1))
check(
    assert_type(q.trace().expand_dims(3), Tensor5D[L[5], L[4], L[2], L[1], L[3], OwnedTape]),
    (5, 4, 2, 1, 3),
)
check(assert_type(z.expand_dims(-3), Tensor4D[L[4], L[1], L[2], L[3]]), (4, 1, 2, 3))
check(assert_type(q.roll(1, axis=3), Tensor4D[L[5], L[4], L[2], L[3]]), (5, 4, 2, 3))
check(assert_type(z.trace().roll(1, axis=-3), Tensor3D[L[4], L[2], L[3], OwnedTape]), (4, 2, 3))

# `argmax`
check(assert_type(z.argmax(axis=2), Tensor2D[L[4], L[2], NoneTape, np.int64]), (4, 2))
check(assert_type(q.trace().argmax(-2), Tensor3D[L[5], L[4], L[3], NoneTape, np.int64]), (5, 4, 3))
check(assert_type(q.argmax(axis=3), Tensor3D[L[5], L[4], L[2], NoneTape, np.int64]), (5, 4, 2))
check(assert_type(q.argmax(axis=-3), Tensor3D[L[5], L[2], L[3], NoneTape, np.int64]), (5, 2, 3))

# `argsort` gives plain positions too, which `take_along_axis` reads; the first of them are the top.
check(assert_type(m.argsort(), Tensor2D[L[2], L[3], NoneTape, np.int64]), (2, 3))
order = z.trace().argsort(axis=1, descending=True)
check(assert_type(order, Tensor3D[L[4], L[2], L[3], NoneTape, np.int64]), (4, 2, 3))
check(
    assert_type(z.trace().take_along_axis(order, axis=1), Tensor3D[L[4], L[2], L[3], OwnedTape]),
    (4, 2, 3),
)

# `sort` keeps the shape, `topk` gives elements and plain positions.
check(assert_type(z.trace().sort(axis=1), Tensor3D[L[4], L[2], L[3], OwnedTape]), (4, 2, 3))


def best(
    x: Tensor2D[B, K, T], k: N
) -> tuple[Tensor2D[B, N, T], Tensor2D[B, N, NoneTape, np.int64]]:
    return x.topk(k)


def best_rows(x: Tensor3D[B, K, L[3], T], k: N) -> Tensor3D[B, N, L[3], T]:
    values, indices = x.topk(k, axis=1, largest=False)
    assert_type(indices, Tensor3D[B, N, L[3], NoneTape, np.int64])
    return values


check(best(m.trace(), 2)[0], (2, 2))
check(best(m, 2)[1], (2, 2))
check(best_rows(z, 1), (4, 1, 3))

# `take`: a row of positions has an exact shape, positions of another rank leave it open.
check(assert_type(z.take(positions, axis=2), Tensor3D[L[4], L[2], L[7]]), (4, 2, 7))
check(
    assert_type(q.trace().take(positions, axis=-2), Tensor4D[L[5], L[4], L[7], L[3], OwnedTape]),
    (5, 4, 7, 3),
)
check(assert_type(q.take(positions, axis=-3), Tensor[Any]), (5, 7, 2, 3))
check(assert_type(z.take(grid, axis=1), Tensor[Any]), (4, 7, 8, 3))
# `take_along_axis`
row_ids = tt.zeros(row.shape, np.int64)
column_ids = tt.zeros(column.shape, np.int64)
channel_ids = tt.zeros(channel.shape, np.int64)
check(
    assert_type(q.take_along_axis(row_ids, axis=2), Tensor4D[L[5], L[4], L[1], L[3]]), (5, 4, 1, 3)
)
check(
    assert_type(q.take_along_axis(column_ids, axis=3), Tensor4D[L[5], L[4], L[2], L[1]]),
    (5, 4, 2, 1),
)
check(
    assert_type(
        q.trace().take_along_axis(channel_ids, axis=-3),
        Tensor4D[L[5], L[1], L[2], L[3], OwnedTape],
    ),
    (5, 1, 2, 3),
)
