"""How far compiled training is from eager training after a hundred steps, on every workload.

Both start from the same state and get the same data. Training carries rounding on from step to
step. How much of a difference that makes by itself is shown beside it: between two eager runs, one
of which starts with every number of its data and parameters moved to the next float32.

A difference is the largest one of an array, over the largest element of that array.
"""

from __future__ import annotations

import argparse
import inspect
import sys
from collections.abc import Iterable
from typing import Any

import numpy as np

import tapetensor as tt
from benchmarks.contenders.tapetensor import COMPUTES, Compute
from benchmarks.problems import WORKLOADS, Array

STEPS = 100
# Of float32 results that are computed in another order.
BOUND = 1e-5


def difference(ones: Iterable[Array], others: Iterable[Array]) -> float:
    """Return the largest difference between arrays, relative to the largest element of each."""
    return max(
        [
            float(np.max(np.abs(one - other)) / (np.max(np.abs(one)) or 1.0))
            for one, other in zip(ones, others, strict=True)
        ],
        default=0.0,
    )


def moved(problem: Any, rng: np.random.Generator) -> Any:
    """Return a problem with every float32 moved to the next one, up or down at random."""
    if isinstance(problem, np.ndarray) and problem.dtype == np.float32:
        towards = np.where(rng.random(problem.shape) < 0.5, np.float32(-np.inf), np.float32(np.inf))
        return np.nextafter(problem, towards)
    if isinstance(problem, tuple):
        items = [moved(item, rng) for item in problem]
        return problem.__class__(*items) if hasattr(problem, "_fields") else tuple(items)
    return problem


def parameters_of(compute: Compute) -> list[Array]:
    """Return the parameters of the model that a training step closes over; none without one."""
    model = inspect.getclosurevars(inspect.unwrap(compute)).nonlocals.get("model")
    return [] if model is None else [one.numpy() for one in model.parameters().values()]


def drift(ours: Compute, theirs: Compute, steps: int) -> tuple[float, float]:
    """Return the largest difference of all results over so many steps, and of the parameters."""
    results = max(
        [
            difference([one.numpy() for one in ours()], [one.numpy() for one in theirs()])
            for _ in range(steps)
        ]
    )
    return results, difference(parameters_of(ours), parameters_of(theirs))


def row(workload: str, steps: int = STEPS, *, tiny: bool = False) -> tuple[float, ...]:
    """Return what differs on a workload.

    Args:
        workload: its name.
        steps: how many to take.
        tiny: whether to take the sizes of the tests.

    Returns:
        Of compiled and eager the difference of the results and of the parameters; and of two eager
        runs.
    """
    build, make = COMPUTES[workload], WORKLOADS[workload].problem
    compiled = drift(build(make(tiny)), tt.compile(build(make(tiny))), steps)
    rounded = drift(build(make(tiny)), build(moved(make(tiny), np.random.default_rng(1))), steps)
    return *compiled, *rounded


def main() -> int:
    """Print the table; return 1 if compiled training is further off than allowed, else 0."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.agreement", description=__doc__)
    parser.add_argument("workloads", nargs="*", choices=[[], *COMPUTES], metavar="W1")
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--tiny", action="store_true", help="the small sizes of the tests")
    parser.add_argument("--bound", type=float, default=BOUND, help="of what is allowed")
    arguments = parser.parse_args()
    print("| | compiled: results | parameters | two eager runs: results | parameters |")
    print("|---|---|---|---|---|")
    differing = []
    for workload in arguments.workloads or COMPUTES:
        found = row(workload, arguments.steps, tiny=arguments.tiny)
        # So that a NaN, which compares as nothing, is more too.
        is_more = [not one <= arguments.bound for one in found]
        cells = [f"{one:.1e}" + " *" * more for one, more in zip(found, is_more, strict=True)]
        print(f"| {workload} | {' | '.join(cells)} |", flush=True)
        if any(is_more[:2]):
            differing.append(workload)
    print(f"\n* more than {arguments.bound:g}")
    if differing:
        print(f"compiled and eager training differ: {', '.join(differing)}")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
