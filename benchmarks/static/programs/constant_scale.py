"""Value and tape parted, so that a scale counts as a constant."""
# ruff: noqa: D103

from __future__ import annotations

from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import OwnedTape, Tensor1D
from tapetensor.typing import N


def scaled(x: Tensor1D[N, OwnedTape]) -> Tensor1D[N, OwnedTape]:
    plain, tape = x.split_tape()
    largest = plain.abs().max().detach()
    return plain.put_tape(tape) / (largest + 1e-6)


def main() -> None:
    rng = np.random.default_rng(0)
    x: Tensor1D[L[6]] = tt.normal((6,), rng=rng)
    y = scaled(x.trace().exp())
    loss = y.square().sum()
    value = loss.item()
    grads = loss.backward()
    assert grads[x].shape == (6,)
    assert value > 0.0


if __name__ == "__main__":
    main()
