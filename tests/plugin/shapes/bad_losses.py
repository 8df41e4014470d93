"""Predictions and targets of two shapes. Every thunk raises."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import NoneTape, Tensor1D, Tensor2D, losses
from tapetensor.typing import B, M, N
from tests.typing.operands import m, m77, v, v7

Labels = Tensor1D[M, NoneTape, np.int64]
eight_labels: Labels[L[8]] = tt.from_numpy(np.zeros(8, np.int64), (8,))

BAD: list[Callable[[], object]] = [
    lambda: losses.mse(m, m77),  # E: mse: prediction of shape (2, 3) and target of shape (7, 7) dif
    lambda: losses.mae(v.trace(), v7),  # E: mae: prediction of shape (3,) and target of shape (7,)
    lambda: losses.cross_entropy(m, eight_labels),  # E: logits of shape (2, 3) need labels of shape
]


def other_classes(x: Tensor2D[B, N], y: Tensor2D[B, L[3]]) -> object:
    return losses.kl_div(x, y)  # E: logits of shape (B, N) and probabilities of shape (B, 3) differ


def other_names(x: Tensor2D[B, N], y: Tensor2D[B, M]) -> object:
    return losses.huber(x, y)  # E: huber: prediction of shape (B, N) and target of shape (B, M)


def other_probabilities(x: Tensor2D[B, N], y: Tensor2D[B, L[7]]) -> object:
    return losses.binary_cross_entropy_with_logits(x, y)  # E: and probabilities of shape (B, 7)


def other_batch(x: Tensor2D[B, N], y: Labels[M]) -> object:
    return losses.cross_entropy(x, y)  # E: logits of shape (B, N) need labels of shape (B,), not (M


BAD += [
    lambda: other_classes(tt.ones((2, 4)), m),
    lambda: other_names(m, tt.ones((2, 4))),
    lambda: other_probabilities(m, tt.ones((2, 7))),
    lambda: other_batch(m, eight_labels),
]
