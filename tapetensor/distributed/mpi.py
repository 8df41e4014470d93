"""MPI as far as this package needs it: how it is loaded, and how one rank's error ends the job."""

from __future__ import annotations

import atexit
import contextlib
import functools
import math
import os
import sys
import time
import traceback
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING

from tapetensor.distributed.start import LIMIT, LIMIT_VARIABLE, watched_start
from tapetensor.errors import DistributedError, MissingDependencyError
from tapetensor.extras import import_extra

if TYPE_CHECKING:
    from mpi4py.MPI import Intracomm

# So many seconds are left for output to pass through the launcher.
_TIME_TO_PASS_ON = 0.3


@functools.cache
def load() -> Intracomm:
    """Load MPI, which starts it, and return the communicator of all ranks."""
    rank = _rank_of_launcher()
    watch: contextlib.AbstractContextManager[None] = contextlib.nullcontext()
    if rank is not None:
        watch = watched_start(rank, _seconds(LIMIT_VARIABLE, LIMIT))
    try:
        with watch:
            ranks: Intracomm = import_extra("mpi4py.MPI", "many ranks", "mpi").COMM_WORLD
    # mpi4py raises this when it finds no library to load.
    except RuntimeError as error:
        raise MissingDependencyError(
            "many ranks need an MPI library, and mpi4py finds none; mpich is one: "
            f"pip install 'tapetensor[mpi]' (mpi4py says: {error})"
        ) from error
    return ranks


def wait_limit() -> float:
    """Return how many seconds a rank waits for others once all have started."""
    # There is no limit by default: nobody knows how long a step of another rank takes.
    return _seconds("TAPETENSOR_WAIT_SECONDS", math.inf)


def _seconds(variable: str, default: float) -> float:
    text = os.environ.get(variable, str(default))
    try:
        limit = float(text)
    except ValueError:
        limit = 0.0
    if not limit > 0:
        raise DistributedError(f"world: {variable} must be seconds, a number above 0, got {text!r}")
    return limit


def _rank_of_launcher() -> str | None:
    """Return the number that a launcher has given this process, if one has."""
    # MPICH, Open MPI and PMIx use these variables.
    ranks = map(os.environ.get, ("PMI_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK"))
    return next((rank for rank in ranks if rank is not None), None)


def check_launcher() -> None:
    """Check that a process which MPI takes to be alone was started alone."""
    # The launcher of another MPI may have started several, which would all do the same.
    for variable in ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE"):
        started = os.environ.get(variable, "1")
        if started != "1":
            raise DistributedError(
                f"world: a launcher has started {started} processes, and MPI knows of one; "
                "take the mpiexec of the MPI that mpi4py uses, which pip installs beside python"
            )


def end_all_ranks(
    name: str, kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    """Show an error that nobody caught, and end the job: other ranks may wait for this one."""
    text = "".join(traceback.format_exception(kind, error, trace))
    sys.stdout.flush()
    # The text is written in one piece, for other ranks write as well.
    sys.stderr.write(f"{name} ends the job:\n{text}")
    sys.stderr.flush()
    # A launcher that is told to end the job may do so before it has passed on what was written.
    time.sleep(_TIME_TO_PASS_ON)
    # Without mpi4py no rank can be waiting, and this one ends by itself.
    with contextlib.suppress(MissingDependencyError):
        load().Abort(1)


def guard_the_start(leave: Callable[[], None]) -> None:
    """Let no rank wait for this one in vain from now on, where a launcher of MPI has started it.

    Ranks that are ready wait in the start of MPI for those that are not. So one that fails before
    it starts MPI has to start it, in order to end it; and one that ends has to, to say so, which
    `leave` does.
    """
    rank = _rank_of_launcher()
    if rank is None:
        return
    _seconds(LIMIT_VARIABLE, LIMIT)
    wait_limit()
    sys.excepthook = functools.partial(end_all_ranks, f"rank {rank}")
    if _hears_the_launcher():
        atexit.register(_leave_as, os.getpid(), leave)


def _hears_the_launcher() -> bool:
    """Tell whether this is a rank of MPICH, and not a process that a rank has started.

    Such a process inherits the variables, but not the open file.
    """
    try:
        os.fstat(int(os.environ.get("PMI_FD", "")))
    except (ValueError, OSError):
        return False
    return True


def _leave_as(process: int, leave: Callable[[], None]) -> None:
    # A fork inherits what is done at the exit, too.
    if os.getpid() == process:
        leave()
