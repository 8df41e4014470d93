"""A check that all ranks call the same; MPI takes that on trust, and mixes up data or waits."""

from __future__ import annotations

import functools
from collections import deque
from typing import TYPE_CHECKING, final

from tapetensor.arrays.array import Array
from tapetensor.errors import DistributedError

if TYPE_CHECKING:
    from mpi4py.MPI import Comm, Request

# A notice has so many bytes: what is called, of how much, and blanks.
_BYTES = 64
# So many notices are kept before it is asked which of them have been sent.
_UNDER_WAY = 64


@final
class Order:
    """Compares what each rank calls with what the one before it calls, in a ring.

    So a difference between any two ranks is found by some rank. A notice is one short message and
    costs a few microseconds.

    Args:
        comm: a communicator of all ranks that is used for nothing else.
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
        """Tell whether the rank before has called the same, up to its call of that number.

        Raises:
            DistributedError: if it has called something else.
        """
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
