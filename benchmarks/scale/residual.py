"""Residual blocks one after the other, forward and backward, by their number.

python -m benchmarks.scale.residual --sizes 2000 4000 8000
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.scale.turns import Growth, Step, main

WIDTH = 64


def eager(blocks: int) -> Step:
    """Return a step of tapetensor."""
    import tapetensor as tt

    x: Any = tt.from_numpy(np.full(WIDTH, 1e-30, np.float32))

    def step() -> object:
        y = x.trace()
        for _ in range(blocks):
            y = (y.with_empty_tape() * 0.5 + y) * 0.6
        return y.sum().backward()[x].numpy()

    return step


def theirs(blocks: int) -> Step:
    """Return a step of PyTorch."""
    import torch

    x = torch.full((WIDTH,), 1e-30, requires_grad=True)

    def step() -> object:
        y = x * 1
        for _ in range(blocks):
            y = (y * 0.5 + y) * 0.6
        return torch.autograd.grad(y.sum(), x)

    return step


if __name__ == "__main__":
    main(
        Growth(
            "Residual blocks, by their number",
            {"tapetensor": eager, "torch": theirs},
            (2000, 4000, 8000),
            8,
        )
    )
