"""Operands that meet each of a dim with each, for their ranks differ: it runs, and is not meant."""

from __future__ import annotations

from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import NoneTape, OwnedTape, Tensor0D, Tensor1D, Tensor2D, Tensor3D, nn
from tapetensor.typing import B, K, M, N, T

Mask = Tensor1D[B, NoneTape, np.bool_]
model: nn.Linear[L[4], L[1]] = nn.Linear(4, 1, rng=np.random.default_rng(0))


def loss_of(x: Tensor2D[B, L[4]], y: Tensor1D[B]) -> Tensor0D[OwnedTape]:
    pred = model.forward(x.trace())
    # E: subtract: shapes (B, 1) and (B,) broadcast to (B, B), each of B with each; drop the axis of
    return (pred - y).square().mean()


def doubtful(x: Tensor2D[B, L[4]], y: Tensor1D[B], mask: Mask[B]) -> None:
    pred = model.forward(x)
    y * pred  # E: multiply: shapes (B,) and (B, 1) broadcast to (B, B), each of B with each
    (pred > y).any()  # E: greater: shapes (B, 1) and (B,) broadcast to (B, B)
    (pred == y).all()  # E: equal: shapes (B, 1) and (B,) broadcast to (B, B)
    tt.maximum(pred, y)  # E: maximum: ... give (B,) one with expand_dims(-1); expand_dims(0) says
    tt.where(mask, pred, 0.0)  # E: where: shapes (B,) and (B, 1) broadcast to (B, B)
    pred = pred.relu()
    pred += y  # E: add: shapes (B, 1) and (B,) broadcast to (B, B)


def further_axes(
    gates: Tensor3D[B, M, L[1], T], weights: Tensor1D[M], heads: Tensor3D[B, L[1], M, T]
) -> None:
    gates * weights  # E: multiply: shapes (B, M, 1) and (M,) broadcast to (B, M, M), each of M
    masked: Tensor2D[B, M] = gates.detach().squeeze(2)
    heads + masked  # E: add: shapes (B, 1, M) and (B, M) broadcast to (B, B, M), each of B with


def sizes(column: Tensor2D[L[6], L[1]], row: Tensor1D[L[6]]) -> None:
    column - row  # E: subtract: shapes (6, 1) and (6,) broadcast to (6, 6), each of 6 with each


def right(
    x: Tensor2D[B, K], bias: Tensor1D[K], gram: Tensor2D[B, B], y: Tensor1D[B], z: Tensor1D[N]
) -> Tensor2D[B, B]:
    """What is meant says so: an axis that is made, a result that has the dim twice, one rank."""
    x + bias
    gram * y
    y.expand_dims(1) - y
    (y.expand_dims(1) * 2.0).exp() - y
    y[:, None] * y
    column = y.reshape((y.shape[0], 1))
    column - y
    squares = x.square()
    squares.sum(axis=1, keepdims=True) + squares.sum(axis=1)
    model.forward(x.astype(np.float32)[:, :4].reshape((y.shape[0], 4))) - y.expand_dims(-1)
    model.forward(tt.ones((5, 4))) - z
    every: Tensor2D[B, B] = _column(x) - y
    every + _column(x).transpose()
    return _column(x) - y


def _column(x: Tensor2D[B, K]) -> Tensor2D[B, L[1]]:
    return x.mean(axis=1, keepdims=True)


x: Tensor2D[L[6], L[4]] = tt.ones((6, 4))
y: Tensor1D[L[6]] = tt.ones((6,))
gram: Tensor2D[L[6], L[6]] = tt.ones((6, 6))
bias: Tensor1D[L[4]] = tt.ones((4,))
weights: Tensor1D[L[5]] = tt.ones((5,))
loss_of(x, y).backward()
doubtful(x, y, y > 0.0)
further_axes(tt.ones((6, 5, 1)), weights, tt.ones((6, 1, 5)))
sizes(tt.ones((6, 1)), y)
right(x, bias, gram, y, weights)
