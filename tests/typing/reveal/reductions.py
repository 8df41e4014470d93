"""`sum`, `mean` and `var` over all axes and over -3 to 3, with and without `keepdims`."""

from __future__ import annotations

from typing import Literal as L

from tapetensor import OwnedTape, Tensor0D, Tensor2D, Tensor3D, Tensor4D
from tests.typing.check import assert_type, check
from tests.typing.operands import m, q, z

# `sum`, with both tapes for each axis.
check(assert_type(q.sum(), Tensor0D), ())
check(assert_type(q.trace().sum(), Tensor0D[OwnedTape]), ())
check(assert_type(q.sum(axis=-1), Tensor3D[L[5], L[4], L[2]]), (5, 4, 2))
check(assert_type(q.trace().sum(axis=-1), Tensor3D[L[5], L[4], L[2], OwnedTape]), (5, 4, 2))
check(assert_type(q.sum(axis=-1, keepdims=True), Tensor4D[L[5], L[4], L[2], L[1]]), (5, 4, 2, 1))
check(assert_type(m.trace().sum(axis=-1, keepdims=True), Tensor2D[L[2], L[1], OwnedTape]), (2, 1))
check(assert_type(q.sum(axis=-2), Tensor3D[L[5], L[4], L[3]]), (5, 4, 3))
check(assert_type(q.trace().sum(axis=-2), Tensor3D[L[5], L[4], L[3], OwnedTape]), (5, 4, 3))
check(assert_type(q.sum(axis=-2, keepdims=True), Tensor4D[L[5], L[4], L[1], L[3]]), (5, 4, 1, 3))
check(assert_type(m.trace().sum(axis=-2, keepdims=True), Tensor2D[L[1], L[3], OwnedTape]), (1, 3))
check(assert_type(q.sum(axis=-3), Tensor3D[L[5], L[2], L[3]]), (5, 2, 3))
check(assert_type(q.trace().sum(axis=-3), Tensor3D[L[5], L[2], L[3], OwnedTape]), (5, 2, 3))
check(assert_type(q.sum(axis=-3, keepdims=True), Tensor4D[L[5], L[1], L[2], L[3]]), (5, 1, 2, 3))
check(assert_type(z.trace().sum(-3, True), Tensor3D[L[1], L[2], L[3], OwnedTape]), (1, 2, 3))
check(assert_type(q.sum(axis=0), Tensor3D[L[4], L[2], L[3]]), (4, 2, 3))
check(assert_type(q.trace().sum(axis=0), Tensor3D[L[4], L[2], L[3], OwnedTape]), (4, 2, 3))
check(assert_type(q.sum(axis=0, keepdims=True), Tensor4D[L[1], L[4], L[2], L[3]]), (1, 4, 2, 3))
check(assert_type(m.trace().sum(axis=0, keepdims=True), Tensor2D[L[1], L[3], OwnedTape]), (1, 3))
check(assert_type(q.sum(axis=1), Tensor3D[L[5], L[2], L[3]]), (5, 2, 3))
check(assert_type(q.trace().sum(axis=1), Tensor3D[L[5], L[2], L[3], OwnedTape]), (5, 2, 3))
check(assert_type(q.sum(axis=1, keepdims=True), Tensor4D[L[5], L[1], L[2], L[3]]), (5, 1, 2, 3))
check(assert_type(m.trace().sum(axis=1, keepdims=True), Tensor2D[L[2], L[1], OwnedTape]), (2, 1))
check(assert_type(q.sum(axis=2), Tensor3D[L[5], L[4], L[3]]), (5, 4, 3))
check(assert_type(q.trace().sum(axis=2), Tensor3D[L[5], L[4], L[3], OwnedTape]), (5, 4, 3))
check(assert_type(q.sum(axis=2, keepdims=True), Tensor4D[L[5], L[4], L[1], L[3]]), (5, 4, 1, 3))
check(assert_type(z.trace().sum(2, True), Tensor3D[L[4], L[2], L[1], OwnedTape]), (4, 2, 1))
check(assert_type(q.sum(axis=3), Tensor3D[L[5], L[4], L[2]]), (5, 4, 2))
check(assert_type(q.trace().sum(axis=3), Tensor3D[L[5], L[4], L[2], OwnedTape]), (5, 4, 2))
check(assert_type(q.sum(axis=3, keepdims=True), Tensor4D[L[5], L[4], L[2], L[1]]), (5, 4, 2, 1))
check(
    assert_type(q.trace().sum(axis=3, keepdims=True), Tensor4D[L[5], L[4], L[2], L[1], OwnedTape]),
    (5, 4, 2, 1),
)

