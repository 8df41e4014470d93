"""The start of MPI, where a rank waits for all others, and a process that ends a vain wait.

The start is one call, in which no other thread of Python runs. So what watches it is a small
program, this file, which imports nothing of tapetensor.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import NoReturn

# This variable holds the seconds after which a rank gives up.
LIMIT_VARIABLE = "TAPETENSOR_START_SECONDS"
LIMIT = 600.0

_LAUNCHER_OF_MPICH = "hydra_pmi_proxy"
# Seconds from one look at the others to the next.
_INTERVAL = 0.5
# So many looks in a row have to find that one has ended: one that ended in good order has started
# before, and then this rank has, too, as soon as it gets the core.
_LOOKS = 4


@contextmanager
def watched_start(rank: str, limit: float) -> Iterator[None]:
    """End this process, with a message, if it waits inside for a rank that will not come.

    On Linux and under MPICH that is known of the ranks of the same machine; of others it is taken
    to be so after `limit` seconds.
    """
    local = os.environ.get("MPI_LOCALNRANKS", "0")
    # The executable of a frozen program would start the program once more.
    python = "" if getattr(sys, "frozen", False) else sys.executable or ""
    watcher = None
    # Where no process can be started, MPI may start nevertheless.
    with suppress(OSError):
        # It is isolated, for it shares only the pipe with this process, whose end is that of both.
        watcher = subprocess.Popen(
            [python, "-I", "-S", __file__, rank, str(limit), str(os.getppid()), local],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
        )
    with watcher or nullcontext():
        try:
            yield
        finally:
            if watcher is not None:
                watcher.kill()


def main() -> None:
    """Wait for the end of the start; if it does not come, end the process that began this one."""
    rank, limit, launcher, local = sys.argv[1:]
    begun = os.getppid()
    started = threading.Event()

    def listen() -> None:
        os.read(0, 1)
        started.set()

    threading.Thread(target=listen, daemon=True).start()
    seconds, looks = 0.0, 0
    while not started.wait(_INTERVAL):
        seconds += _INTERVAL
        gone = _gone(launcher, int(local))
        looks = looks + 1 if gone else 0
        if looks == _LOOKS:
            numbers = ", ".join(map(str, gone))
            _end(
                begun,
                rank,
                f"of the {local} ranks of this machine (from 0) number {numbers} has ended before "
                "it started MPI, and this one waits for it; its own error is above, if it had one",
            )
        if seconds >= float(limit):
            _end(
                begun,
                rank,
                f"it has waited {limit} seconds for all ranks to start MPI; set {LIMIT_VARIABLE} "
                "to more where that takes longer",
            )


def _gone(launcher: str, local: int) -> list[int]:
    """Return which of the ranks of this machine have ended, as far as that can be known."""
    try:
        if Path(f"/proc/{launcher}/comm").read_text().strip() != _LAUNCHER_OF_MPICH:
            return []
        left = Path(f"/proc/{launcher}/task/{launcher}/children").read_text().split()
        there = [Path(f"/proc/{process}/environ").read_bytes().split(b"\0") for process in left]
    # There are no such files elsewhere than on Linux, or once a process has ended.
    except OSError:
        return []
    return [
        number
        for number in range(local)
        if not any(f"MPI_LOCALRANKID={number}".encode() in variables for variables in there)
    ]


def _end(process: int, rank: str, reason: str) -> NoReturn:
    sys.stderr.write(f"rank {rank} ends the job: {reason}\n")
    sys.stderr.flush()
    # A launcher that has to end the job may do so before it has passed on what was written.
    time.sleep(0.3)
    os.kill(process, signal.SIGTERM)
    sys.exit(1)


if __name__ == "__main__":
    main()
