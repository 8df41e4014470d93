"""The speed of matrix products on this machine, and how to improve it.

    python -m tapetensor doctor

It changes nothing. Each kernel of OpenBLAS that the processor can run is tried in a process of its
own, for a kernel cannot be changed once it is loaded.
"""

from __future__ import annotations

import ctypes
import os
import platform
import subprocess
import sys
import time
from importlib import metadata
from typing import NamedTuple

import numpy as np

from tapetensor.machine import openblas
from tapetensor.machine.settings import (
    BLAS_SETTING,
    IN_WEBASSEMBLY,
    KERNEL_VARIABLE,
    Processor,
    better_kernel,
    processor,
    runnable_kernels,
)

SIZE = 1024
# Below this a gain is within what a machine's speed varies by.
_WORTH_TELLING = 1.1


class Blas(NamedTuple):
    """The BLAS that numpy has loaded.

    Attributes:
        name: and version, as numpy was built with it.
        kernel: the one that it runs, if it is an OpenBLAS that says so.
        threads: how many it uses, if it says so.
    """

    name: str
    kernel: str | None
    threads: int | None


def loaded_blas() -> Blas:
    """Return what is known of numpy's BLAS."""
    name, core_name = openblas.built_with(), openblas.function("get_corename")
    if core_name is None:
        return Blas(name, None, None)
    core_name.restype = ctypes.c_char_p
    threads = openblas.function("get_num_threads")
    return Blas(name, core_name().decode(), threads() if threads is not None else None)


def product_speed(seconds: float) -> float:
    """Return the GFLOP/s of a float32 product of two square matrices, the best of several."""
    lhs = np.full((SIZE, SIZE), 0.5, np.float32)
    out = np.empty_like(lhs)
    best = float("inf")
    end = time.perf_counter() + seconds
    while best == float("inf") or time.perf_counter() < end:
        start = time.perf_counter()
        np.matmul(lhs, lhs, out=out)
        best = min(best, time.perf_counter() - start)
    return 2e-9 * SIZE**3 / best


def speeds(of: Processor, seconds: float, rounds: int) -> tuple[float, dict[str, float]]:
    """Return the speed as the environment is, and by kernel, each in a process of its own.

    They take turns and the best counts, so that a busy moment does not decide. A kernel that
    OpenBLAS does not take, because it was built without it, is left out.
    """
    own = ""
    by_kernel: dict[str, float] = {}
    if IN_WEBASSEMBLY:
        # There is one kernel, and no process to try it in.
        speed = product_speed(seconds)
        return speed, {"the only one": speed}
    for _ in range(rounds):
        for asked in ("", *runnable_kernels(of)):
            taken, speed = _measure_in_process({KERNEL_VARIABLE: asked} if asked else {}, seconds)
            own = own if asked else taken
            if not asked or taken == asked:
                by_kernel[taken] = max(by_kernel.get(taken, 0.0), speed)
    return by_kernel[own], by_kernel


def _measure_in_process(environment: dict[str, str], seconds: float) -> tuple[str, float]:
    """Return the kernel that a fresh process takes, and its speed."""
    program = f"from tapetensor.machine import doctor; doctor.print_speed({seconds})"
    output = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, **environment}, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    kernel, speed = output.split()
    return kernel, float(speed)


def report(of: Processor, blas: Blas, as_it_is: float, by_kernel: dict[str, float]) -> str:
    """Return what a person should know.

    Args:
        of: the processor.
        blas: numpy's BLAS.
        as_it_is: the GFLOP/s reached.
        by_kernel: the GFLOP/s of each kernel, that one included.
    """
    asked = os.environ.get(KERNEL_VARIABLE)
    chosen = f"{KERNEL_VARIABLE} asks for {asked}" if asked else "OpenBLAS's own choice"
    kernel = f"{blas.kernel} ({chosen})" if blas.kernel else "unknown"
    best = max(by_kernel, key=lambda one: by_kernel[one])
    lines = [
        f"processor  {of.name}, {os.cpu_count()} cores",
        f"numpy      {np.__version__}, Python {platform.python_version()}",
        f"BLAS       {blas.name}, {blas.threads or 'unknown'} threads",
        f"kernel     {kernel}",
        f"native     {_native()}",
        f"reached    {as_it_is:.0f} GFLOP/s (float32 product, {SIZE} x {SIZE})",
        f"reachable  {by_kernel[best]:.0f} GFLOP/s ("
        + ", ".join([f"{name} {speed:.0f}" for name, speed in by_kernel.items()])
        + ")",
    ]
    if by_kernel[best] < _WORTH_TELLING * as_it_is:
        return "\n".join([*lines, "advice     nothing to gain from another kernel"])
    advice = f"export {KERNEL_VARIABLE}={best}  # {by_kernel[best] / as_it_is:.1f} times the speed"
    # The setting leaves a kernel that is asked for alone.
    if best == better_kernel(of) and not asked:
        advice += f"; or {BLAS_SETTING}=auto, where tapetensor is imported before numpy"
    return "\n".join([*lines, f"advice     {advice}"])


def _native() -> str:
    """Return whether the backend numba can be chosen."""
    try:
        return f"numba {metadata.version('numba')}, for tt.compile(..., backend='numba')"
    except metadata.PackageNotFoundError:
        return "not installed; pip install 'tapetensor[numba]' for compiled functions"


def examination(seconds: float = 0.2, rounds: int = 3) -> str:
    """Measure this machine and return the report.

    Args:
        seconds: for each measurement.
        rounds: of measurements, at least one.
    """
    of = processor()
    return report(of, loaded_blas(), *speeds(of, seconds, rounds))


def print_speed(seconds: float) -> None:
    """Print the kernel of this process and its speed, for the process that asked."""
    print(loaded_blas().kernel or "unknown", product_speed(seconds))
