"""One problem at several sizes in several libraries: processes that take turns, time and memory.

A script of this room has a table of sides, each a function that takes a size and returns a step,
and ends with `main`. Every side and size has a process of its own. That runs a small step first, so
that what is imported and set up once counts for nobody; the most memory that it holds from there on
is what the problem takes.
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from benchmarks.worker import peak_megabytes

ROOT = Path(__file__).parent.parent.parent
# The threads of a BLAS go on spinning for a while after its last call.
PAUSE = 0.1

# How libraries are told the number of their threads.
_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")

Step: TypeAlias = Callable[[], object]
Sides: TypeAlias = Mapping[str, Callable[[int], Step]]


class Growth(NamedTuple):
    """What is measured.

    Attributes:
        title: what one line calls it.
        sides: by name what builds a step of a size; all are compared with the last one.
        sizes: the sizes, ascending.
        small: the size of the step that is run before anything is measured.
    """

    title: str
    sides: Sides
    sizes: Sequence[int]
    small: int


class Measured(NamedTuple):
    """What a side takes for a size.

    Attributes:
        least_ms: of the fastest step.
        median_ms: of the steps of all rounds.
        cpu_ms: the median of the time of all threads, which other processes do not change.
        memory_mb: the most that the process held, above what it held before the problem was built.
    """

    least_ms: float
    median_ms: float
    cpu_ms: float
    memory_mb: float


def main(*growths: Growth) -> None:
    """Measure what the command line asks for, and print tables; or be one of the processes."""
    parser = argparse.ArgumentParser(description=growths[0].title)
    parser.add_argument("--sizes", type=int, nargs="+")
    parser.add_argument("--sides", nargs="+")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, help="of each library; as they come unless given")
    parser.add_argument("--worker", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        number, side, size = options.worker
        growth = growths[int(number)]
        _serve(growth.sides[side], int(size), growth.small)
        return
    if options.threads:
        os.environ |= dict.fromkeys(_THREADS, str(options.threads))
    for number, growth in enumerate(growths):
        sides, sizes = options.sides or list(growth.sides), options.sizes or growth.sizes
        found = [_measured(number, sides, size, options.rounds) for size in sizes]
        print(growth.title)
        print(table(sizes, found))


def table(sizes: Sequence[int], found: Sequence[Mapping[str, Measured]]) -> str:
    """Return the figures as text: by size, and how they grow from the least size to the largest."""
    names = list(found[0])
    peer = names[-1]
    columns = ("least ms", "median ms", "cpu ms", "MB")
    head = "".join([f"{one:>12}" for one in columns])
    lines = [f"{'':>30}{head}   over {peer}: least, median, cpu, memory"]
    for size, row in zip(sizes, found, strict=True):
        beside = row[peer]
        for name, one in row.items():
            figures = "".join([f"{figure:>12.2f}" for figure in one])
            ratios = "".join(
                [f"{mine / theirs:>7.2f}" for mine, theirs in zip(one, beside, strict=True)]
            )
            lines.append(f"{size:>10}{name:>20}{figures}   {ratios}")
    if len(sizes) > 1:
        span = math.log(sizes[-1] / sizes[0])
        for name in names:
            grown = [
                math.log(last / first) / span
                for first, last in zip(found[0][name], found[-1][name], strict=True)
            ]
            lines.append(f"{name}: time ~ size^{grown[0]:.2f}, memory ~ size^{grown[3]:.2f}")
    return "\n".join(lines)


def _measured(number: int, sides: Sequence[str], size: int, rounds: int) -> dict[str, Measured]:
    """Return what the sides take for a size; one that fails says so and is left out."""
    workers: dict[str, subprocess.Popen[str]] = {}
    try:
        for side in sides:
            worker = workers[side] = _started(number, side, size)
            if not _answer(worker):
                print(f"{side} {size}: failed", file=sys.stderr)
                del workers[side]
        samples: dict[str, list[tuple[float, float]]] = {side: [] for side in workers}
        for _ in range(rounds):
            for side, worker in workers.items():
                time.sleep(PAUSE)
                samples[side].append(_asked(worker, "time")["ms"])
        found = {}
        for side, worker in workers.items():
            walls, cpus = zip(*samples[side], strict=True)
            times = min(walls), statistics.median(walls), statistics.median(cpus)
            found[side] = Measured(*times, _asked(worker, "memory")["megabytes"])
        return found
    finally:
        for worker in workers.values():
            # It ends where there are no more questions.
            worker.communicate()


def _started(number: int, side: str, size: int) -> subprocess.Popen[str]:
    module = sys.modules["__main__"].__spec__
    assert module is not None
    return subprocess.Popen(
        [sys.executable, "-m", module.name, "--worker", str(number), side, str(size)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def _asked(worker: subprocess.Popen[str], question: str) -> dict[str, Any]:
    assert worker.stdin is not None
    worker.stdin.write(question + "\n")
    worker.stdin.flush()
    return _answer(worker)


def _answer(worker: subprocess.Popen[str]) -> dict[str, Any]:
    assert worker.stdout is not None
    line = worker.stdout.readline()
    content: dict[str, Any] = json.loads(line) if line else {}
    return content


def _serve(build: Callable[[int], Step], size: int, small: int) -> None:
    """Answer questions until there are no more."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    # What libraries print must not mix with the answers.
    os.dup2(2, 1)
    warm = build(small)
    warm()
    warm()
    del warm
    gc.collect()
    _forget_peak()
    before = peak_megabytes()
    step = build(size)
    step()
    answers.write(json.dumps({"is_ready": True}) + "\n")
    for question in sys.stdin:
        if question.strip() == "memory":
            answers.write(json.dumps({"megabytes": peak_megabytes() - before}) + "\n")
        else:
            clocks = time.perf_counter, time.process_time
            starts = [clock() for clock in clocks]
            step()
            ms = [(clock() - start) * 1e3 for clock, start in zip(clocks, starts, strict=True)]
            answers.write(json.dumps({"ms": ms}) + "\n")


def _forget_peak() -> None:
    """Let the system count the most memory of this process from now on; only Linux does."""
    peaks = Path("/proc/self/clear_refs")
    if peaks.exists():
        peaks.write_text("5")
