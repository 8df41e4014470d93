"""Starting programs under mpiexec."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_BESIDE = Path(sys.executable).with_name("mpiexec")
MPIEXEC = str(_BESIDE) if _BESIDE.exists() else shutil.which("mpiexec")

needs_mpi = pytest.mark.skipif(
    MPIEXEC is None or importlib.util.find_spec("mpi4py") is None,
    reason="needs mpi4py and mpiexec: pip install tapetensor[mpi]",
)


def mpiexec(ranks: int, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a Python program on several ranks; one that hangs fails the test."""
    assert MPIEXEC is not None
    return subprocess.run(
        [MPIEXEC, "-n", str(ranks), sys.executable, *map(str, arguments)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        # Ranks share the cores already.
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
    )


def finished(ranks: int, *arguments: str | Path) -> str:
    """Return what a program prints that ends without an error."""
    job = mpiexec(ranks, *arguments)
    assert job.returncode == 0, job.stderr
    return job.stdout
