"""Losses of many steps added to a total, forward and backward, by the number of steps.

python -m benchmarks.scale.total --sizes 5000 10000 20000
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.scale.turns import Growth, Step, main

WIDTH = 16


def _rows(steps: int) -> Any:
    return np.random.default_rng(0).standard_normal((steps, WIDTH), dtype=np.float32)


def eager(steps: int) -> Step:
    """Return a step of tapetensor."""
    import tapetensor as tt

    rows: list[Any] = [tt.from_numpy(row) for row in _rows(steps)]
    weight: Any = tt.from_numpy(np.ones(WIDTH, np.float32))

    def step() -> object:
        w = weight.trace()
        total: Any = tt.zeros(())
        for row in rows:
            loss_t = (w * row).sum()
            total = total + loss_t
        return total.backward()[weight].numpy()

    return step


def theirs(steps: int) -> Step:
    """Return a step of PyTorch."""
    import torch

    rows = [torch.from_numpy(row) for row in _rows(steps)]
    weight = torch.ones(WIDTH, requires_grad=True)

    def step() -> object:
        total = torch.zeros(())
        for row in rows:
            loss_t = (weight * row).sum()
            total = total + loss_t
        return torch.autograd.grad(total, weight)

    return step


if __name__ == "__main__":
    main(
        Growth(
            "A total of the losses of steps, by steps",
            {"tapetensor": eager, "torch": theirs},
            (5000, 10000, 20000),
            8,
        )
    )
