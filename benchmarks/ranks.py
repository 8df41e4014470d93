"""What ranks cost and gain: measured on one and two, predicted for more.

    python -m benchmarks.ranks

measures `all_reduce` between two ranks by size, and a training step of an MLP by batch size on one
rank, and fits a line to each. The prediction is made of these four numbers; that for two ranks is
compared with what two ranks take.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import tapetensor as tt
from tapetensor import Gradients, NoneTape, Tensor1D, Tensor2D, distributed, losses, nn, optim

ROOT = Path(__file__).parent.parent
BYTES = [1 << power for power in range(10, 25, 2)]
ROWS = [32, 64, 128, 256]
BATCH = 256
PREDICTED = [2, 8, 64, 512, 1024]


class Line(NamedTuple):
    """A time that grows in proportion to a size.

    Attributes:
        start: seconds at size 0.
        slope: seconds for each unit more.
    """

    start: float
    slope: float

    def __call__(self, size: float) -> float:
        """Return the seconds for a size."""
        return self.start + self.slope * size


def fitted(sizes: Sequence[int], seconds: Sequence[float]) -> Line:
    """Return the line whose relative deviations have the least sum of squares."""
    weights = 1 / np.array(seconds)
    columns = np.stack([weights, weights * np.array(sizes)], axis=1)
    (start, slope), *_ = np.linalg.lstsq(columns, np.ones(len(sizes)), rcond=None)
    return Line(float(start), float(slope))


def all_reduce_seconds(pair: Line, ranks: int, nbytes: int) -> float:
    """Return the time of an all_reduce, by the line that was measured between two ranks.

        2 log2(p) start + 2 (p - 1) / p slope n,    with start = pair.start / 2, slope = pair.slope

    Halving and doubling, which MPI libraries use for long messages: Thakur, Rabenseifner & Gropp
    (2005), "Optimization of collective communication operations in MPICH". Every step is taken to
    be as fast as between two ranks of one machine.
    """
    return math.log2(ranks) * pair.start + 2 * (ranks - 1) / ranks * pair.slope * nbytes


def shortest(ranks: distributed.Communicator, action: Callable[[], object], repeats: int) -> float:
    """Return the shortest time of an action, as often on every rank, that all begin together."""
    best = math.inf
    for _ in range(repeats):
        ranks.barrier()
        start = time.perf_counter()
        action()
        best = min(best, time.perf_counter() - start)
    return best


def all_reduce_of(ranks: distributed.Communicator, nbytes: int) -> Callable[[], object]:
    """Return an all_reduce of gradients of so many bytes."""
    model: Any = nn.Bias1d(nbytes // 4)
    grads = Gradients()
    grads.insert(model.bias, np.ones(nbytes // 4, np.float32))
    reducer = distributed.Reducer(model, ranks)
    return lambda: reducer.all_reduce(grads)


def build_mlp() -> Any:
    """Return an MLP 784-512-256-10."""
    rng = np.random.default_rng(0)
    return nn.Sequential(
        nn.Linear(784, 512, rng=rng),
        nn.ReLU(),
        nn.Linear(512, 256, rng=rng),
        nn.ReLU(),
        nn.Linear(256, 10, rng=rng),
    )


def step_of(ranks: distributed.Communicator, rows: int) -> Callable[[], object]:
    """Return a training step in which every rank has so many rows."""
    rng = np.random.default_rng(1)
    x: Tensor2D[Any, Any] = tt.normal((rows, 784), rng=rng)
    labels: Tensor1D[Any, NoneTape, np.int64] = tt.from_numpy(rng.integers(10, size=rows), (rows,))
    model = build_mlp()
    reducer, optimizer = distributed.Reducer(model, ranks), optim.Adam(model, lr=1e-3)

    def step() -> None:
        loss = losses.cross_entropy(model.forward(x.trace()), labels)
        optimizer.step(reducer.backward(loss))

    return step


def work(repeats: int) -> dict[str, list[float]]:
    """Measure on this rank; return the shortest times by size."""
    ranks = distributed.world()
    return {
        "messages": [shortest(ranks, all_reduce_of(ranks, size), 5 * repeats) for size in BYTES],
        "steps": [shortest(ranks, step_of(ranks, rows), repeats) for rows in ROWS],
    }


def measured(ranks: int, repeats: int) -> dict[str, list[float]]:
    """Return what rank 0 of a job measured."""
    beside = Path(sys.executable).with_name("mpiexec")
    finished = subprocess.run(
        [
            *(str(beside) if beside.exists() else "mpiexec", "-n", str(ranks), sys.executable),
            *("-m", "benchmarks.ranks", "--worker", "--repeats", str(repeats)),
        ],
        cwd=ROOT,
        # A rank to a core: the threads of a BLAS would take the cores of the other rank.
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    content: dict[str, list[float]] = json.loads(finished.stdout)
    return content


def report(one: dict[str, list[float]], two: dict[str, list[float]]) -> str:
    """Return what was measured, fitted and predicted, as text."""
    pair, step = fitted(BYTES, two["messages"]), fitted(ROWS, one["steps"])
    nbytes = sum([tensor.size * 4 for tensor in build_mlp().parameters().values()])
    lines = ["all_reduce on 2 ranks", "     bytes   measured us     fitted us"]
    for size, seconds in zip(BYTES, two["messages"], strict=True):
        lines.append(f"{size:>10,}{seconds * 1e6:>14.0f}{pair(size) * 1e6:>14.0f}")
    lines += [
        f"  start {pair.start * 1e6:.0f} us, {1e-9 / pair.slope:.2f} GB/s",
        "",
        f"training step, MLP 784-512-256-10, {nbytes:,} bytes of gradients",
        "rows of a rank   1 rank ms    fitted ms   2 ranks ms   predicted ms",
    ]
    for rows, seconds, of_two in zip(ROWS, one["steps"], two["steps"], strict=True):
        lines.append(
            f"{rows:>14}{seconds * 1e3:>12.2f}{step(rows) * 1e3:>13.2f}{of_two * 1e3:>13.2f}"
            f"{(step(rows) + pair(nbytes)) * 1e3:>15.2f}"
        )
    lines += [
        f"  {step.start * 1e3:.2f} ms and {step.slope * 1e6:.1f} us a row",
        "",
        f"predicted       {BATCH} rows on each rank     {BATCH * 8} rows in all",
        " ranks   all_reduce ms   step ms   efficiency   step ms   speed-up",
    ]
    for ranks in PREDICTED:
        sending = all_reduce_seconds(pair, ranks, nbytes)
        weak, strong = step(BATCH) + sending, step(8 * BATCH / ranks) + sending
        lines.append(
            f"{ranks:>6}{sending * 1e3:>16.2f}{weak * 1e3:>10.2f}{step(BATCH) / weak:>13.0%}"
            f"{strong * 1e3:>10.2f}{step(8 * BATCH) / strong:>11.1f}"
        )
    return "\n".join(lines)


def main() -> None:
    """Measure, and print the report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=30)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        result = work(options.repeats)
        if distributed.world().is_root:
            print(json.dumps(result))
        return
    print(report(*[measured(ranks, options.repeats) for ranks in (1, 2)]))


if __name__ == "__main__":
    main()
