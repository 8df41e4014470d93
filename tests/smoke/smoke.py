"""Runs, and is checked, against the installed wheel outside the repository: a model learns."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import (
    NoneTape,
    OwnedTape,
    Tensor0D,
    Tensor1D,
    Tensor2D,
    losses,
    nn,
    optim,
    training,
)
from tapetensor.typing import B, T


class Mlp(nn.Module):
    """Two layers."""

    hidden: nn.Linear[L[4], L[16]]
    out: nn.Linear[L[16], L[3]]

    def forward(self, x: Tensor2D[B, L[4], T]) -> Tensor2D[B, L[3], T]:
        """Return the logits."""
        return self.out.forward(self.hidden.forward(x).relu())


def loss_of(
    model: Mlp, batch: tuple[Tensor2D[L[64], L[4]], Tensor1D[L[64], NoneTape, np.int64]]
) -> Tensor0D[OwnedTape]:
    """Return the traced loss."""
    x, labels = batch
    return losses.cross_entropy(model.forward(x.trace()), labels)


def main() -> None:
    """Train for a moment and check that the loss falls."""
    assert tt.__file__ is not None
    assert (Path(tt.__file__).parent / "py.typed").exists()
    rng = np.random.default_rng(0)
    model = tt.build(Mlp, rng=rng)
    optimizer = optim.Adam(model, lr=1e-2)
    x: Tensor2D[L[64], L[4]] = tt.normal((64, 4), rng=rng)
    labels: Tensor1D[L[64], NoneTape, np.int64] = x[:, :3].argmax(-1).reshape((64,))
    first = losses.cross_entropy(model.forward(x), labels).item()
    for _ in range(100):
        loss = losses.cross_entropy(model.forward(x.trace()), labels)
        optimizer.step(loss.backward(wrt=model))
    last = losses.cross_entropy(model.forward(x), labels).item()
    assert last < first / 2, (first, last)
    history = training.fit(model, optimizer, loss_of, [(x, labels)], epochs=2)
    assert history["loss"][1] < history["loss"][0] < first
    extras = {"matplotlib", "mypy", "safetensors", "tensorboardX", "torch", "tqdm"}
    assert extras.isdisjoint(sys.modules), extras & set(sys.modules)
    print(f"smoke test: loss {first:.3f} -> {last:.3f} with tapetensor from {tt.__file__}")


if __name__ == "__main__":
    main()
