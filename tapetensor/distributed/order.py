"""Whether all ranks call the same, which MPI takes on trust: else it mixes up data, or waits."""

from __future__ import annotations

from collections import deque
from typing import final

import numpy as np

from tapetensor.distributed.mpi import Comm, Request
from tapetensor.errors import DistributedError

# A notice: what is called, of how much, and blanks.
_BYTES = 64


@final
class Order:
    """Compares what each rank calls with what the one before it calls, in a ring.

    So a difference between any two ranks is found by some rank. A notice is one short message and
    costs a few microseconds.

    Args:
        comm: of all ranks, for nothing else.
    """

    def __init__(self, comm: Comm) -> None:
        self._comm = comm
        self._before = (comm.rank - 1) % comm.size
        self._after = (comm.rank + 1) % comm.size
        self._own: deque[str] = deque()
        self._compared = 0
        self._under_way: list[Request] = []

    def announce(self, what: str) -> None:
        """Tell the next rank what this one calls."""
        self._own.append(what)
        notice = np.frombuffer(what.ljust(_BYTES).encode(), np.uint8)
        self._under_way = [one for one in self._under_way if not one.Test()]
        self._under_way.append(self._comm.Isend(notice, self._after))

    def is_kept(self, number: int) -> bool:
        """Tell whether the rank before has called the same, up to its call of that number.

        Raises:
            DistributedError: if it has called something else.
        """
        while self._compared < number:
            if not self._comm.Iprobe(self._before):
                return False
            notice = np.zeros(_BYTES, np.uint8)
            self._comm.Recv(notice, self._before)
            self._compared += 1
            theirs, ours = notice.tobytes().decode().rstrip(), self._own.popleft()
            if theirs != ours:
                raise DistributedError(
                    f"rank {self._comm.rank} calls {ours} where rank {self._before} calls {theirs};"
                    " every rank must call the same in the same order, also what only rank 0 uses"
                )
        return True
