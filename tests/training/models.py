"""A model with everything that has a state, its data, and its training."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import Any, TypeAlias
from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import NoneTape, OwnedTape, Tensor0D, Tensor1D, Tensor2D, io, losses, nn, optim
from tapetensor.data import Batches, batches
from tapetensor.optim import schedules
from tapetensor.training import History, Metric, fit
from tapetensor.typing import B, T

Labels: TypeAlias = Tensor1D[B, NoneTape, np.int64]
BatchOf: TypeAlias = tuple[Tensor2D[B, L[6]], Labels[B]]
Batch: TypeAlias = BatchOf[Any]
SCHEDULE = schedules.warm_up(schedules.cosine(lr=0.01, steps=20), steps=4)


class Net(nn.Module):
    """Parameters, running statistics, a generator."""

    hidden: nn.Linear[L[6], L[16]]
    norm: nn.BatchNorm1d[L[16]]
    drop: nn.Dropout = nn.options(p=0.25)
    out: nn.Linear[L[16], L[3]]

    def forward(self, x: Tensor2D[B, L[6], T]) -> Tensor2D[B, L[3], T]:
        return self.out.forward(self.drop.forward(self.norm.forward(self.hidden.forward(x)).relu()))


def loss_of(model: Net, batch: Batch) -> Tensor0D[OwnedTape]:
    x, labels = batch
    return losses.cross_entropy(model.forward(x.trace()), labels)


def held_out_loss(model: Net, batch: Batch) -> Tensor0D:
    x, labels = batch
    return losses.cross_entropy(model.forward(x), labels)


def accuracy(model: Net, batch: Batch) -> float:
    x, labels = batch
    return (model.forward(x).argmax(-1) == labels).astype(np.float32).mean().item()


METRICS: dict[str, Metric[Net, Batch]] = {"held-out loss": held_out_loss, "accuracy": accuracy}


def data(rows: int, rng: np.random.Generator) -> Batch:
    """Return points, and which of their first three numbers is the largest."""
    x: Tensor2D[int, L[6]] = tt.normal((rows, 6), rng=rng)
    return x, tt.from_numpy(x.numpy()[:, :3].argmax(axis=1), (rows,))


class Run:
    """A model in training, with all that it draws from."""

    def __init__(self, seed: int = 0, rows: int = 44) -> None:
        # The data are the same for every seed.
        drawing = np.random.default_rng(100)
        self.held_out = batches(*data(30, drawing), size=16)
        # The model's dropout, and the order of the rows, each with a generator of its own.
        self.rng = np.random.default_rng(seed)
        self.model = tt.build(Net, rng=self.rng)
        self.optimizer: optim.Optimizer = optim.AdamW(self.model)
        self.batches: Batches[Batch] = batches(
            *data(rows, drawing), size=8, rng=np.random.default_rng(seed + 1000)
        )

    def fit(self, epochs: int = 3, **options: Any) -> History:
        return fit(
            options.pop("model", self.model),
            options.pop("optimizer", self.optimizer),
            options.pop("loss_of", loss_of),
            options.pop("batches", self.batches),
            epochs=epochs,
            **options,
        )

    def state(self) -> dict[str, Any]:
        parts = {"model": self.model, "optimizer": self.optimizer, "rng": self.rng}
        return {
            f"{name}.{inner}": array
            for name, part in parts.items()
            for inner, array in io.state_dict(part).items()  # type: ignore[arg-type]  # a Part each
        }


def pressing_ctrl_c(at: int, number: int = signal.SIGINT) -> Callable[[int], float]:
    """Return a schedule during whose step of that number somebody presses Ctrl-C."""

    def schedule(step: int) -> float:
        if step == at:
            os.kill(os.getpid(), number)
        return SCHEDULE(step)

    return schedule


def numbers(history: History) -> list[dict[str, float]]:
    """Return the rows without their times, which are never the same."""
    return [{name: row[name] for name in row if name != "seconds"} for row in history.rows]
