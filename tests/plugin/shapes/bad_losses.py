"""Predictions and targets of two shapes or two dtypes. Every thunk raises."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import NoneTape, OwnedTape, Tensor, Tensor0D, Tensor1D, Tensor2D, losses
from tapetensor.typing import B, M, N, S
from tests.typing.check import assert_type
from tests.typing.operands import m, m77, md, mi, s, v, v7, vi

Labels = Tensor1D[M, NoneTape, np.int64]
eight_labels: Labels[L[8]] = tt.from_numpy(np.zeros(8, np.int64), (8,))
two_labels, two = tt.zeros((2,), np.int64), tt.ones((2,))
m24 = tt.ones((2, 4))

BAD: tuple[Callable[[], object], ...] = (
    lambda: losses.mse(m, m77),  # E: mse: prediction of shape (2, 3) and target of shape (7, 7) dif
    lambda: losses.mae(v.trace(), v7),  # E: mae: prediction of shape (3,) and target of shape (7,)
    lambda: losses.cross_entropy(m, eight_labels),  # E: logits of shape (2, 3) need labels of shape
    lambda: losses.nll(m, eight_labels),  # E: log_probabilities of shape (2, 3) need labels of shap
    # One of fewer axes, which plain typing takes for a question of type parameters.
    lambda: losses.smooth_l1(m, v),  # E: prediction of shape (2, 3) and target of shape (3,) differ
    lambda: losses.quantile(m, v, 0.5),  # E: prediction of shape (2, 3) and target of shape (3,) di
    lambda: losses.binary_cross_entropy(m, v),  # E: predictions of shape (2, 3) and probabilities o
    lambda: losses.kl_div(m, v),  # E: logits of shape (2, 3) and probabilities of shape (3,) differ
    lambda: losses.cross_entropy(m, mi),  # E: need labels of shape (2,), not (2, 3)
    lambda: losses.nll(m, mi),  # E: nll: log_probabilities of shape (2, 3) need labels of shape (2,
    lambda: losses.nll(s, two_labels),  # E: nll: log_probabilities of shape () have no axis of clas
    lambda: losses.cosine_embedding(m, m24, two_labels),  # E: lhs of shape (2, 3), rhs of shape (2,
    lambda: losses.cosine_embedding(m, m, eight_labels),  # E: and signs of shape (8,) do not fit
    lambda: losses.poisson_nll(m, v),  # E: log_rates of shape (2, 3) and counts of shape (3,) diffe
    lambda: losses.hinge_embedding(m, two_labels),  # E: distances of shape (2, 3) and signs of shap
    lambda: losses.soft_margin(m, two_labels),  # E: soft_margin: prediction of shape (2, 3) and sig
    lambda: losses.margin_ranking(m, m24, mi),  # E: lhs of shape (2, 3) and rhs of shape (2, 4) dif
    lambda: losses.triplet_margin(m, m, m24),  # E: anchor of shape (2, 3) and negative of shape (2,
    lambda: losses.gaussian_nll(m, m, m24),  # E: prediction of shape (2, 3) and variance of shape (
    lambda: losses.multi_margin(m, eight_labels),  # E: scores of shape (2, 3) need labels of shape
    # Other dtypes.
    lambda: losses.soft_margin(m, m),  # E: soft_margin: signs must be signed integers, got
    lambda: losses.triplet_margin(m, m, md),  # E: triplet_margin: dtypes differ: float32 and float
    lambda: losses.mse(m, md),  # E: mse: dtypes differ: float32 and float64; convert one with astyp
    lambda: losses.rmse(vi, vi),  # E: rmse: not defined for dtype int64; convert first with x.astyp
    lambda: losses.binary_cross_entropy_with_logits(m, mi),  # E: dtypes differ: float32 and int64
    lambda: losses.cross_entropy(m, two),  # E: cross_entropy: labels must be integers, got float32;
    lambda: losses.nll(m, two),  # E: nll: labels must be integers, got float32; for targets that
    lambda: losses.cosine_embedding(m, m, two),  # E: cosine_embedding: signs must be signed
    lambda: losses.cosine_embedding(m, md, two_labels),  # E: cosine_embedding: dtypes differ
)


def other_classes(x: Tensor2D[B, N], y: Tensor2D[B, L[3]]) -> object:
    return losses.kl_div(x, y)  # E: logits of shape (B, N) and probabilities of shape (B, 3) differ


def other_names(x: Tensor2D[B, N], y: Tensor2D[B, M]) -> object:
    return losses.huber(x, y)  # E: huber: prediction of shape (B, N) and target of shape (B, M)


def other_probabilities(x: Tensor2D[B, N], y: Tensor2D[B, L[7]]) -> object:
    return losses.binary_cross_entropy_with_logits(x, y)  # E: and probabilities of shape (B, 7)


def other_batch(x: Tensor2D[B, N], y: Labels[M]) -> object:
    return losses.cross_entropy(x, y)  # E: logits of shape (B, N) need labels of shape (B,), not (M


def of_any_rank(x: Tensor2D[B, N], y: Tensor[S]) -> object:
    return losses.mse(x, y)  # E: mse: prediction of shape (B, N) and target of shape (...) differ


def of_an_int(x: Tensor2D[B, int], y: Tensor2D[B, N]) -> object:
    return losses.mse(x, y)  # E: mse: prediction of shape (B, int) and target of shape (B, N) diff


BAD += (
    lambda: of_any_rank(m, tt.ones((3,))),
    lambda: of_an_int(m, tt.ones((2, 7))),
    lambda: other_classes(tt.ones((2, 4)), m),
    lambda: other_names(m, tt.ones((2, 4))),
    lambda: other_probabilities(m, tt.ones((2, 7))),
    lambda: other_batch(m, eight_labels),
)


class Trainer:
    def __init__(self) -> None:
        self.loss = partial(losses.huber, delta=2.0)

    def step(self, x: Tensor2D[M, N], y: Tensor2D[M, L[7]]) -> object:
        return self.loss(x, y)  # E: huber: prediction of shape (M, N) and target of shape (M, 7)


# A partial of an overloaded function is called as the function.
huber = partial(losses.huber, delta=2.0)
of_each = partial(losses.mse, reduction="none")
assert_type(huber(v.trace(), v), Tensor0D[OwnedTape])
assert_type(of_each(m, m), Tensor2D[L[2], L[3]])
BAD += (
    lambda: huber(v, v7),  # E: huber: prediction of shape (3,) and target of shape (7,) differ
    lambda: of_each(m, md),  # E: mse: dtypes differ: float32 and float64
    lambda: Trainer().step(m, tt.ones((2, 7))),
    lambda: partial(losses.mae, m)(m77),  # E: mae: prediction of shape (2, 3) and target of shape
)
