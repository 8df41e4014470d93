"""Reshapes, axes put elsewhere, and tensors put together: beyond the table of ops."""

from __future__ import annotations

from typing import Any
from typing import Literal as L

import tapetensor as tt
from tapetensor import NoneTape, OwnedTape, Tensor, Tensor1D, Tensor2D, Tensor3D, Tensor4D
from tapetensor.typing import B, K, M, Mul, N, S, T
from tests.typing.check import assert_type, check
from tests.typing.operands import c, m, positions, q, z

# What a place asks for goes first, and a variable keeps what is known.
reshaped = m.reshape((3, -1))
check(assert_type(reshaped, Tensor2D[L[3], L[2]]), (3, 2))
wanted: Tensor2D[int, int] = m.reshape((3, 2))
check(assert_type(wanted, Tensor2D[int, int]), (3, 2))
open_wanted: Tensor2D[Any, L[2]] = m.reshape((-1, 2))
check(assert_type(open_wanted, Tensor2D[Any, L[2]]), (3, 2))
check(assert_type(z.trace().reshape((-1,)), Tensor1D[L[24], OwnedTape]), (24,))
computed: Tensor1D[int] = z.flatten()
check(computed, (24,))
padded = z.trace().pad(((1, 0), (1, 1), (0, 2)), "replicate")
check(assert_type(padded, Tensor3D[L[5], L[4], L[5], OwnedTape]), (5, 4, 5))
check(assert_type(c.broadcast_to(z.shape), Tensor3D[L[4], L[2], L[3]]), (4, 2, 3))

# Lists, and parts.
check(assert_type(tt.concat([m, c], axis=-1), Tensor2D[L[2], L[4]]), (2, 4))
check(assert_type(tt.stack([m.trace(), m]), Tensor3D[L[2], L[2], L[3], OwnedTape]), (2, 2, 3))
parts = [m, m]
check(assert_type(tt.concat(parts), Tensor2D[Any, L[3]]), (4, 3))
check(assert_type(tt.concat([m, *parts]), Tensor2D[Any, L[3]]), (6, 3))
check(assert_type(q.roll(1, axis=-4), Tensor4D[L[5], L[4], L[2], L[3]]), (5, 4, 2, 3))
first, second = q.split(2, axis=1)
check(assert_type(first, Tensor4D[L[5], L[2], L[2], L[3]]), (5, 2, 2, 3))
left, right = z.trace().split([1, 2], axis=-1)
check(assert_type(right, Tensor3D[L[4], L[2], L[2], OwnedTape]), (4, 2, 2))
for part in z.split((1, 3)):
    assert part.shape[1:] == (2, 3)
untyped: Tensor1D[L[7], NoneTape, Any] = positions
check(assert_type(q.take(untyped, axis=3), Tensor4D[L[5], L[4], L[2], L[7]]), (5, 4, 2, 7))


# Dims with names keep them, also through `x.shape`.
def heads(x: Tensor3D[B, M, L[12], T]) -> Tensor4D[B, L[3], M, L[4], T]:
    batch, time, _ = x.shape
    split_up = assert_type(x.reshape((batch, time, 3, -1)), Tensor4D[B, M, L[3], L[4], T])
    return split_up.permute_dims((0, 2, 1, 3))


def merge(x: Tensor4D[B, M, L[3], L[4], T]) -> Tensor3D[B, M, L[12], T]:
    batch, time, _, _ = x.shape
    return x.reshape((batch, time, -1))


def rows(x: Tensor3D[B, M, N]) -> Tensor2D[B, Mul[M, N]]:
    return assert_type(x.reshape((x.shape[0], -1)), Tensor2D[B, Mul[M, N]])


def flat(x: Tensor2D[B, L[1], T]) -> Tensor1D[B, T]:
    return assert_type(x.flatten(), Tensor1D[B, T])


def any_shape(x: Tensor[S, T]) -> Tensor1D[Any, T]:
    return x.flatten()


def widened(x: Tensor2D[B, N], y: Tensor2D[B, L[1]]) -> Tensor2D[B, Any]:
    return tt.concat((x, y), axis=1)


def outer(x: Tensor2D[M, K], y: Tensor2D[N, K]) -> Tensor3D[M, N, K]:
    return assert_type(x.expand_dims(1) * y, Tensor3D[M, N, K])


def parted(x: Tensor2D[B, Mul[M, N]], count: M) -> Tensor2D[B, N]:
    parts = x.split(count, axis=1)
    return assert_type(parts[0], Tensor2D[B, N])


check(parted(tt.zeros((2, 12)), 4), (2, 3))
check(heads(tt.zeros((2, 5, 12))), (2, 3, 5, 4))
check(merge(tt.zeros((2, 5, 3, 4))), (2, 5, 12))
check(rows(z), (4, 6))
check(flat(c), (2,))
check(any_shape(m), (6,))
check(widened(m, c), (2, 4))
check(outer(m, m), (2, 2, 3))

# What is open stays open.
dynamic: Tensor2D[Any, L[3]] = m
check(assert_type(dynamic.flatten(), Tensor1D[Any]), (6,))
check(assert_type(dynamic.reshape((3, -1)), Tensor2D[L[3], Any]), (3, 2))
check(dynamic.reshape((6,)), (6,))
check(assert_type(tt.concat((dynamic, m)), Tensor2D[Any, L[3]]), (4, 3))
for axis in range(2):
    check(assert_type(m.softmax(axis=axis), Tensor2D[L[2], L[3]]), (2, 3))

# Items of one list may have different shapes.
parts = [m[:1], m[1:], m]
for one in parts:
    check(one.sum(axis=0), (3,))
