"""Computed dims that are not what is declared. Every thunk raises."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal as L

import tapetensor as tt
from tapetensor import Tensor1D, Tensor2D, Tensor3D, Tensor4D
from tapetensor.typing import Add, B, Div, K, M, Mul, N


def squared(x: Tensor4D[B, M, N, K]) -> Tensor3D[B, M, Mul[N, N]]:
    batch, time, _, _ = x.shape
    return x.reshape((batch, time, -1))  # E: got ... B, M, Mul[K, N]] ... B, M, Mul[N, N]],


def divided(x: Tensor3D[B, M, K], count: N) -> Tensor4D[B, M, N, Div[K, B]]:
    batch, time, wide = x.shape
    return x.reshape((batch, time, count, wide // count))  # E: got ... Div[K, N]] ... Div[K, B]],


def chained(x: Tensor1D[M], y: Tensor1D[N]) -> Tensor1D[Add[M, M]]:
    return tt.concat((x, y))  # E: got ... Add[M, N]] ... Mul[M, Literal[2]]],


def added(x: Tensor2D[M, N], y: Tensor1D[Add[M, N]]) -> object:
    return x.flatten() + y  # E: add: shapes (M*N,) and (M + N,) do not broadcast, M*N != M + N


def contracted(x: Tensor3D[B, M, N], y: Tensor2D[Div[N, M], K]) -> object:
    flat = x.reshape((x.shape[0], -1))
    return flat @ y  # E: matmul: inner dims differ: (B, M*N) @ (N / M, K), M*N != N / M


def squeezed(x: Tensor2D[M, N]) -> object:
    return x.flatten().squeeze(0)  # E: squeeze: axis 0 of shape (M*N,) has size M*N, not 1


def doubled(x: Tensor1D[N]) -> Tensor1D[Mul[N, L[2]]]:
    return tt.concat((x, x))


def rows_of_two(x: Tensor1D[Mul[N, L[2]]]) -> Tensor2D[N, L[2]]:
    return x.reshape((-1, 2))


def grid(x: Tensor1D[Mul[M, N]], rows: M, columns: N) -> Tensor2D[M, N]:
    return x.reshape((rows, columns))


v, six, seven = tt.zeros((3,)), tt.zeros((6,)), tt.zeros((7,))
BAD: tuple[Callable[[], object], ...] = (
    lambda: doubled(v) + seven,  # E: add: shapes (6,) and (7,) do not broadcast, 6 != 7
    lambda: rows_of_two(seven),  # E: Argument 1 ... tuple[Literal[7]] ... Mul[N, Literal[2]]],
    lambda: grid(six, 2, 4),  # E: Argument 1 ... tuple[Literal[6]] ... tuple[Literal[8]],
    # They run, and return another shape than they say.
    lambda: squared(tt.zeros((1, 1, 2, 3))) + tt.zeros((1, 1, 4)),
    lambda: divided(tt.zeros((2, 1, 16)), 4) + tt.zeros((8,)),
    lambda: chained(v, seven) + six,
    lambda: added(tt.zeros((3, 4)), seven),
    lambda: contracted(tt.zeros((1, 2, 4)), tt.zeros((2, 3))),
    lambda: squeezed(tt.zeros((2, 3))),
)
