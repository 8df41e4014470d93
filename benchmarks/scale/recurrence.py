"""A recurrence written by hand over slices of plain data, forward and backward, by its steps.

python -m benchmarks.scale.recurrence --sizes 512 1024 2048
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.scale.turns import Growth, Step, main

BATCH, WIDTH = 8, 32


def _sequence(steps: int) -> Any:
    return np.random.default_rng(0).standard_normal((BATCH, steps, WIDTH), dtype=np.float32)


def eager(steps: int) -> Step:
    """Return a step of tapetensor."""
    import tapetensor as tt
    from tapetensor import nn

    rng = np.random.default_rng(1)
    layers: list[Any] = [nn.Linear(WIDTH, WIDTH, rng=rng) for _ in range(2)]
    rin, rec = layers
    leafs = [one for layer in layers for one in layer.parameters().values()]
    x: Any = tt.from_numpy(_sequence(steps))
    start: Any = tt.zeros((BATCH, WIDTH))

    def step() -> object:
        h: Any = start
        for t in range(steps):
            h = (rin.forward(x[:, t].trace()) + rec.forward(h)).tanh()
        return h.square().mean().backward(wrt=leafs)[rec.weight].numpy()

    return step


def theirs(steps: int) -> Step:
    """Return a step of PyTorch."""
    import torch

    rin, rec = torch.nn.Linear(WIDTH, WIDTH), torch.nn.Linear(WIDTH, WIDTH)
    leafs = [*rin.parameters(), *rec.parameters()]
    x = torch.from_numpy(_sequence(steps))
    start = torch.zeros(BATCH, WIDTH)

    def step() -> object:
        h = start
        for t in range(steps):
            h = torch.tanh(rin(x[:, t]) + rec(h))
        return torch.autograd.grad(h.square().mean(), leafs)

    return step


if __name__ == "__main__":
    main(
        Growth(
            "A recurrence by hand, by steps",
            {"tapetensor": eager, "torch": theirs},
            (512, 1024, 2048),
            8,
        )
    )
