"""Causal attention of eight heads, forward and backward, by the length of the sequence.

python -m benchmarks.scale.attention --sizes 1024 2048 4096
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.scale.turns import Growth, Step, main

HEADS, FEATURES = 8, 64


def _arrays(length: int) -> list[Any]:
    rng = np.random.default_rng(0)
    shape = (1, HEADS, length, FEATURES)
    return [rng.standard_normal(shape, dtype=np.float32) for _ in range(4)]


def eager(length: int) -> Step:
    """Return a step of tapetensor."""
    import tapetensor as tt

    query, key, value, cotangent = [tt.from_numpy(one) for one in _arrays(length)]

    def step() -> object:
        attended = tt.scaled_dot_product_attention(
            query.trace(), key.trace(), value.trace(), causal=True
        )
        return attended.backward(cotangent)[query].numpy()

    return step


def compiled(length: int) -> Step:
    """Return a compiled step of tapetensor."""
    import tapetensor as tt

    query, key, value, cotangent = [tt.from_numpy(one) for one in _arrays(length)]

    @tt.compile
    def step() -> Any:
        attended = tt.scaled_dot_product_attention(
            query.trace(), key.trace(), value.trace(), causal=True
        )
        grads = attended.backward(cotangent)
        return grads[query], grads[key], grads[value]

    return step


def theirs(length: int) -> Step:
    """Return a step of PyTorch."""
    import torch

    query, key, value, cotangent = [torch.from_numpy(one) for one in _arrays(length)]
    leafs = [one.requires_grad_() for one in (query, key, value)]

    def step() -> object:
        attended = torch.nn.functional.scaled_dot_product_attention(*leafs, is_causal=True)
        return torch.autograd.grad(attended, leafs, cotangent)

    return step


if __name__ == "__main__":
    main(
        Growth(
            "Causal attention, 8 heads of 64, by length",
            {"tapetensor": eager, "compiled": compiled, "torch": theirs},
            (1024, 2048, 4096),
            64,
        )
    )
