"""A command under every kernel that OpenBLAS has for this machine.

    python -m benchmarks.kernels python -m benchmarks.agreement --tiny --bound 0

Kernels add in orders of their own, so a plan that adds in another order than eager mode may show
under one of them alone. Which kernels an OpenBLAS was built with, and which of them the processor
runs, only it knows: each name is asked for in a process of its own, and the kernel that it takes
counts, once.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Sequence

from tapetensor.machine.settings import KERNEL_VARIABLE

# The names that an OpenBLAS may know, for x86-64 and for ARM, the oldest first. Not Prescott: numpy
# needs a later processor, and the kernel in numpy 2.5.5 ends the process in products of its own.
NAMES = (
    "Nehalem", "Sandybridge", "Haswell", "Zen", "SkylakeX", "Cooperlake",
    "SapphireRapids", "ARMV8", "NEOVERSEN1", "NEOVERSEV1", "NEOVERSEN2", "ARMV8SVE",
)  # fmt: skip
# Multiplies, which ends the process where the processor lacks the instructions of the kernel.
_PROBE = """
import numpy as np
from tapetensor.machine.doctor import loaded_blas
for dtype in (np.float32, np.float64):
    square = np.ones((64, 64), dtype)
    square @ square @ square[0] @ square[0]
print(loaded_blas().kernel or "")
"""


def kernels_of_this_machine(names: Sequence[str] = NAMES) -> dict[str, str]:
    """Return the kernels that OpenBLAS takes, each by the first name that asks for it.

    There are none where numpy has another BLAS.
    """
    probes = [
        _start([sys.executable, "-c", _PROBE], name, stdout=subprocess.PIPE) for name in names
    ]
    kernels: dict[str, str] = {}
    for name, probe in zip(names, probes, strict=True):
        kernel = probe.communicate()[0].strip()
        if probe.returncode == 0 and kernel and kernel not in kernels.values():
            kernels[name] = kernel
    return kernels


def _start(command: list[str], kernel: str, stdout: int | None = None) -> subprocess.Popen[str]:
    """Start a command that asks for a kernel, or for none if that is empty."""
    environment = {**os.environ, KERNEL_VARIABLE: kernel}
    return subprocess.Popen(command, env=environment, stdout=stdout, text=True)


def main(arguments: list[str] | None = None) -> int:
    """Run a command under every kernel; return 0 if it does so every time, else 1."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kernels", description=__doc__)
    parser.add_argument("--others", action="store_true", help="not under the kernel taken anyway")
    parser.add_argument("command", nargs=argparse.REMAINDER, help="what to run, and its arguments")
    options = parser.parse_args(arguments)
    command = options.command
    if not command:
        parser.error("there must be a command to run")
    kernels = kernels_of_this_machine()
    if options.others:
        taken = kernels_of_this_machine([os.environ.get(KERNEL_VARIABLE, "")]).values()
        kernels = {name: kernel for name, kernel in kernels.items() if kernel not in taken}
    names = [f"{name} ({kernel})" for name, kernel in kernels.items()]
    print("kernels of this machine's OpenBLAS:", ", ".join(names) or "none, another BLAS")
    failed = []
    for name in kernels or ([] if options.others else [""]):
        print(f"\n-- {KERNEL_VARIABLE}={name}", flush=True)
        start = time.perf_counter()
        if _start(command, name).wait() != 0:
            failed.append(name or "the BLAS as it is")
        print(f"-- {time.perf_counter() - start:.1f} s", flush=True)
    if failed:
        print(f"\nit fails under {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
