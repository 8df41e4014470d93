"""Rounded forward, the identity backward."""
# ruff: noqa: D103

from __future__ import annotations

from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import OwnedTape, Tensor2D
from tapetensor.typing import M, N


def rounded(x: Tensor2D[M, N, OwnedTape]) -> Tensor2D[M, N, OwnedTape]:
    plain, tape = x.split_tape()
    offset = ((plain > 0.5).astype(np.float32) - plain).detach()
    return plain.put_tape(tape) + offset


def main() -> None:
    rng = np.random.default_rng(0)
    x: Tensor2D[L[3], L[4]] = tt.uniform((3, 4), rng=rng)
    weight: Tensor2D[L[4], L[2]] = tt.normal((4, 2), rng=rng)
    y = rounded(x.trace()) @ weight
    loss = y.square().mean()
    grads = loss.backward(wrt=(x, weight))
    assert grads[x].shape == (3, 4)
    assert grads[weight].shape == (4, 2)


if __name__ == "__main__":
    main()
