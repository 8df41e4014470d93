"""What a classifier looks at: the gradient of a logit by the picture, drawn over digits.

The model trains with batch norm and dropout. For the gradient by its input the same parameters are
asked through `nn.inference`: nothing is dropped then, and no running statistic moves.

Run ``mypy --strict examples/saliency.py`` and then ``python examples/saliency.py``.
"""

from __future__ import annotations

import argparse
from typing import Literal as L

import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import load_digits

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
from tapetensor.data import batches
from tapetensor.typing import B, T

PIXELS: L[64] = 64
SHOWN = 8
REMOVED = 8


class Classifier(nn.Module):
    """A perceptron for pictures of 8 x 8 pixels."""

    hidden: nn.Linear[L[64], L[64]]
    norm: nn.BatchNorm1d[L[64]]
    drop: nn.Dropout
    out: nn.Linear[L[64], L[10]]

    def forward(self, x: Tensor2D[B, L[64], T]) -> Tensor2D[B, L[10], T]:
        """Return the logits of the ten digits."""
        return self.out.forward(self.drop.forward(self.norm.forward(self.hidden.forward(x)).relu()))


def saliency(model: Classifier, pictures: Tensor2D[B, L[64]]) -> Tensor2D[B, L[64]]:
    """Return ``|d logit / d pixel|`` of the digit that a model sees: how much a pixel counts."""
    frozen = nn.inference(model)
    logits = frozen.forward(pictures.trace())
    return logits.max(axis=-1).sum().backward(wrt=[pictures])[pictures].abs()


def digits() -> tuple[Tensor2D[int, L[64]], Tensor1D[int, NoneTape, np.int64]]:
    """Return pictures of handwritten digits, from 0 to 1, and what they are."""
    pixels, answers = load_digits(return_X_y=True)
    count = len(answers)
    pictures = tt.from_numpy(pixels / 16, (count, PIXELS), np.float32)
    return pictures, tt.from_numpy(answers, (count,), np.int64)


def loss_of(
    model: Classifier, batch: tuple[Tensor2D[B, L[64]], Tensor1D[B, NoneTape, np.int64]]
) -> Tensor0D[OwnedTape]:
    """Return the loss of a batch, with a tape."""
    pictures, answers = batch
    return losses.cross_entropy(model.forward(pictures.trace()), answers)


def draw(pictures: np.ndarray, slopes: np.ndarray, path: str) -> None:
    """Draw some digits, and below them how much their pixels count."""
    figure = Figure(figsize=(SHOWN, 2), layout="constrained")
    axes = figure.subplots(2, SHOWN)
    for column in range(SHOWN):
        axes[0, column].imshow(pictures[column].reshape(8, 8), cmap="gray_r")
        axes[1, column].imshow(slopes[column].reshape(8, 8), cmap="magma")
    for one in axes.ravel():
        one.set_axis_off()
    figure.savefig(path)


def main() -> None:
    """Train, find out which pixels count, and draw them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--picture", help="where to write the picture, as saliency.png")
    arguments = parser.parse_args()
    x, y = digits()
    model = tt.build(Classifier, rng=np.random.default_rng(0))
    training.fit(
        model,
        optim.AdamW(model, lr=3e-3),
        loss_of,
        batches(x, y, size=32, rng=np.random.default_rng(1)),
        epochs=15,
    )
    right = (model.forward(x).argmax(-1) == y).numpy()
    slopes = saliency(model, x).numpy()
    # Without the pixels that count most, or as many others.
    least = np.argsort(slopes, axis=1)
    print(f"right {right.mean():.1%}", end="")
    for name, removed in (("least", least[:, :REMOVED]), ("most", least[:, -REMOVED:])):
        pixels = x.numpy().copy()
        np.put_along_axis(pixels, removed, 0.5, axis=1)
        guessed = model.forward(tt.from_numpy(pixels, x.shape)).argmax(-1)
        print(
            f"; without the {REMOVED} pixels that count {name} {(guessed == y).numpy().mean():.1%}",
            end="",
        )
    print()
    if arguments.picture:
        draw(x.numpy(), slopes, arguments.picture)


if __name__ == "__main__":
    main()
