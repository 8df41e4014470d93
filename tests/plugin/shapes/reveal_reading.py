"""Reductions, indices, matrix products and einsum: beyond the table of ops."""

from __future__ import annotations

from typing import Any
from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import NoneTape, OwnedTape, Tensor, Tensor0D, Tensor1D, Tensor2D, Tensor3D, Tensor4D
from tapetensor.typing import Add, B, Div, K, M, N, Sub, T
from tests.typing.check import assert_type, check
from tests.typing.operands import box, grid, m, mi, positions, q, v, vmask, w, z

values, places = q.trace().topk(1, axis=-3)
check(assert_type(values, Tensor4D[L[5], L[1], L[2], L[3], OwnedTape]), (5, 1, 2, 3))
check(assert_type(places, Tensor4D[L[5], L[1], L[2], L[3], NoneTape, np.int64]), (5, 1, 2, 3))
for keep in (True, False):
    assert_type(m.sum(axis=(0, 1), keepdims=keep), Tensor[Any])

# Positions, slices and arrays that are not written down, and lists.
check(z[z > 0.0], (24,))
check(assert_type(z[np.array([0, 1])], Tensor[Any]), (2, 2, 3))
where: int = sum((1, 0))
check(assert_type(z[where], Tensor2D[L[2], L[3]]), (2, 3))
check(assert_type(z[where:], Tensor3D[Any, L[2], L[3]]), (3, 2, 3))
check(assert_type(z[[0, -1]], Tensor3D[L[2], L[2], L[3]]), (2, 2, 3))
check(assert_type(z[:, [0, 1, where]], Tensor3D[L[4], L[3], L[3]]), (4, 3, 3))
check(assert_type(z[[0, 1], [1, 0]], Tensor2D[L[2], L[3]]), (2, 3))
check(assert_type(m[[True, False]], Tensor2D[Any, L[3]]), (1, 3))
cut = slice(0, 2)
check(assert_type(z[cut, 0], Tensor2D[Any, L[3]]), (2, 3))

check(assert_type(mi @ mi.transpose(), Tensor2D[L[2], L[2], NoneTape, np.int64]), (2, 2))
check(assert_type(tt.einsum("ij,ij->", m, m.trace()), Tensor0D[OwnedTape]), ())
subscripts = "".join(("ij", "->j"))
check(assert_type(tt.einsum(subscripts, m), Tensor[Any]), (3,))


# Names are dims like any other.
def attention(
    queries: Tensor3D[B, M, K, T], keys: Tensor3D[B, N, K], values: Tensor3D[B, N, K]
) -> Tensor3D[B, M, K, T]:
    scores = assert_type(queries @ keys.transpose(), Tensor3D[B, M, N, T])
    return scores.softmax() @ values


def norms(x: Tensor3D[B, M, N, T]) -> Tensor1D[M, T]:
    return assert_type((x * 1.0).sum(axis=(0, 2)), Tensor1D[M, T])


def gram(x: Tensor2D[M, N], y: Tensor2D[K, N]) -> Tensor2D[M, K]:
    return assert_type(tt.einsum("ij,kj->ik", x, y), Tensor2D[M, K])


check(attention(z.trace(), z, z), (4, 2, 3))
check(norms(z), (2,))
check(gram(m, m), (2, 2))


# Slices of an axis with a name, which is taken to be as long as what they leave out.
def shortened(x: Tensor2D[B, M, T], n: N) -> Tensor2D[B, M, T]:
    (_, m) = x.shape
    check(assert_type(x[:, 1:], Tensor2D[B, Sub[M, L[1]], T]), (2, 5))
    check(assert_type(x[:, :-1], Tensor2D[B, Sub[M, L[1]], T]), (2, 5))
    check(assert_type(x[:, 2:-1], Tensor2D[B, Sub[M, L[3]], T]), (2, 3))
    check(assert_type(x[:, n:], Tensor2D[B, Sub[M, N], T]), (2, 4))
    check(assert_type(x[:, 1::2], Tensor2D[B, Div[M, L[2]], T]), (2, 3))
    return assert_type(x[:, :m], Tensor2D[B, M, T])


def shortened_anywhere(x: Tensor1D[M], longer: Tensor1D[Add[M, N]], n: N, i: int) -> None:
    (m,) = x.shape
    check(assert_type(x[:n], Tensor1D[Any]), (2,))
    check(assert_type(x[:3], Tensor1D[Any]), (3,))
    check(assert_type(x[-3:], Tensor1D[Any]), (3,))
    check(assert_type(x[i:], Tensor1D[Any]), (2,))
    check(assert_type(x[1:-1:2], Tensor1D[Any]), (2,))
    check(assert_type(longer[:n], Tensor1D[N]), (2,))
    check(assert_type(longer[m:], Tensor1D[N]), (2,))


check(shortened(tt.ones((2, 6)), 2), (2, 6))
shortened_anywhere(tt.ones((6,)), tt.ones((8,)), 2, 4)

# Matrices taken apart.
columns, triangle = z.trace().qr()
check(assert_type(columns, Tensor3D[L[4], L[2], L[2], OwnedTape]), (4, 2, 2))
check(assert_type(triangle, Tensor3D[L[4], L[2], L[3], OwnedTape]), (4, 2, 3))
_, logarithms = tt.ones((5, 2, 2)).trace().slogdet()
check(assert_type(logarithms, Tensor1D[L[5], OwnedTape]), (5,))

# What is open stays open.
dynamic: Tensor2D[Any, L[3]] = m
check(assert_type(dynamic @ w, Tensor2D[Any, L[6]]), (2, 6))
check(assert_type(w.transpose() @ dynamic.transpose(), Tensor2D[L[6], Any]), (6, 2))
check(dynamic.transpose() @ m, (3, 3))
check(dynamic[1], (3,))
unknown: Tensor[Any] = m
check(assert_type(unknown @ v, Tensor[Any]), (2,))
check(assert_type(v.trace() @ unknown.transpose(), Tensor[Any, OwnedTape]), (2,))
check(unknown @ w, (2, 6))
check(assert_type(unknown.take(box * 0, axis=0), Tensor[Any]), (7, 8, 9, 3))
check(unknown.take(positions * 0, axis=1), (2, 7))
check(assert_type(unknown[vmask[:2]], Tensor[Any]), (2, 3))
both = tt.concat((unknown, unknown))
check(assert_type(both.sum(axis=-1), Tensor[Any]), (4,))
check(assert_type(unknown.sum(), Tensor0D), ())
check(assert_type(unknown.expand_dims(0)[:, 0].max(axis=0), Tensor[Any]), (3,))
unknown_positions: Tensor[Any, NoneTape, np.int64] = grid * 0
check(assert_type(m[unknown_positions], Tensor[Any]), (7, 8, 3))
check(assert_type(m[unknown_positions, unknown_positions], Tensor[Any]), (7, 8))
check(assert_type(m.take(unknown_positions, axis=0), Tensor[Any]), (7, 8, 3))
chosen: Tensor[Any, NoneTape, np.int64] = mi[:1] * 0
check(assert_type(m.take_along_axis(chosen), Tensor[Any]), (2, 3))


# What is walked through may be a call itself.
def rows_of(x: Tensor2D[L[2], L[3]]) -> Tensor2D[L[2], L[3]]:
    return x


for row in rows_of(tt.ones((2, 3))):
    check(assert_type(row, Tensor1D[L[3]]), (3,))
upper, lower = rows_of(tt.ones((2, 3)))
check(tt.stack((upper, lower)), (2, 3))
