"""What checkpoints save and cost: a deep MLP, its peak of memory and its time for one backward."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Literal as L

import numpy as np

import tapetensor as tt
from benchmarks.timing import interleaved_medians
from tapetensor import OwnedTape, Tensor2D, nn
from tapetensor.typing import B, T

LAYERS = 32
PER_PART = 4


class Part(nn.Module):
    """A few layers of one width."""

    layers: list[nn.Linear[L[256], L[256]]]

    def forward(self, x: Tensor2D[B, L[256], T]) -> Tensor2D[B, L[256], T]:
        """Run them."""
        for layer in self.layers:
            x = layer.forward(x).tanh()
        return x


class Deep(nn.Module):
    """Many layers, part by part."""

    parts: list[Part]

    def forward(self, x: Tensor2D[B, L[256], T]) -> Tensor2D[B, L[256], T]:
        """Run all parts."""
        for part in self.parts:
            x = part.forward(x)
        return x

    def forward_in_parts(self, x: Tensor2D[B, L[256], T]) -> Tensor2D[B, L[256], T]:
        """Run all parts, and keep of each the input only."""
        for part in self.parts:
            x = tt.checkpoint(part.forward, x)
        return x


Input = Tensor2D[L[256], L[256]]
Traced = Tensor2D[L[256], L[256], OwnedTape]
Forward = Callable[[Traced], Traced]


def built() -> tuple[Deep, Input]:
    """Return the model and an input."""
    rng = np.random.default_rng(0)
    parts = [
        Part(layers=[nn.Linear(256, 256, rng=rng) for _ in range(PER_PART)])
        for _ in range(LAYERS // PER_PART)
    ]
    return Deep(parts=parts), tt.normal((256, 256), rng=rng)


def peak(forward: Forward, x: Input) -> int:
    """Return the most bytes that forward and backward hold at a time, beside the model."""
    tracemalloc.start()
    try:
        # By the input alone: gradients of the weights, the same either way, would be held as well.
        forward(x.trace()).sum().backward(wrt=x)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def main() -> None:
    """Print both peaks and both times."""
    model, x = built()
    forwards: dict[str, Forward] = {"without": model.forward, "with": model.forward_in_parts}
    peaks = {name: peak(forward, x) for name, forward in forwards.items()}
    times = interleaved_medians(
        {
            name: lambda forward=forward: forward(x.trace()).sum().backward()  # type: ignore[misc]  # bound early
            for name, forward in forwards.items()
        },
        rounds=7,
    )
    print(f"{LAYERS} layers of (256, 256), batch 256, checkpoints of {PER_PART} layers")
    for name in forwards:
        print(f"  {name:<8} peak {peaks[name] / 2**20:6.2f} MiB  {times[name] * 1e3:7.1f} ms")
    memory, time = peaks["with"] / peaks["without"], times["with"] / times["without"]
    print(f"  ratio    peak {memory:6.2f}      {time:7.2f}")


if __name__ == "__main__":
    main()
