"""Gradients summed over micro-batches: `trace(grads)` carries them from pass to pass."""

from __future__ import annotations

from typing import Literal as L
from typing import NewType

import numpy as np

import tapetensor as tt
from tapetensor import Gradients, Tensor0D, Tensor1D, Tensor2D
from tapetensor.typing import T

Batch = NewType("Batch", int)


def loss(x: Tensor2D[Batch, L[4], T], weight: Tensor2D[L[4], L[2]]) -> Tensor0D[T]:
    return (x @ weight).tanh().square().sum()


def accumulated(batches: list[Tensor2D[Batch, L[4]]], weight: Tensor2D[L[4], L[2]]) -> Gradients:
    grads = Gradients()
    for batch in batches:
        grads = loss(batch.trace(grads), weight).backward(wrt=weight)
    return grads


def merged(batches: list[Tensor2D[Batch, L[4]]], weight: Tensor2D[L[4], L[2]]) -> Gradients:
    total = Gradients()
    for batch in batches:
        total.merge(loss(batch.trace(), weight).backward(wrt=weight))
    return total


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    weight: Tensor2D[L[4], L[2]] = tt.normal((4, 2), rng=rng)
    whole: Tensor2D[Batch, L[4]] = tt.normal((Batch(6), 4), rng=rng)
    parts: list[Tensor2D[Batch, L[4]]] = [whole[0:2], whole[2:4], whole[4:6]]

    expected = loss(whole.trace(), weight).backward()[weight]
    for gradients in (accumulated(parts, weight), merged(parts, weight)):
        np.testing.assert_allclose(gradients[weight].numpy(), expected.numpy(), rtol=1e-5)
        assert gradients.clip_by_global_norm(0.1) > 0.1
        assert abs(gradients.global_norm() - 0.1) < 1e-6

    row: Tensor1D[L[2]] = expected[0]
    assert row.shape == (2,)
