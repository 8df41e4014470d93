"""What importing a package adds to a bare interpreter, each time in a fresh one."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping

PACKAGES = ("numpy", "tapetensor", "autograd", "jax", "torch")


def measure(packages: Iterable[str] = PACKAGES, rounds: int = 5) -> dict[str, float]:
    """Return the median seconds that ``import package`` adds, for those that are installed.

    From bytecode, as after an installation: the first run, which compiles, does not count.
    """
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": cache}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        programs = {"": "pass"} | {package: f"import {package}" for package in packages}
        installed = [one for one in programs if _run(programs[one], environment) is not None]
        samples: dict[str, list[float]] = {one: [] for one in installed}
        for _ in range(rounds):
            for one in installed:
                samples[one].append(_run(programs[one], environment) or 0.0)
    bare = statistics.median(samples.pop(""))
    return {one: statistics.median(times) - bare for one, times in samples.items()}


def _run(program: str, environment: Mapping[str, str]) -> float | None:
    """Return how long a fresh interpreter takes for a program, or None if it fails."""
    start = time.perf_counter()
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, env=environment, check=False
    )
    return time.perf_counter() - start if ended.returncode == 0 else None


def table(measured: Mapping[str, float]) -> str:
    """Return the times, and each beside tapetensor's."""
    own = measured.get("tapetensor")
    lines = [f"import  {'':<14}{'ms':>11}{'tapetensor / it':>18}"]
    for package, seconds in measured.items():
        ratio = "" if own is None else f"{own / seconds:>18.2f}"
        lines.append(f"  {package:<20}{seconds * 1e3:>11.1f}{ratio}")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table(measure()))
