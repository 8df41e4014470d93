"""Functions that users write over shapes, tapes, dims and dtypes."""

from __future__ import annotations

from typing import Any, NewType
from typing import Literal as L

import numpy as np

from tapetensor import NoneTape, OwnedTape, Tensor, Tensor0D, Tensor1D, Tensor2D, Tensor3D, zeros
from tapetensor.typing import B, D, Ds, F, K, M, N, R, S, T
from tests.typing.check import assert_type, check
from tests.typing.operands import m, md, mi, q, s, v, w, z


# Any shape, any tape: the result has both.
def residual(x: Tensor[S, T]) -> Tensor[S, T]:
    return x + x.relu() * 2.0


check(assert_type(residual(m), Tensor2D[L[2], L[3]]), (2, 3))
check(assert_type(residual(m.trace()), Tensor2D[L[2], L[3], OwnedTape]), (2, 3))
check(assert_type(residual(s.trace()), Tensor0D[OwnedTape]), ())
check(assert_type(residual(residual(z)).sum(axis=0), Tensor2D[L[2], L[3]]), (2, 3))


# Any floating dtype, or any number, beside them.
def scaled(x: Tensor[S, T, F]) -> Tensor[S, T, F]:
    return x / 2.0


def doubled(x: Tensor[S, T, R]) -> Tensor[S, T, R]:
    return x + x


check(assert_type(scaled(m.trace()), Tensor2D[L[2], L[3], OwnedTape]), (2, 3))
check(assert_type(scaled(md), Tensor2D[L[2], L[3], NoneTape, np.float64]), (2, 3))
check(assert_type(doubled(mi), Tensor2D[L[2], L[3], NoneTape, np.int64]), (2, 3))


# Any leading dims.
def layer(
    x: Tensor[tuple[*Ds, N], T], weight: Tensor2D[N, K], bias: Tensor1D[K]
) -> Tensor[tuple[*Ds, K], T]:
    return (x @ weight + bias).relu()


b6: Tensor1D[L[6]] = zeros((6,))
check(assert_type(layer(v, w, b6), Tensor1D[L[6]]), (6,))
check(assert_type(layer(m, w, b6), Tensor2D[L[2], L[6]]), (2, 6))
check(assert_type(layer(z.trace(), w, b6), Tensor3D[L[4], L[2], L[6], OwnedTape]), (4, 2, 6))
check(assert_type(layer(q, w, b6).max(axis=-1), Tensor3D[L[5], L[4], L[2]]), (5, 4, 2))


def normalized(x: Tensor[tuple[*Ds, N], T, F]) -> Tensor[tuple[*Ds, N], T, F]:
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred / (centred.std(axis=-1, keepdims=True) + 1e-5)


check(assert_type(normalized(m), Tensor2D[L[2], L[3]]), (2, 3))
check(assert_type(normalized(md.trace()), Tensor2D[L[2], L[3], OwnedTape, np.float64]), (2, 3))


# Named dims, in any order; the shape can be taken apart.
def gram(x: Tensor2D[M, N, T]) -> Tensor2D[M, M, T]:
    return x @ x.transpose()


def like(x: Tensor2D[M, N, T, D]) -> Tensor2D[N, M]:
    rows, columns = x.shape
    return zeros((columns, rows))


def batch_first(x: Tensor3D[M, B, N, T]) -> Tensor3D[B, M, N, T]:
    return x.permute_dims((1, 0, 2))


check(assert_type(gram(m.trace()), Tensor2D[L[2], L[2], OwnedTape]), (2, 2))
check(assert_type(like(mi), Tensor2D[L[3], L[2]]), (3, 2))
check(assert_type(batch_first(z), Tensor3D[L[2], L[4], L[3]]), (2, 4, 3))


# A loss takes one operand with any tape and a plain target, and is a scalar.
def mse(prediction: Tensor[S, T, F], target: Tensor[S, NoneTape, F]) -> Tensor0D[T, F]:
    return (prediction - target).square().mean()


check(assert_type(mse(m, m), Tensor0D), ())
check(assert_type(mse(m.trace(), m), Tensor0D[OwnedTape]), ())
check(assert_type(mse(md.trace(), md), Tensor0D[OwnedTape, np.float64]), ())

# Dims with a name instead of a size, known at run time only.
Batch = NewType("Batch", int)
Time = NewType("Time", int)


def pooled(x: Tensor3D[Batch, Time, L[3], T]) -> Tensor2D[Batch, L[3], T]:
    return x.mean(axis=1)


x: Tensor3D[Batch, Time, L[3]] = zeros((Batch(8), Time(5), 3))
check(assert_type(pooled(x.trace()), Tensor2D[Batch, L[3], OwnedTape]), (8, 3))
check(assert_type(x @ w, Tensor3D[Batch, Time, L[6]]), (8, 5, 6))
assert_type(x.shape[0], Batch)


# A dim of Any is open: it fits every size, and the result is open in that place only.
def head(x: Tensor2D[Any, L[3], T]) -> Tensor2D[Any, L[6], T]:
    return x @ w


check(assert_type(head(m[0:1].trace()), Tensor2D[Any, L[6], OwnedTape]), (1, 6))
check(assert_type(m[0:1] + v, Tensor2D[Any, L[3]]), (1, 3))


# What is plain may stand on either side of what has any tape.
def affine(
    x: Tensor[tuple[*Ds, N], T], scale: Tensor1D[N], shift: Tensor1D[N]
) -> Tensor[tuple[*Ds, N], T]:
    return shift + scale * x


def column_vectors(weight: Tensor2D[M, N], x: Tensor2D[N, B, T]) -> Tensor2D[M, B, T]:
    return weight @ x


def blended(x: Tensor[S, T, F], plain: Tensor[S, NoneTape, F]) -> Tensor[S, T, F]:
    return plain - (x / plain + plain / x)


check(assert_type(affine(z.trace(), v, v), Tensor3D[L[4], L[2], L[3], OwnedTape]), (4, 2, 3))
check(assert_type(column_vectors(m, w.trace()), Tensor2D[L[2], L[6], OwnedTape]), (2, 6))
check(assert_type(blended(m.trace(), m), Tensor2D[L[2], L[3], OwnedTape]), (2, 3))
