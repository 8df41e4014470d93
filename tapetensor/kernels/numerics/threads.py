"""Work on several cores at once, in functions that spend their time in numpy."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any

from tapetensor.machine import openblas
from tapetensor.machine.webassembly import IN_WEBASSEMBLY

_pools: list[ThreadPoolExecutor] = []
# A child process inherits the pool without its threads, which would be waited for forever.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pools.clear)


def count() -> int:
    """Return how many cores ufuncs may use, four at most: memory is the limit by then."""
    return min(_cores(), 4)


def _cores() -> int:
    """Return how many cores the process may use."""
    if IN_WEBASSEMBLY:
        return 1
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def shares(count: int, workers: int) -> list[tuple[int, int]]:
    """Return where the share of each worker in so many things begins and ends; none is empty."""
    workers = min(workers, count)
    return [
        (count * worker // workers, count * (worker + 1) // workers) for worker in range(workers)
    ]


def run_together(*calls: tuple[Any, ...]) -> None:
    """Run functions at the same time, the first in this thread; each is given with its arguments.

    All have ended when it returns, also where one raises. Where no thread can be started they run
    one after the other.
    """
    if IN_WEBASSEMBLY:
        for function, *arguments in calls:
            function(*arguments)
        return
    if len(calls) > 1 and not _pools:
        _pools.append(ThreadPoolExecutor(max(1, _cores() - 1), "tapetensor"))
    # Each function runs in the context of the caller, whose np.errstate holds here too.
    submit: Any = _pools[0].submit if _pools else None
    others = [submit(copy_context().run, *call) for call in calls[1:]]
    first: Callable[..., None] = calls[0][0]
    try:
        first(*calls[0][1:])
    finally:
        # All have to end before one is allowed to raise.
        for other in others:
            other.exception()
    for other in others:
        other.result()


def multiply_apart(function: Callable[[int, int], None], count: int) -> None:
    """Run a function for the first and the last of each share of so many things, all at once.

    For functions that multiply small matrices again and again: the BLAS leaves its threads to them,
    as many as it has.
    """
    workers = min(openblas.threads(), _cores())
    if workers == 1 or count < workers:
        function(0, count)
        return
    with openblas.held_to_one_thread():
        run_together(*[(function, *share) for share in shares(count, workers)])
