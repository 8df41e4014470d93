"""MPI as far as this package needs it: arrays and bytes from rank to rank, and how a job ends.

That all ranks call the same is checked: MPI takes that on trust, and mixes up data or waits. No
rank waits for one that will never come.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import math
import os
import sys
import time
import traceback
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, final

import numpy as np

from tapetensor.arrays.array import Array
from tapetensor.distributed.start import LIMIT, LIMIT_VARIABLE, watched_start
from tapetensor.errors import DistributedError, MissingDependencyError
from tapetensor.extras import import_extra

if TYPE_CHECKING:
    from mpi4py.MPI import Comm, Intracomm, Request

# So many seconds are left for output to pass through the launcher.
_TIME_TO_PASS_ON = 0.3
# A rank that waits says so after so many seconds.
NOTED_AFTER = 60.0


@functools.cache
def load_mpi() -> Intracomm:
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
        load_mpi().Abort(1)


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
        process = os.getpid()
        # A fork inherits what is done at the exit, too.
        atexit.register(lambda: leave() if os.getpid() == process else None)


def _hears_the_launcher() -> bool:
    """Tell whether this is a rank of MPICH, and not a process that a rank has started."""
    # Such a process inherits the variables, but not the open file.
    try:
        os.fstat(int(os.environ.get("PMI_FD", "")))
    except (ValueError, OSError):
        return False
    return True


@final
class Pending:
    """A collective communication under way."""

    def __init__(
        self, transport: Transport, request: Request, name: str, array: Array | None = None
    ) -> None:
        transport.order.announce(name, array)
        transport.started += 1
        self._number = transport.started
        self._transport = transport
        self._request = request
        self._name = name

    def poke(self) -> bool:
        """Tell whether it is complete. MPI moves data while it is asked, and not otherwise."""
        return self._request.Test()

    def wait(self) -> None:
        """Return when it is complete; raise DistributedError where that cannot be."""
        since = time.monotonic()
        while not (self._transport.order.is_kept(self._number) and self._request.Test()):
            self._transport.check_left(self._number, self._name)
            self._transport.check_late(self._number, self._name, time.monotonic() - since)
            _let_others_run()


@final
class Transport:
    """Collective communications, which every rank starts in the same order; that is checked.

    They are counted. A rank that ends, by ``sys.exit`` or at the end of its program, tells the
    others how many it took part in, so that one that waits for more knows that it waits in vain. An
    error that nobody catches ends all ranks.
    """

    def __init__(self, ranks: Intracomm) -> None:
        self._comm = ranks.Dup()
        self._farewells = ranks.Dup()
        self._limit = wait_limit()
        # The number of the collective that somebody has been missed in.
        self._missed_in = 0
        self.order = Order(ranks.Dup())
        # For each rank that has left, how many collectives it took part in.
        self._left: dict[int, int] = {}
        self.started = 0
        self.rank = self._comm.rank
        self.size = self._comm.size
        sys.excepthook = self._end_all_ranks

    def barrier(self) -> None:
        """Wait for all ranks."""
        Pending(self, self._comm.Ibarrier(), "barrier").wait()

    def start_sum(self, array: Array, name: str = "all_reduce") -> Pending:
        """Start to replace a contiguous array by its sum over all ranks."""
        # None stands for a buffer to send that is the one to receive into.
        return Pending(self, self._comm.Iallreduce(None, array), name, array)

    def broadcast(self, array: Array) -> None:
        """Replace a contiguous array by that of rank 0."""
        # It is sent as bytes, for MPI has no word for some dtypes.
        request = self._comm.Ibcast(array.reshape(-1).view(np.uint8), root=0)
        Pending(self, request, "broadcast", array).wait()

    def broadcast_bytes(self, content: bytes) -> bytes:
        """Return what rank 0 gave."""
        length = np.array([len(content)])
        self.broadcast(length)
        buffer = np.frombuffer(content, np.uint8) if self.rank == 0 else np.zeros(length, np.uint8)
        array = buffer.copy()
        self.broadcast(array)
        return array.tobytes()

    def gather(self, content: bytes) -> list[bytes]:
        """Return what every rank gave, by rank; each may give another number of bytes."""
        lengths = np.zeros(self.size, np.int64)
        request = self._comm.Iallgather(np.array([len(content)]), lengths)
        Pending(self, request, "gather", lengths).wait()
        joined = np.zeros(lengths.sum(), np.uint8)
        sent = np.frombuffer(content, np.uint8)
        request = self._comm.Iallgatherv(sent, [joined, lengths.tolist()])
        Pending(self, request, "gather", joined).wait()
        ends = np.cumsum(lengths)
        return [
            joined[end - length : end].tobytes() for end, length in zip(ends, lengths, strict=True)
        ]

    def check_left(self, number: int, name: str) -> None:
        """Raise DistributedError if a rank has left before the collective of that number."""
        for rank in range(self.size):
            if rank != self.rank and rank not in self._left and self._farewells.Iprobe(rank):
                self._receive_farewell(rank)
        for rank, count in self._left.items():
            if count < number:
                raise DistributedError(
                    f"{name}: rank {rank} has ended and rank {self.rank} waits for it; every rank "
                    "must take as many steps, and end by an error rather than by sys.exit()"
                )

    def check_late(self, number: int, name: str, waited: float) -> None:
        """Say once, after a minute, that the rank before has not come; raise at the limit."""
        if waited < min(NOTED_AFTER, self._limit):
            return
        before = (self.rank - 1) % self.size
        has_come = self.order.is_kept(number)
        whom = "another rank" if has_come else f"rank {before}, which has not called it"
        text = f"{name}: rank {self.rank} has waited {waited:.0f} seconds for {whom}"
        # A rank that knows which one is missing says so a second before the others.
        if waited >= self._limit + has_come:
            raise DistributedError(f"{text}; TAPETENSOR_WAIT_SECONDS sets how long it waits")
        if not has_come and self._missed_in != number:
            self._missed_in = number
            sys.stderr.write(f"{text} yet; is it at work, or hangs?\n")
            sys.stderr.flush()

    def _receive_farewell(self, rank: int) -> None:
        count = np.zeros(1, np.int64)
        self._farewells.Recv(count, rank)
        self._left[rank] = int(count[0])

    def say_farewell(self) -> None:
        """Tell the others, at the end, in how many collectives this rank took part."""
        others = [rank for rank in range(self.size) if rank != self.rank]
        count = np.array([self.started])
        requests = [self._farewells.Isend(count, rank) for rank in others]
        # Every message is received, as MPI demands; it waits for all ranks in the end anyway.
        for rank in others:
            if rank not in self._left:
                self._receive_farewell(rank)
        for request in requests:
            while not request.Test():
                _let_others_run()

    def _end_all_ranks(
        self, kind: type[BaseException], error: BaseException, trace: TracebackType | None
    ) -> None:
        # MPI may leave by way of exit(), and a farewell would look like an orderly end.
        atexit.unregister(self.say_farewell)
        end_all_ranks(f"rank {self.rank} of {self.size}", kind, error, trace)


def _let_others_run() -> None:
    """Give the core away: if there are more ranks than cores, a rank that is late may need it."""
    if sys.platform != "win32":
        # With time.sleep(0) 4 KiB between two ranks took 100 us on Linux, with this 14.
        os.sched_yield()
    else:
        time.sleep(0)


# A notice has so many bytes: what is called, of how much, and blanks.
_BYTES = 64
# So many notices are kept before it is asked which of them have been sent.
_UNDER_WAY = 64


@final
class Order:
    """Compares what each rank calls with what the one before it calls, in a ring.

    So a difference between any two ranks is found by some rank. A notice is one short message and
    costs a few microseconds. Nothing else may use the communicator.
    """

    def __init__(self, comm: Comm) -> None:
        self._comm = comm
        self._before = (comm.rank - 1) % comm.size
        self._after = (comm.rank + 1) % comm.size
        self._own: deque[bytes] = deque()
        self._compared = 0
        self._received = bytearray(_BYTES)
        self._under_way: list[Request] = []

    def announce(self, name: str, array: Array | None) -> None:
        """Tell the next rank what this one calls, and what array it gives."""
        notice = _notice(name, None) if array is None else _notice(name, array.size, array.dtype)
        self._own.append(notice)
        self._under_way.append(self._comm.Isend(notice, self._after))
        # So short a message is sent at once, so this need not be asked each time.
        if len(self._under_way) >= _UNDER_WAY:
            self._under_way = [one for one in self._under_way if not one.Test()]

    def is_kept(self, number: int) -> bool:
        """Tell whether the rank before has called, and the same, up to its call of that number."""
        while self._compared < number:
            if not self._comm.Iprobe(self._before):
                return False
            self._comm.Recv(self._received, self._before)
            self._compared += 1
            ours = self._own.popleft()
            if self._received != ours:
                theirs = self._received.decode().rstrip()
                raise DistributedError(
                    f"rank {self._comm.rank} calls {ours.decode().rstrip()} where rank "
                    f"{self._before} calls {theirs}; every rank must call the same in the same "
                    "order, also what only rank 0 uses"
                )
        return True


@functools.lru_cache
def _notice(name: str, size: int | None, dtype: object = None) -> bytes:
    text = name if size is None else f"{name} of {size} {dtype}"
    return text.ljust(_BYTES).encode()
