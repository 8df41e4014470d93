"""The mean of the values that a mask keeps."""
# ruff: noqa: D103

from __future__ import annotations

from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import NoneTape, Tensor1D, Tensor2D
from tapetensor.typing import B, N, T


def masked_mean(x: Tensor2D[B, N, T], keep: Tensor2D[B, N, NoneTape, np.bool_]) -> Tensor1D[B, T]:
    total = tt.where(keep, x, 0.0).sum(axis=1)
    counts = keep.astype(np.float32).sum(axis=1)
    return total / (counts + 1e-6)


def main() -> None:
    rng = np.random.default_rng(0)
    x: Tensor2D[L[4], L[6]] = tt.normal((4, 6), rng=rng)
    keep = x > 0.0
    means = masked_mean(x.trace(), keep)
    loss = means.square().sum()
    grads = loss.backward()
    assert grads[x].shape == (4, 6)
    assert masked_mean(x, keep).min().item() >= 0.0


if __name__ == "__main__":
    main()
