"""The OpenBLAS that numpy has loaded, asked and told by functions of its own."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np


def built_with() -> str:
    """Return the name and the version of the BLAS that numpy was built with."""
    config: Any = np.show_config(mode="dicts")
    built = config.get("Build Dependencies", {}).get("blas", {})
    return f"{built.get('name', 'unknown')} {built.get('version', '')}".strip()


def function(name: str) -> Any:
    """Return a function of OpenBLAS, whichever way its names are decorated; None without one."""
    for library in map(ctypes.CDLL, _files()):
        for prefix in ("scipy_openblas_", "openblas_"):
            for suffix in ("64_", ""):
                found = getattr(library, f"{prefix}{name}{suffix}", None)
                if found is not None:
                    return found
    return None


def _files() -> list[str]:
    """Return the files of the OpenBLAS that numpy brings with it, or that the process has loaded.

    Opening a library that is loaded gives that one, so its answers are those of numpy's BLAS.
    """
    package = Path(np.__file__).parent
    folders = (package.parent / "numpy.libs", package / ".dylibs")
    bundled = [str(file) for folder in folders for file in folder.glob("*openblas*")]
    try:
        maps = Path("/proc/self/maps").read_text()
    except OSError:
        maps = ""
    loaded = [line.split()[-1] for line in maps.splitlines() if "openblas" in line]
    return list(dict.fromkeys([*bundled, *loaded]))


@cache
def _counts() -> tuple[Callable[[], int], Callable[[int], None]] | None:
    """Return what reads and what sets the number of threads, if numpy's BLAS has such functions."""
    both = function("get_num_threads"), function("set_num_threads")
    return both if "openblas" in built_with() and None not in both else None


class _Held:
    """Who holds the BLAS to one thread at the moment.

    Attributes:
        lock: of whoever looks at the others or changes them.
        blocks: how many blocks hold it.
        threads: how many threads it has without them.
    """

    def __init__(self) -> None:
        self.lock, self.blocks, self.threads = Lock(), 0, 1


_held = _Held()


def _in_child() -> None:
    """Give the BLAS of a child process its threads: no other thread is left to end its block."""
    counts, before = _counts(), _held.threads if _held.blocks else 0
    _held.lock, _held.blocks = Lock(), 0
    if counts is not None and before:
        counts[1](before)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)


def threads() -> int:
    """Return on how many threads a product runs; 1 if the BLAS does not say."""
    counts = _counts()
    with _held.lock:
        return _held.threads if _held.blocks else 1 if counts is None else counts[0]()


@contextmanager
def held_to_one_thread() -> Iterator[None]:
    """Let each product run in the thread that asks for it, as long as the block lasts.

    Where several threads multiply, the threads of the BLAS would wait for each other. Blocks may
    overlap: the last to end gives it its threads again.
    """
    counts = _counts()
    if counts is None:
        yield
        return
    read, write = counts
    with _held.lock:
        if not _held.blocks:
            _held.threads = read()
            write(1)
        _held.blocks += 1
    try:
        yield
    finally:
        with _held.lock:
            # In a child that was made inside, nobody counts as inside any more.
            _held.blocks = max(0, _held.blocks - 1)
            if not _held.blocks:
                write(_held.threads)
