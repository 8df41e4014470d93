"""Ranks that fail in the way that the first argument names, the last of them first.

mpiexec -n 2 python -m tests.distributed.failing raises
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import tapetensor as tt
from tapetensor import distributed, losses, nn, optim
from tapetensor.distributed import transport


def linear(**changes: Any) -> Any:
    """Return the same small layer on every rank, but for changes."""
    arguments: dict[str, Any] = {
        "in_features": 4,
        "out_features": 2,
        "rng": np.random.default_rng(0),
    }
    return nn.Linear(**(arguments | changes))


def train(ranks: distributed.Communicator, fail: Callable[[], object]) -> None:
    """Train, and let the last rank fail on the way."""
    model = linear()
    reducer = distributed.Reducer(model, ranks)
    optimizer = optim.Sgd(model, lr=0.1)
    for step in range(10):
        if step == 3 and ranks.rank == ranks.size - 1:
            fail()
        x: Any = tt.ones((4, 4))
        loss = losses.mse(model.forward(ranks.shard(x).trace()), tt.zeros((4 // ranks.size, 2)))
        optimizer.step(reducer.backward(loss))
    print("trained to the end")


def raise_an_error() -> None:
    """Fail as a bug does."""
    raise ZeroDivisionError("the bug")


def hang() -> None:
    """Fail as an endless loop does."""
    time.sleep(600)


def differ(ranks: distributed.Communicator, **changes: Any) -> None:
    """Build another model on the last rank."""
    is_last = ranks.rank == ranks.size - 1
    distributed.Reducer(linear(**(changes if is_last else {})), ranks)


def sequence(ranks: distributed.Communicator) -> None:
    """Give the last rank's model other names, and one that is shared."""
    layer = linear(out_features=4)
    model: Any = nn.Sequential(layer, layer if ranks.rank else linear(out_features=4))
    ranks.broadcast(model)


def save(ranks: distributed.Communicator) -> None:
    """Save to where nothing can be; every rank says what it learns."""
    try:
        ranks.save_checkpoint("/nowhere/run.npz", model=linear())
    except (OSError, tt.DistributedError) as error:
        print(f"rank {ranks.rank}: {type(error).__name__}: {error}", flush=True)
    ranks.barrier()


def unlike_optimizers(ranks: distributed.Communicator) -> None:
    """Have another optimizer on the last rank."""
    model = linear()
    ranks.broadcast(optim.Adam(model) if ranks.rank else optim.Sgd(model, lr=0.1, momentum=0.9))


def only_root(ranks: distributed.Communicator) -> None:
    """Let rank 0 alone ask for what all have to give."""
    if ranks.is_root:
        print(ranks.mean(1.0))
    train(ranks, raise_an_error)


def only_root_saves(ranks: distributed.Communicator) -> None:
    """Let rank 0 alone save, while the others go on."""
    if ranks.is_root:
        ranks.save_checkpoint("/nowhere/run.npz", model=linear())
    ranks.barrier()


FAILURES: dict[str, Callable[[distributed.Communicator], object]] = {
    "raises": lambda ranks: train(ranks, raise_an_error),
    "exits": lambda ranks: train(ranks, lambda: sys.exit(3)),
    "hangs": lambda ranks: train(ranks, hang),
    "is killed": lambda ranks: train(ranks, lambda: os.kill(os.getpid(), signal.SIGKILL)),
    "another model": lambda ranks: differ(ranks, out_features=3, dtype=np.float64),
    "other names": sequence,
    "another optimizer": unlike_optimizers,
    "no folder": save,
    "only root": only_root,
    "only root saves": only_root_saves,
    "too few ranks": lambda ranks: distributed.world(ranks.size + 1),
}


def main() -> None:
    """Fail."""
    before: dict[str, Callable[[], None]] = {
        "raises before MPI": raise_an_error,
        "exits before MPI": lambda: sys.exit(0),
    }
    transport.NOTED_AFTER = 1.0
    if sys.argv[1] in before:
        if os.environ["PMI_RANK"] == "1":
            before[sys.argv[1]]()
        distributed.world().barrier()
        return
    FAILURES[sys.argv[1]](distributed.world())


if __name__ == "__main__":
    main()
