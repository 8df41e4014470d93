"""A table of ratings as the product of two thin matrices."""
# ruff: noqa: D103

from __future__ import annotations

from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import Tensor2D


def main() -> None:
    rng = np.random.default_rng(0)
    ratings: Tensor2D[L[6], L[5]] = tt.uniform((6, 5), rng=rng)
    known = ratings > 0.3
    users: Tensor2D[L[6], L[2]] = tt.normal((6, 2), rng=rng, std=0.1)
    items: Tensor2D[L[5], L[2]] = tt.normal((5, 2), rng=rng, std=0.1)
    for _ in range(4):
        prediction = users.trace() @ items.trace().transpose()
        errors = tt.where(known, prediction - ratings, 0.0)
        loss = errors.square().sum()
        grads = loss.backward(wrt=(users, items))
        users = users - grads[users] * 0.1
        items = items - grads[items] * 0.1
    best = (users @ items.transpose()).max(axis=1)
    assert best.shape == (6,)


if __name__ == "__main__":
    main()
