"""Learn real handwritten digits with a small convolutional network.

The data are scikit-learn's bundled digits: 1797 scans of 8 x 8 pixels, nothing is downloaded. A
fifth of them is held out; the network reaches 98.5 % there, or more. Training images are shifted
by a pixel at random, so that the network learns what stays the same.

Run ``mypy --strict examples/cnn_digits.py`` and then ``python examples/cnn_digits.py``; the
learning curve is written to ``cnn_digits.png``.
"""

from __future__ import annotations

import argparse
import math
import time
from pathlib import Path
from typing import Literal as L

import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import load_digits
from tqdm import tqdm

import tapetensor as tt
from tapetensor import NoneTape, Tensor0D, Tensor1D, Tensor2D, Tensor4D, losses, nn, optim
from tapetensor.data import batches_exact
from tapetensor.typing import B, M, N, T

SIDE: L[8] = 8
CHANNELS: L[1] = 1
FEATURES: L[256] = 256
BATCH: L[32] = 32
HELD_OUT = 360

Images = Tensor4D[N, L[1], L[8], L[8]]
Labels = Tensor1D[N, NoneTape, np.int64]


class ConvNet(nn.Module):
    """Two convolutions, a pooling behind each, and two layers that decide.

    The convolutions keep the size of the image, as plain typing knows; what the poolings leave of
    it, and so the number of features, is said once, in `forward`.
    """

    first: nn.Conv2d[L[1], L[32], L[3], L[1], L[1]]
    first_norm: nn.BatchNorm2d[L[32]]
    second: nn.Conv2d[L[32], L[64], L[3], L[1], L[1]]
    second_norm: nn.BatchNorm2d[L[64]]
    halve: nn.MaxPool2d[L[2]]
    hidden: nn.Linear[L[256], L[64]]
    drop: nn.Dropout = nn.options(p=0.3)
    out: nn.Linear[L[64], L[10]]

    def forward(self, x: Tensor4D[B, L[1], L[8], L[8], T]) -> Tensor2D[B, L[10], T]:
        """Return the logits: with a tape in training, without one in inference."""
        batch, *_ = x.shape
        edges = self.first_norm.forward(self.first.forward(x)).relu()
        strokes = self.second_norm.forward(self.second.forward(self.halve.forward(edges))).relu()
        features = self.halve.forward(strokes).reshape((batch, FEATURES))
        return self.out.forward(self.drop.forward(self.hidden.forward(features).relu()))


def load(
    rng: np.random.Generator,
) -> tuple[Images[int], Labels[int], Images[int], Labels[int]]:
    """Return images scaled to [0, 1] and labels, for training and held out, in random order."""
    pixels, digits = load_digits(return_X_y=True)
    order = rng.permutation(len(digits))
    images = (pixels[order] / 16.0).astype(np.float32).reshape(-1, 1, SIDE, SIDE)
    labels = digits[order].astype(np.int64)
    seen = len(labels) - HELD_OUT
    return (
        tt.from_numpy(images[:seen], (seen, CHANNELS, SIDE, SIDE)),
        tt.from_numpy(labels[:seen], (seen,)),
        tt.from_numpy(images[seen:], (HELD_OUT, CHANNELS, SIDE, SIDE)),
        tt.from_numpy(labels[seen:], (HELD_OUT,)),
    )


def shifted(x: Images[B], rng: np.random.Generator) -> Images[B]:
    """Return every image moved by up to one pixel in each direction, zeros where it was."""
    padded = np.pad(x.numpy(), ((0, 0), (0, 0), (1, 1), (1, 1)))
    places = rng.integers(3, size=(len(padded), 2)).tolist()
    moved = [
        image[:, top : top + SIDE, left : left + SIDE]
        for image, (top, left) in zip(padded, places, strict=True)
    ]
    return tt.from_numpy(np.stack(moved), x.shape)


def accuracy(model: ConvNet, x: Images[M], labels: Labels[M]) -> float:
    """Return the share of images that the model names right."""
    right = model.forward(x).argmax(-1) == labels
    return right.astype(np.float32).mean().item()


def training_step(
    model: ConvNet, optimizer: optim.Optimizer, x: Images[M], labels: Labels[M]
) -> Tensor0D:
    """Update the model by one batch; return the loss before that."""
    loss = losses.cross_entropy(model.forward(x.trace()), labels)
    value = loss.detach()
    optimizer.step(loss.backward(wrt=model))
    return value


def train(
    epochs: int, seed: int, *, compiled: bool = False
) -> tuple[ConvNet, list[float], list[float]]:
    """Train a model; return it with the loss and the held-out accuracy after every epoch."""
    step = tt.compile(training_step) if compiled else training_step
    rng = np.random.default_rng(seed)
    x, labels, held_out_x, held_out_labels = load(rng)
    model = tt.build(ConvNet, rng=rng)
    print(model.summary())
    optimizer = optim.AdamW(model, lr=3e-3)
    epoch_batches = batches_exact(x, labels, size=BATCH, rng=rng)
    curve_loss: list[float] = []
    curve_accuracy: list[float] = []
    progress = tqdm(range(epochs), desc="training", unit="epoch")
    for epoch in progress:
        optimizer.lr = 1.5e-3 * (1.0 + math.cos(math.pi * epoch / epochs))
        total = 0.0
        for batch_x, batch_labels in epoch_batches:
            total += step(model, optimizer, shifted(batch_x, rng), batch_labels).item()
        curve_loss.append(total / len(epoch_batches))
        curve_accuracy.append(accuracy(model, held_out_x, held_out_labels))
        progress.set_postfix_str(f"loss {curve_loss[-1]:.4f}, held out {curve_accuracy[-1]:.2%}")
    return model, curve_loss, curve_accuracy


def draw(path: Path, curve_loss: list[float], curve_accuracy: list[float]) -> None:
    """Write the learning curve to a file."""
    figure = Figure(figsize=(8, 4), layout="constrained")
    loss_axes, accuracy_axes = figure.subplots(1, 2)
    epochs = range(1, len(curve_loss) + 1)
    loss_axes.plot(epochs, curve_loss)
    loss_axes.set(title="Training loss", xlabel="epoch", ylabel="cross entropy", yscale="log")
    accuracy_axes.plot(epochs, [100 * value for value in curve_accuracy], color="tab:green")
    accuracy_axes.set(title="Held-out accuracy", xlabel="epoch", ylabel="%")
    for axes in (loss_axes, accuracy_axes):
        axes.grid(alpha=0.3)
    figure.savefig(path, dpi=120)


def main() -> None:
    """Train, report, draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--compile", action="store_true", help="plan the training step once")
    parser.add_argument("--picture", type=Path, default=Path("cnn_digits.png"))
    arguments = parser.parse_args()
    start = time.perf_counter()
    _, curve_loss, curve_accuracy = train(
        arguments.epochs, arguments.seed, compiled=arguments.compile
    )
    draw(arguments.picture, curve_loss, curve_accuracy)
    print(
        f"held-out accuracy {curve_accuracy[-1]:.2%} on {HELD_OUT} digits "
        f"after {time.perf_counter() - start:.1f} s; learning curve in {arguments.picture}"
    )


if __name__ == "__main__":
    main()
