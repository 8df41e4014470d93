"""The process of one contender: it prepares one workload, and runs a round when it is told to.

Lines of JSON on standard input and output. ``python -m benchmarks.worker CONTENDER WORKLOAD``
answers first with the witnesses of five steps and the time to the first result (or with the module
that is missing, or, where the contender does not have the workload, nothing), then each line
``{"seconds": s}`` with the times of its steps, and an empty line with its peak memory.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
import time
from typing import Any

import numpy as np

from benchmarks.contenders import Step, Steps
from benchmarks.problems import WORKLOADS

CHECKED_STEPS = 5
# A part at a time, so that checking a large array takes no memory to speak of.
PART = 1 << 16


def steps_of(contender: str) -> Steps:
    """Return the table of a contender."""
    module = importlib.import_module("benchmarks.contenders." + contender.replace("-", "_"))
    steps: Steps = module.STEPS
    return steps


def witnesses(step: Step, count: int = CHECKED_STEPS) -> list[list[float]]:
    """Return what the first steps compute, in a few numbers each.

    An array gives the sum of its positive elements and that of its negative ones, which do not
    cancel; a number itself.
    """
    return [[number for result in step() for number in _witness(result)] for _ in range(count)]


def _witness(result: object) -> list[float]:
    if isinstance(result, float):
        return [result]
    flat = np.reshape(np.asarray(result), -1)
    parts = [flat[start : start + PART] for start in range(0, flat.size, PART)]
    return [
        sum(float(np.maximum(part, 0).sum(dtype=np.float64)) for part in parts),
        sum(float(np.minimum(part, 0).sum(dtype=np.float64)) for part in parts),
    ]


def time_steps(step: Step, seconds: float, at_least: int = 3) -> list[float]:
    """Return the seconds of each of the steps that fit into so many seconds.

    The garbage collector runs as it does for a user.
    """
    samples: list[float] = []
    clock = time.perf_counter
    end = clock() + seconds
    while len(samples) < at_least or clock() < end:
        start = clock()
        step()
        samples.append(clock() - start)
    return samples


def peak_megabytes() -> float:
    """Return the most memory that this process has held."""
    try:
        with open("/proc/self/status") as status:
            lines = dict(line.split(":", 1) for line in status)
        return int(lines["VmHWM"].split()[0]) / 1024
    except (OSError, KeyError):
        import resource

        # Bytes on macOS, where there is no /proc.
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def main() -> None:
    """Serve until the input ends."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("contender")
    parser.add_argument("workload")
    parser.add_argument("--tiny", action="store_true", help="the small sizes of the tests")
    arguments = parser.parse_args()
    # What libraries print must not mix with the answers.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)

    def answer(content: dict[str, Any]) -> None:
        answers.write(json.dumps(content) + "\n")

    try:
        steps = steps_of(arguments.contender)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] in ("benchmarks", "tapetensor"):
            raise
        answer({"missing": error.name})
        return
    if arguments.workload not in steps:
        answer({})
        return
    problem = WORKLOADS[arguments.workload].problem(arguments.tiny)
    start = time.perf_counter()
    step = steps[arguments.workload](problem)
    first = witnesses(step, 1)
    first_ms = (time.perf_counter() - start) * 1e3
    answer({"witnesses": first + witnesses(step, CHECKED_STEPS - 1), "first_ms": first_ms})
    for line in sys.stdin:
        if line.strip():
            answer({"samples": time_steps(step, json.loads(line)["seconds"])})
        else:
            answer({"peak_mb": peak_megabytes()})


if __name__ == "__main__":
    main()
