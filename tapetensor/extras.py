"""Packages that are there for some: imported when they are first needed, and never before."""

from __future__ import annotations

import importlib
from typing import Any

from tapetensor.errors import MissingDependencyError
from tapetensor.machine.settings import IN_WEBASSEMBLY


def import_extra(module: str, needed_by: str, extra: str, instead: str = "") -> Any:
    """Return a module of an optional package.

    Args:
        module: its full name.
        needed_by: the subject of the message: ``".safetensors files"``.
        extra: which extra of tapetensor installs it.
        instead: what works without it, if anything does.

    Raises:
        MissingDependencyError: if it is not installed; the message says how it is.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        cure = f"pip install 'tapetensor[{extra}]'"
        if IN_WEBASSEMBLY and package in ("mpi4py", "numba"):
            cure = "there is none for WebAssembly"
        raise MissingDependencyError(
            f"{needed_by} need the package {package}: {cure}" + (f"; {instead}" if instead else "")
        ) from error
