"""What the snippets in the pages of the plugin take for granted."""

from __future__ import annotations

from typing import Generic, NewType
from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import Tensor1D, Tensor2D, Tensor3D, Tensor4D, nn, optim
from tapetensor.typing import Add, B, Div, K, M, Mul, N, T

__all__ = [
    "Add", "B", "Batch", "Block", "Div", "K", "L", "M", "Mlp", "Mul", "N", "Parts", "T",
    "Tensor1D", "Tensor2D", "Tensor3D", "Tensor4D",
    "first", "images", "model", "nn", "np", "optim", "parts", "rng", "tt", "x",
]  # fmt: skip

Batch = NewType("Batch", int)


class Mlp(nn.Module):
    """A model."""

    out: nn.Linear[L[784], L[10]]

    def forward(self, x: Tensor2D[B, L[784], T]) -> Tensor2D[B, L[10], T]:
        """Return the logits."""
        return self.out.forward(x)


class Block(nn.Module, Generic[N]):
    """A part of a model."""

    linear: nn.Linear[N, N]

    def forward(self, x: Tensor2D[B, N, T]) -> Tensor2D[B, N, T]:
        """Return as many features as went in."""
        return self.linear.forward(x)


class Parts(nn.Module):
    """A module that is not called itself."""

    out: nn.Linear[L[784], L[10]]


rng = np.random.default_rng(0)
model = tt.build(Mlp, rng=rng)
parts = tt.build(Parts, rng=rng)
images: Tensor2D[Batch, L[784]] = tt.zeros((Batch(32), 784))
x = images
first: nn.Linear[L[784], L[512]] = nn.Linear(784, 512, rng=rng)
