"""Fine-tune a loaded model: a body that knows digits learns another question from a few answers.

A classifier learns the ten digits and is written to a file. A model with the same body and a new
head loads the body from there, and learns whether a digit is odd from fifty pictures: first the
head alone, then all of it at a small rate. One that begins from nothing has the same pictures.

Run ``mypy --strict examples/fine_tuning.py`` and then ``python examples/fine_tuning.py``.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Generic
from typing import Literal as L

import numpy as np
from sklearn.datasets import load_digits

import tapetensor as tt
from tapetensor import NoneTape, OwnedTape, Tensor0D, Tensor1D, Tensor2D, io, losses, nn, optim
from tapetensor.data import batches
from tapetensor.typing import B, K, T

Pictures = tuple[Tensor2D[int, L[64]], Tensor1D[int, NoneTape, np.int64]]
SHOWN = 50


class Body(nn.Module):
    """What is seen in pictures of 8 x 8 pixels, whatever they are."""

    first: nn.Linear[L[64], L[96]]
    norm: nn.LayerNorm[L[96]]
    second: nn.Linear[L[96], L[32]]

    def forward(self, x: Tensor2D[B, L[64], T]) -> Tensor2D[B, L[32], T]:
        """Return 32 numbers for each picture."""
        return self.second.forward(self.norm.forward(self.first.forward(x)).relu()).relu()


class Classifier(nn.Module, Generic[K]):
    """The body, and a head for so many classes."""

    body: Body
    head: nn.Linear[L[32], K]

    def forward(self, x: Tensor2D[B, L[64], T]) -> Tensor2D[B, K, T]:
        """Return a logit for each class."""
        return self.head.forward(self.body.forward(x))


def pictures(pixels: np.ndarray, answers: np.ndarray) -> Pictures:
    """Return pictures, from 0 to 1, and the answers."""
    size = len(answers)
    x: Tensor2D[int, L[64]] = tt.from_numpy(pixels / 16, (size, 64), np.float32)
    return x, tt.from_numpy(answers, (size,), np.int64)


def train(model: Classifier[K], part: nn.Module, data: Pictures, steps: int, lr: float) -> None:
    """Train a part of a model, the rest of which stays as it is."""
    optimizer, rng = optim.Adam(part, lr=lr), np.random.default_rng(1)
    while optimizer.steps < steps:
        for x, labels in batches(*data, size=20, rng=rng):
            loss: Tensor0D[OwnedTape] = losses.cross_entropy(model.forward(x.trace()), labels)
            optimizer.step(loss.backward(wrt=part))


def accuracy(model: Classifier[K], data: Pictures) -> float:
    """Return the percentage of right answers."""
    x, labels = data
    return (model.forward(x).argmax(axis=-1) == labels).astype(np.float32).mean().item() * 100


def main() -> None:
    """Train, write, load, fine-tune, and compare."""
    rng = np.random.default_rng(0)
    pixels, digits = load_digits(return_X_y=True)
    order = rng.permutation(len(digits))
    known, shown, held_out = np.split(order, [1000, 1000 + SHOWN])
    old = tt.build(Classifier[L[10]], rng=rng)
    train(old, old, pictures(pixels[known], digits[known]), steps=800, lr=3e-3)

    few = pictures(pixels[shown], digits[shown] % 2)
    others = pictures(pixels[held_out], digits[held_out] % 2)
    model = tt.build(Classifier[L[2]], rng=rng)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "digits.npz"
        io.save(file, old)
        print(io.load(file, model, names={"head.weight": None, "head.bias": None}, strict=False))
    train(model, model.head, few, steps=100, lr=1e-2)
    print(f"a new head: {accuracy(model, others):.1f}% of the other pictures right")
    train(model, model, few, steps=50, lr=3e-4)
    print(f"fine-tuned: {accuracy(model, others):.1f}% right")

    fresh = tt.build(Classifier[L[2]], rng=rng)
    train(fresh, fresh, few, steps=150, lr=3e-3)
    print(f"from nothing: {accuracy(fresh, others):.1f}% right")


if __name__ == "__main__":
    main()