# `mean`, with one of the two tapes for each axis.
check(assert_type(q.mean(), Tensor0D), ())
check(assert_type(q.trace().mean(), Tensor0D[OwnedTape]), ())
check(assert_type(q.trace().mean(axis=-1), Tensor3D[L[5], L[4], L[2], OwnedTape]), (5, 4, 2))
check(assert_type(q.mean(axis=-1, keepdims=True), Tensor4D[L[5], L[4], L[2], L[1]]), (5, 4, 2, 1))
check(assert_type(q.mean(axis=-2), Tensor3D[L[5], L[4], L[3]]), (5, 4, 3))
check(assert_type(m.trace().mean(axis=-2, keepdims=True), Tensor2D[L[1], L[3], OwnedTape]), (1, 3))
check(assert_type(q.trace().mean(axis=-3), Tensor3D[L[5], L[2], L[3], OwnedTape]), (5, 2, 3))
check(assert_type(q.mean(axis=-3, keepdims=True), Tensor4D[L[5], L[1], L[2], L[3]]), (5, 1, 2, 3))
check(assert_type(q.mean(axis=0), Tensor3D[L[4], L[2], L[3]]), (4, 2, 3))
check(assert_type(m.trace().mean(axis=0, keepdims=True), Tensor2D[L[1], L[3], OwnedTape]), (1, 3))
check(assert_type(q.trace().mean(axis=1), Tensor3D[L[5], L[2], L[3], OwnedTape]), (5, 2, 3))
check(assert_type(q.mean(axis=1, keepdims=True), Tensor4D[L[5], L[1], L[2], L[3]]), (5, 1, 2, 3))
check(assert_type(q.mean(axis=2), Tensor3D[L[5], L[4], L[3]]), (5, 4, 3))
check(assert_type(z.trace().mean(2, True), Tensor3D[L[4], L[2], L[1], OwnedTape]), (4, 2, 1))
check(assert_type(q.trace().mean(axis=3), Tensor3D[L[5], L[4], L[2], OwnedTape]), (5, 4, 2))
check(assert_type(q.mean(axis=3, keepdims=True), Tensor4D[L[5], L[4], L[2], L[1]]), (5, 4, 2, 1))

# `var`, likewise.
check(assert_type(q.var(), Tensor0D), ())
check(assert_type(q.trace().var(), Tensor0D[OwnedTape]), ())
check(assert_type(q.trace().var(axis=-1), Tensor3D[L[5], L[4], L[2], OwnedTape]), (5, 4, 2))
check(assert_type(q.var(axis=-1, keepdims=True), Tensor4D[L[5], L[4], L[2], L[1]]), (5, 4, 2, 1))
check(assert_type(q.var(axis=-2), Tensor3D[L[5], L[4], L[3]]), (5, 4, 3))
check(assert_type(m.trace().var(axis=-2, keepdims=True), Tensor2D[L[1], L[3], OwnedTape]), (1, 3))
check(assert_type(q.trace().var(axis=-3), Tensor3D[L[5], L[2], L[3], OwnedTape]), (5, 2, 3))
check(assert_type(q.var(axis=-3, keepdims=True), Tensor4D[L[5], L[1], L[2], L[3]]), (5, 1, 2, 3))
check(assert_type(q.var(axis=0), Tensor3D[L[4], L[2], L[3]]), (4, 2, 3))
check(assert_type(m.trace().var(axis=0, keepdims=True), Tensor2D[L[1], L[3], OwnedTape]), (1, 3))
check(assert_type(q.trace().var(axis=1), Tensor3D[L[5], L[2], L[3], OwnedTape]), (5, 2, 3))
check(assert_type(q.var(axis=1, keepdims=True), Tensor4D[L[5], L[1], L[2], L[3]]), (5, 1, 2, 3))
check(assert_type(q.var(axis=2), Tensor3D[L[5], L[4], L[3]]), (5, 4, 3))
check(assert_type(z.trace().var(2, True), Tensor3D[L[4], L[2], L[1], OwnedTape]), (4, 2, 1))
check(assert_type(q.trace().var(axis=3), Tensor3D[L[5], L[4], L[2], OwnedTape]), (5, 4, 2))
check(assert_type(q.var(axis=3, keepdims=True), Tensor4D[L[5], L[4], L[2], L[1]]), (5, 4, 2, 1))
