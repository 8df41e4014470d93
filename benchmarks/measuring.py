"""One workload on several contenders: processes that take turns, and what they measured."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.contenders import ENVIRONMENTS, SUBJECT

ROOT = Path(__file__).parent.parent
TOLERANCE = 1e-4
# The threads of a BLAS go on spinning for a while after its last call.
PAUSE = 0.1


class Measurement(NamedTuple):
    """What one contender took for one workload.

    Attributes:
        round_medians: of the steps of each round, milliseconds.
        min_ms: the fastest step.
        peak_mb: the most memory that its process held.
        first_ms: from the data to the first result: building the model, tracing, compiling.
    """

    round_medians: Sequence[float]
    min_ms: float
    peak_mb: float
    first_ms: float

    @property
    def median_ms(self) -> float:
        """The median of the rounds' medians."""
        return statistics.median(self.round_medians)

    @property
    def spread(self) -> float:
        """How far the rounds lie apart, as a share of the median."""
        return (max(self.round_medians) - min(self.round_medians)) / self.median_ms


class DisagreementError(Exception):
    """Contenders do not compute the same, so comparing their times would say nothing."""


class Worker:
    """A process that runs one workload on one contender.

    Args:
        contender: its name.
        workload: its name.
        tiny: whether to take the sizes of the tests.
    """

    def __init__(self, contender: str, workload: str, *, tiny: bool) -> None:
        self.contender = contender
        command = [sys.executable, "-m", "benchmarks.worker", contender, workload]
        self._process = subprocess.Popen(
            command + ["--tiny"] * tiny,
            cwd=ROOT,
            env={**os.environ, **ENVIRONMENTS.get(contender, {})},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def answer(self) -> dict[str, Any]:
        """Return the next answer."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.contender}: its process ended with {self._process.wait()}")
        content: dict[str, Any] = json.loads(line)
        return content

    def ask(self, question: str) -> dict[str, Any]:
        """Send a line and return the answer."""
        assert self._process.stdin is not None
        self._process.stdin.write(question + "\n")
        self._process.stdin.flush()
        return self.answer()

    def close(self) -> None:
        """End the process."""
        self._process.terminate()
        self._process.communicate()


def measure(
    workload: str,
    contenders: Iterable[str],
    *,
    rounds: int,
    seconds: float,
    tiny: bool = False,
    note: Callable[[str], object] = print,
) -> dict[str, Measurement]:
    """Return the measurements of one workload by contender.

    Args:
        workload: its name.
        contenders: their names; those that cannot run it are left out, with a note.
        rounds: how often each takes its turn.
        seconds: how long a turn is.
        tiny: whether to take the sizes of the tests.
        note: takes what a person should know.

    Raises:
        DisagreementError: if two contenders do not compute the same.
    """
    workers: list[Worker] = []
    try:
        found: dict[str, list[list[float]]] = {}
        first_ms: dict[str, float] = {}
        for contender in contenders:
            worker = Worker(contender, workload, tiny=tiny)
            workers.append(worker)
            first = worker.answer()
            if "witnesses" in first:
                found[contender] = first["witnesses"]
                first_ms[contender] = first["first_ms"]
                continue
            if "missing" in first:
                note(f"{contender}: skipped, {first['missing']} is not installed")
            workers.remove(worker)
            worker.close()
        check_agreement(workload, found)
        samples: dict[str, list[list[float]]] = {worker.contender: [] for worker in workers}
        for _ in range(rounds):
            for worker in workers:
                time.sleep(PAUSE)
                answer = worker.ask(json.dumps({"seconds": seconds}))
                samples[worker.contender].append(answer["samples"])
        return {
            worker.contender: Measurement(
                [statistics.median(one) * 1e3 for one in samples[worker.contender]],
                min(min(one) for one in samples[worker.contender]) * 1e3,
                worker.ask("")["peak_mb"],
                first_ms[worker.contender],
            )
            for worker in workers
        }
    finally:
        for worker in workers:
            worker.close()


def check_agreement(workload: str, found: Mapping[str, Sequence[Sequence[float]]]) -> None:
    """Raise DisagreementError unless all contenders that have witnesses have the same.

    Args:
        workload: the name for the message.
        found: by contender, per step, what it computed; without results (the bare matrix products)
            there is nothing to compare.
    """
    with_results = {name: steps for name, steps in found.items() if any(steps)}
    if not with_results:
        return
    first = SUBJECT if SUBJECT in with_results else next(iter(with_results))
    expected = np.array(with_results[first])
    # Next to a large sum of the other sign a small one has lost its digits.
    scale = np.abs(expected).max(initial=1e-30)
    for name, steps in with_results.items():
        if np.shape(steps) != expected.shape or not np.allclose(
            steps, expected, rtol=TOLERANCE, atol=TOLERANCE * 1e-2 * scale
        ):
            raise DisagreementError(
                f"{workload}: {name} and {first} do not compute the same, nothing is timed:\n"
                f"{name}: {steps}\n{first}: {expected.tolist()}"
            )
