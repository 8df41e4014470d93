"""What ``import tapetensor`` adds to ``import numpy``, each in a fresh interpreter."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile

PROGRAM = """
import time
start = time.perf_counter()
import numpy
middle = time.perf_counter()
import tapetensor
print(middle - start, time.perf_counter() - middle)
"""


def measure(rounds: int = 15) -> tuple[float, float]:
    """Return the median seconds of importing numpy and of importing tapetensor after it.

    Both from bytecode, as after an installation: the first run, which compiles, does not count.
    """
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": cache}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        samples = [_sample(environment) for _ in range(rounds + 1)][1:]
    return statistics.median([one[0] for one in samples]), statistics.median(
        [one[1] for one in samples]
    )


def _sample(environment: dict[str, str]) -> tuple[float, float]:
    output = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    ).stdout
    numpy_time, tapetensor_time = (float(value) for value in output.split())
    return numpy_time, tapetensor_time


def main() -> None:
    """Print both times and their ratio."""
    numpy_time, tapetensor_time = measure()
    print("Import, milliseconds")
    print(f"numpy                {numpy_time * 1e3:8.1f}")
    print(f"tapetensor after it  {tapetensor_time * 1e3:8.1f}")
    print(f"ratio                {tapetensor_time / numpy_time:8.2f}")


if __name__ == "__main__":
    main()
