"""An LSTM of two layers of 256, forward and backward, by the length of the sequence.

python -m benchmarks.scale.recurrent --sizes 32 64 128
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.scale.turns import Growth, Step, main

BATCH, WIDTH, LAYERS = 32, 256, 2


def _sequence(length: int) -> Any:
    return np.random.default_rng(0).standard_normal((BATCH, length, WIDTH), dtype=np.float32)


def _step(length: int) -> Callable[[], Any]:
    import tapetensor as tt
    from tapetensor import nn

    layer: Any = nn.StackedLSTM(WIDTH, WIDTH, LAYERS, rng=np.random.default_rng(1))
    x: Any = tt.from_numpy(_sequence(length))

    def step() -> Any:
        outputs: Any = layer.forward(x.trace())
        y = outputs[0] if isinstance(outputs, tuple) else outputs
        loss = y.square().mean()
        grads = loss.backward(wrt=layer)
        return [grads[one] for one in layer.parameters().values()]

    return step


def eager(length: int) -> Step:
    """Return a step of tapetensor."""
    return _step(length)


def compiled(length: int) -> Step:
    """Return a compiled step of tapetensor."""
    import tapetensor as tt

    return tt.compile(_step(length))


def theirs(length: int) -> Step:
    """Return a step of PyTorch."""
    import torch

    layer = torch.nn.LSTM(WIDTH, WIDTH, LAYERS, batch_first=True)
    x = torch.from_numpy(_sequence(length)).requires_grad_()
    leafs = list(layer.parameters())
    return lambda: torch.autograd.grad(layer(x)[0].square().mean(), leafs)


if __name__ == "__main__":
    main(
        Growth(
            "LSTM, 2 layers of 256, by length",
            {"tapetensor": eager, "compiled": compiled, "torch": theirs},
            (32, 64, 128),
            4,
        )
    )
