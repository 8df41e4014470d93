"""A user's own ops: the declared shape, and the tape and the dtype of the operands."""

from __future__ import annotations

from typing import Any, overload
from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import NoneTape, OwnedTape, Tensor, Tensor0D, Tensor1D, Tensor2D
from tapetensor.typing import Array, B, F, N, Pullbacks, S, T
from tests.typing.check import assert_type, check
from tests.typing.operands import m, md, v


def softsign_kernel(x: Array) -> tuple[Array, Pullbacks]:
    scale = 1 + np.abs(x)
    return x / scale, (lambda g: g / (scale * scale),)


def scale_kernel(x: Array, y: Array) -> tuple[Array, Pullbacks]:
    return x * y, (lambda g: g * y, lambda g: np.sum(g * x, axis=0))


def multiply_kernel(x: Array, y: Array, z: Array) -> tuple[Array, Pullbacks]:
    return x * y * z, (lambda g: g * y * z, lambda g: g * x * z, lambda g: g * x * y)


def row_sums_kernel(x: Array) -> tuple[Array, Pullbacks]:
    return x.sum(axis=1), (lambda g: np.broadcast_to(g[:, None], x.shape),)


def total_kernel(x: Array) -> tuple[Array, Pullbacks]:
    return np.sum(x), (lambda g: np.broadcast_to(g, x.shape),)


def softsign(x: Tensor[S, T, F]) -> Tensor[S, T, F]:
    return tt.custom_op(softsign_kernel, x, shape=x.shape)


def row_sums(x: Tensor2D[B, N, T, F]) -> Tensor1D[B, T, F]:
    return tt.custom_op(row_sums_kernel, x, shape=(x.shape[0],))


def total(x: Tensor2D[B, N, T, F]) -> Tensor0D[T, F]:
    return tt.custom_op(total_kernel, x, shape=())


@overload
def scaled(x: Tensor2D[B, N, T, F], y: Tensor1D[N, NoneTape, F]) -> Tensor2D[B, N, T, F]: ...
@overload
def scaled(
    x: Tensor2D[B, N, T, F], y: Tensor1D[N, OwnedTape, F]
) -> Tensor2D[B, N, OwnedTape, F]: ...
def scaled(x: Tensor2D[B, N, Any, F], y: Tensor1D[N, Any, F]) -> Tensor2D[B, N, Any, F]:
    return tt.custom_op(scale_kernel, x, y, shape=x.shape)


check(assert_type(softsign(m), Tensor2D[L[2], L[3]]), (2, 3))
check(assert_type(softsign(m.trace()), Tensor2D[L[2], L[3], OwnedTape]), (2, 3))
check(assert_type(softsign(md.trace()), Tensor2D[L[2], L[3], OwnedTape, np.float64]), (2, 3))
check(assert_type(row_sums(m.trace()), Tensor1D[L[2], OwnedTape]), (2,))
check(assert_type(total(m.trace()), Tensor0D[OwnedTape]), ())

# All four combinations of two tapes, in an op of the user's and in the call itself.
check(assert_type(scaled(m, v), Tensor2D[L[2], L[3]]), (2, 3))
check(assert_type(scaled(m.trace(), v), Tensor2D[L[2], L[3], OwnedTape]), (2, 3))
check(assert_type(scaled(m, v.trace()), Tensor2D[L[2], L[3], OwnedTape]), (2, 3))
check(assert_type(scaled(m.trace(), v.trace()), Tensor2D[L[2], L[3], OwnedTape]), (2, 3))
check(
    assert_type(
        tt.custom_op(scale_kernel, m, v.trace(), shape=m.shape), Tensor2D[L[2], L[3], OwnedTape]
    ),
    (2, 3),
)

# Three, of which any may own one.
check(
    assert_type(tt.custom_op(multiply_kernel, m, m, m, shape=m.shape), Tensor2D[L[2], L[3]]), (2, 3)
)
check(
    assert_type(
        tt.custom_op(multiply_kernel, m, m, m.trace(), shape=m.shape),
        Tensor2D[L[2], L[3], OwnedTape],
    ),
    (2, 3),
)
check(
    assert_type(
        tt.custom_op(multiply_kernel, m.trace(), m, m.trace(), shape=m.shape),
        Tensor2D[L[2], L[3], OwnedTape],
    ),
    (2, 3),
)
