"""Dims that are computed from others are open without the mypy plugin, and keep the rank."""

from __future__ import annotations

from typing import Any
from typing import Literal as L

import tapetensor as tt
from tapetensor import Tensor1D, Tensor2D, Tensor3D
from tapetensor.typing import Add, B, Div, K, M, Mul, N, Sub, T
from tests.typing.check import assert_type, check
from tests.typing.operands import m, v, v7, z


def flat(x: Tensor2D[M, N, T]) -> Tensor1D[Mul[M, N], T]:
    return x.flatten()


def joined(x: Tensor1D[M], y: Tensor1D[N]) -> Tensor1D[Add[M, N]]:
    return tt.concat((x, y))


def without_first(x: Tensor1D[N]) -> Tensor1D[Sub[N, L[1]]]:
    return x[1:]


def regrouped(x: Tensor3D[B, M, N], size: K) -> Tensor2D[K, Div[Mul[B, Mul[M, N]], K]]:
    return x.reshape((size, -1))


check(assert_type(flat(m), Tensor1D[Any]), (6,))
check(assert_type(joined(v, v7), Tensor1D[Any]), (10,))
check(assert_type(without_first(v), Tensor1D[Any]), (2,))
check(regrouped(z, 2), (2, 12))
exact: Tensor1D[L[6]] = flat(m)
check(exact, (6,))
