"""The training runs that one process and many ranks must do alike.

mpiexec -n 2 python -m tests.distributed.training FOLDER STEPS
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

import tapetensor as tt
from tapetensor import (
    Gradients,
    NoneTape,
    Tensor0D,
    Tensor1D,
    Tensor2D,
    data,
    distributed,
    io,
    losses,
    nn,
    optim,
)

BATCH = 8

Inputs: TypeAlias = Tensor2D[Any, Any, NoneTape, np.float64]
Labels: TypeAlias = Tensor1D[Any, NoneTape, np.int64]
Model: TypeAlias = nn.Sequential[Any]
# What training makes of a model, on these ranks and in so many steps, a multiple of 10.
Run: TypeAlias = Callable[[nn.Module, distributed.Communicator, int], None]


def build_model(seed: int = 0) -> Any:
    """Return a small classifier in float64."""
    rng = np.random.default_rng(seed)
    return nn.Sequential(
        nn.Linear(6, 16, rng=rng, dtype=np.float64),
        nn.Tanh(),
        nn.LayerNorm(16, dtype=np.float64),
        nn.Linear(16, 3, rng=rng, dtype=np.float64),
    )


def batches(steps: int) -> Iterator[tuple[Inputs, Labels]]:
    """Yield the batches of all steps, the same on every rank."""
    rng = np.random.default_rng(1)
    x = tt.normal((10 * BATCH, 6), np.float64, rng=rng)
    labels = tt.from_numpy(rng.integers(3, size=10 * BATCH), (10 * BATCH,))
    for _ in range(steps // 10):
        yield from data.batches_exact(x, labels, size=BATCH, rng=rng)


def loss_of(model: Any, x: Inputs, labels: Labels) -> Any:
    """Return the traced loss."""
    return losses.cross_entropy(model.forward(x.trace()), labels)


def loss_and_gradients(
    model: nn.Module, x: Inputs, labels: Labels
) -> tuple[Tensor0D[NoneTape, np.float64], Gradients]:
    """Return the loss and its gradients."""
    loss = loss_of(model, x, labels)
    return loss.detach(), loss.backward(wrt=model)


def train_while_sending(model: nn.Module, ranks: distributed.Communicator, steps: int) -> None:
    """Send buckets of a few hundred bytes while backward goes on."""
    reducer = distributed.Reducer(model, ranks, bucket_bytes=256)
    optimizer = optim.AdamW(model, lr=1e-2)
    for x, labels in batches(steps):
        optimizer.step(reducer.backward(loss_of(model, *ranks.shard(x, labels))))


def train_with_sums(model: nn.Module, ranks: distributed.Communicator, steps: int) -> None:
    """Add up the gradients of losses that are divided by the size of the whole batch."""
    reducer = distributed.Reducer(model, ranks, op="sum")
    optimizer = optim.Sgd(model, lr=0.1, momentum=0.9)
    for x, labels in batches(steps):
        loss = loss_of(model, *ranks.shard(x, labels)) / float(ranks.size)
        optimizer.step(reducer.backward(loss))


def train_compiled(model: nn.Module, ranks: distributed.Communicator, steps: int) -> None:
    """Let a compiled function return gradients, and reduce and clip them outside."""
    reducer = distributed.Reducer(model, ranks)
    optimizer = optim.AdamW(model, lr=1e-2)
    compiled = tt.compile(loss_and_gradients)
    for x, labels in batches(steps):
        _, grads = compiled(model, *ranks.shard(x, labels))
        grads = reducer.all_reduce(grads)
        grads.clip_by_global_norm(1.0)
        optimizer.step(grads)


def train_decorated(model: nn.Module, ranks: distributed.Communicator, steps: int) -> None:
    """Write the step of one process, with the decorator before it."""
    step = distributed.data_parallel(loss_and_gradients) if ranks.size > 1 else loss_and_gradients
    optimizer = optim.AdamW(model, lr=1e-2)
    value = np.inf
    for x, labels in batches(steps):
        loss, grads = step(model, x, labels)
        value = loss.item()
        optimizer.step(grads)
    # The loss is that of the whole batch: a rank that had its own only would differ.
    model.last_loss = value


RUNS: dict[str, Run] = {
    "while sending": train_while_sending,
    "with sums": train_with_sums,
    "compiled": train_compiled,
    "decorated": train_decorated,
}


def trained(name: str, ranks: distributed.Communicator, steps: int) -> dict[str, Any]:
    """Return the parameters that a run ends with, and its last loss if it says so."""
    # Only rank 0 begins with the right values.
    model = build_model(seed=ranks.rank)
    RUNS[name](model, ranks, steps)
    state: dict[str, Any] = io.state_dict(model)
    return state | {"last_loss": np.array(getattr(model, "last_loss", 0.0))}


def main() -> None:
    """Run everything, and write what each rank ends with."""
    ranks = distributed.world()
    folder, steps = Path(sys.argv[1]), int(sys.argv[2])
    for name in RUNS:
        np.savez(folder / f"{name} {ranks.rank}.npz", **trained(name, ranks, steps))


if __name__ == "__main__":
    main()
