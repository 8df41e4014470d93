"""Sums of the rows of 10^5 targets, forward and backward, by the number of rows of 16.

python -m benchmarks.scale.segments --sizes 100000 1000000
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.scale.turns import Growth, Step, main

WIDTH, TARGETS = 16, 100_000


def _data(count: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((count, WIDTH), dtype=np.float32)
    return rows, rng.integers(TARGETS, size=count)


def eager(count: int) -> Step:
    """Return a step of tapetensor."""
    import tapetensor as tt

    rows, targets = [tt.from_numpy(one) for one in _data(count)]

    def step() -> object:
        summed = tt.segment_sum(rows.trace(), targets, TARGETS)
        return summed.square().sum().backward()[rows].numpy()

    return step


def jax(count: int) -> Step:
    """Return a step of JAX."""
    import jax
    import jax.numpy as jnp

    rows, targets = [jnp.asarray(one) for one in _data(count)]

    def loss(rows: Any) -> Any:
        return jnp.square(jax.ops.segment_sum(rows, targets, TARGETS)).sum()

    step = jax.jit(jax.grad(loss))
    return lambda: step(rows).block_until_ready()


def theirs(count: int) -> Step:
    """Return a step of PyTorch."""
    import torch

    values, targets = [torch.from_numpy(one) for one in _data(count)]
    rows = values.requires_grad_()

    def step() -> object:
        summed = torch.zeros(TARGETS, WIDTH).index_add(0, targets, rows)
        return torch.autograd.grad(summed.square().sum(), rows)

    return step


if __name__ == "__main__":
    main(
        Growth(
            "Sums of segments, by rows",
            {"tapetensor": eager, "jax": jax, "torch": theirs},
            (100_000, 1_000_000),
            1000,
        )
    )
