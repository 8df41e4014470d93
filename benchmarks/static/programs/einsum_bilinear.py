"""A bilinear form, and a batch of products, by einsum."""
# ruff: noqa: D103

from __future__ import annotations

from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import Tensor2D, Tensor3D
from tapetensor.typing import B, K, M, N, T


def bilinear(
    x: Tensor2D[B, M, T], weight: Tensor3D[M, K, N], y: Tensor2D[B, K]
) -> Tensor2D[B, N, T]:
    inner: Tensor3D[B, K, N, T] = tt.einsum("bm,mkn->bkn", x, weight)
    result: Tensor2D[B, N, T] = tt.einsum("bkn,bk->bn", inner, y)
    return result


def main() -> None:
    rng = np.random.default_rng(0)
    x: Tensor2D[L[3], L[4]] = tt.normal((3, 4), rng=rng)
    y: Tensor2D[L[3], L[5]] = tt.normal((3, 5), rng=rng)
    weight: Tensor3D[L[4], L[5], L[2]] = tt.normal((4, 5, 2), rng=rng)
    form = bilinear(x.trace(), weight, y)
    loss = form.square().mean()
    grads = loss.backward(wrt=(x, weight))
    assert grads[weight].shape == (4, 5, 2)
    outer: Tensor3D[L[3], L[4], L[5]] = tt.einsum("bi,bj->bij", x, y)
    assert outer.sum(axis=0).shape == (4, 5)


if __name__ == "__main__":
    main()
