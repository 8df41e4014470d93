"""`Communicator`: which rank this is, and what the ranks of a job do together.

That all ranks have the same model is checked before anything is computed.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import hashlib
import json
import math
from collections.abc import Callable, Sequence
from typing import Any, final, overload

import numpy as np
from typing_extensions import override

from tapetensor import io
from tapetensor.arguments import as_size
from tapetensor.arrays.array import Array
from tapetensor.arrays.libraries import to_numpy
from tapetensor.data.rows import E, Es, G, Gs, Rows, rows_in, rows_taken
from tapetensor.distributed.transport import Transport, check_launcher, load_mpi
from tapetensor.errors import (
    ArgumentTypeError,
    DistributedError,
    MissingDependencyError,
    ShapeError,
)
from tapetensor.io.disk import Source, header_of
from tapetensor.io.files import PathLike
from tapetensor.io.state import Part, read, state_of
from tapetensor.nn import Module
from tapetensor.typing import D, Ds, N


@final
class Communicator:
    """The ranks of a job, as `world` or `alone` returns them.

    Every rank must call the methods that send data (`barrier`, `broadcast`, `mean`, `sum`,
    `on_root`, the checkpoints) in the same order. Ranks that find a difference raise a
    DistributedError.

    Args:
        transport: the connection of the ranks; None for a single one.
    """

    def __init__(self, transport: Transport | None) -> None:
        self.transport = transport

    @property
    def rank(self) -> int:
        """The number of this process, from 0."""
        return 0 if self.transport is None else self.transport.rank

    @property
    def size(self) -> int:
        """The number of processes."""
        return 1 if self.transport is None else self.transport.size

    @property
    def is_root(self) -> bool:
        """Whether this is rank 0, which prints and saves."""
        return self.rank == 0

    def barrier(self) -> None:
        """Wait until every rank has come here.

        Raises:
            DistributedError: if one has ended.
        """
        if self.transport is not None:
            self.transport.barrier()

    def broadcast(self, part: Part) -> None:
        """Give a part of every rank the state that it has on rank 0.

        The state of a model is its parameters and buffers; that of an optimizer, everything that
        `step` changes.

        Args:
            part: a module, an optimizer or a numpy Generator.

        Raises:
            DistributedError: if the ranks' models differ in names, shapes or dtypes, on every rank.
            StateMismatchError: if another part does not fit that of rank 0.
            ArgumentTypeError: if it is none of these.
        """
        state = state_of("broadcast", part)
        if self.transport is None:
            return
        if isinstance(part, Module):
            check_agreement("broadcast", self.transport, part)
        arrays = state.arrays() if self.is_root else {}
        headers = [(name, *header_of(array)) for name, array in arrays.items()]
        sent = json.loads(self.transport.broadcast_bytes(json.dumps(headers).encode()))
        received: dict[str, Array] = {}
        # One after the other, so that rank 0 has no second copy of a large part.
        for name, shape, dtype in sent:
            if self.is_root:
                self.transport.broadcast(np.array(to_numpy(arrays[name]), order="C"))
            else:
                received[name] = np.empty(shape, dtype)
                self.transport.broadcast(received[name])
        if not self.is_root:
            found = {name: header_of(array) for name, array in received.items()}
            source = Source(found, received.__getitem__)
            state.restore(read("broadcast: what rank 0 sent does", {"": (state, source)})[""])

    def mean(self, value: float) -> float:
        """Return the mean of a number, such as a loss, over all ranks."""
        return self.sum(value)[0] / self.size

    def sum(self, *values: float) -> list[float]:
        """Return the sum of each of several numbers over all ranks, by one message."""
        try:
            totals = np.array([float(value) for value in values], np.float64)
        except (TypeError, ValueError, OverflowError) as error:
            raise ArgumentTypeError(f"sum: takes numbers, got {values!r}") from error
        if self.transport is not None:
            self.transport.start_sum(totals, "mean or sum").wait()
        found: list[float] = totals.tolist()
        return found

    @overload
    def shard(self, data: Rows[N, *Ds, D], /) -> Rows[Any, *Ds, D]: ...
    @overload
    def shard(
        self, data: Rows[N, *Ds, D], data2: Rows[N, *Es, E], /
    ) -> tuple[Rows[Any, *Ds, D], Rows[Any, *Es, E]]: ...
    @overload
    def shard(
        self, data: Rows[N, *Ds, D], data2: Rows[N, *Es, E], data3: Rows[N, *Gs, G], /
    ) -> tuple[Rows[Any, *Ds, D], Rows[Any, *Es, E], Rows[Any, *Gs, G]]: ...
    def shard(self, *tensors: Any) -> Any:
        """Return this rank's share of a batch: as many rows for each rank, in the order of ranks.

        Nothing is sent, because every rank has the whole batch, drawn from the same generator.

            for x, labels in data.batches_exact(images, targets, size=128, rng=rng):
                x, labels = ranks.shard(x, labels)

        Shape: ``(N, *Ds) -> (N / ranks, *Ds)``.

        Args:
            tensors: one to three plain tensors with as many rows each; the result is a tensor, or a
                tuple of tensors.

        Raises:
            ShapeError: if the rows do not divide among the ranks, or not all tensors have as many.
            ArgumentTypeError: if an argument is no tensor.
            UntracedTensorError: if a tensor owns a tape.

        >>> import tapetensor as tt
        >>> from tapetensor import distributed
        >>> distributed.alone().shard(tt.arange(4)).shape
        (4,)
        """
        rows = rows_in("shard", tensors)
        if rows % self.size:
            fewer = max(rows - rows % self.size, self.size)
            raise ShapeError(
                f"shard: {rows} rows do not divide among {self.size} ranks; take a batch of "
                f"{fewer} or {fewer + self.size} (data.batches_exact leaves out a short last one)"
            )
        share = rows // self.size
        mine = slice(self.rank * share, (self.rank + 1) * share)
        return rows_taken(tensors, mine)

    def generator(self, seed: int, step: int = 0) -> np.random.Generator:
        """Return a generator for this rank and step: the same in every run, independent of others.

        Use it for numbers that each rank draws for itself (dropout, noise). For initial values and
        the order of data use a generator with the same seed on all ranks.

        Args:
            seed: >= 0, the same on all ranks.
            step: >= 0; a run that is resumed at a step draws the same numbers.

        >>> from tapetensor import distributed
        >>> ranks = distributed.alone()
        >>> ranks.generator(0, step=7).integers(100) == ranks.generator(0, step=7).integers(100)
        np.True_
        """
        entropy, position = (
            as_size("generator", name, value, high=math.inf)
            for name, value in (("seed", seed), ("step", step))
        )
        return np.random.default_rng(
            np.random.SeedSequence(entropy, spawn_key=(self.rank, position))
        )

    def save_checkpoint(self, path: PathLike, /, **parts: Part) -> None:
        """Write several parts to one file on rank 0, as `tapetensor.io.save_checkpoint` does.

        The other ranks wait for the file. All ranks have the same parts, except for the buffers
        that a forward pass changes (running statistics): those of rank 0 are saved.

        Raises:
            DistributedError: on the others, if rank 0 fails, which itself raises what io raises.
        """
        self.on_root("save_checkpoint", lambda: io.save_checkpoint(path, **parts))

    def load_checkpoint(self, path: PathLike, /, **parts: Part) -> None:
        """Load on rank 0 what `save_checkpoint` wrote, and give it to all ranks.

        Raises:
            DistributedError: on the others, if rank 0 fails, which itself raises what io raises.
        """
        self.on_root("load_checkpoint", lambda: io.load_checkpoint(path, **parts))
        for part in parts.values():
            self.broadcast(part)

    def on_root(self, op: str, action: Callable[[], None]) -> None:
        """Run a function on rank 0, such as one that writes a file, while the others wait.

        Raises:
            DistributedError: on the others, if rank 0 fails, which itself raises its own error.
        """
        problem = ""
        try:
            if self.is_root:
                action()
        except BaseException as error:
            problem = f"{type(error).__name__}: {error}"
            raise
        finally:
            if self.transport is not None:
                problem = self.transport.broadcast_bytes(problem.encode()).decode()
        if problem:
            raise DistributedError(f"{op}: rank 0 failed: {problem}")

    @override
    def __repr__(self) -> str:
        """Show which rank this is, of how many."""
        return f"Communicator(rank {self.rank} of {self.size})"


def world(size: int | None = None) -> Communicator:
    """Return all ranks of the job, which ``mpiexec -n`` has started, or one without it.

    The first call starts MPI. From then on an error that nobody catches ends the whole job.

    Args:
        size: how many ranks there must be, >= 1; None for any number.

    Raises:
        MissingDependencyError: if mpi4py or an MPI run time is not installed.
        DistributedError: if there are more or fewer ranks than `size`, or ``mpiexec`` belongs to
            another MPI.
        ArgumentTypeError: if `size` is no integer.
        ArgumentValueError: if it is below 1.
    """
    expected = None if size is None else as_size("world", "size", size, low=1)
    ranks = _world()
    if expected is not None and ranks.size != expected:
        raise DistributedError(
            f"world: {expected} ranks are wanted, {ranks.size} started; run "
            f"mpiexec -n {expected} python ..., with the mpiexec of the MPI that mpi4py uses"
        )
    return ranks


@functools.cache
def _world() -> Communicator:
    ranks = load_mpi()
    if ranks.size == 1:
        check_launcher()
        return Communicator(None)
    transport = Transport(ranks)
    # It has to be said before MPI itself ends, which mpi4py sees to at the very end.
    atexit.register(transport.say_farewell)
    return Communicator(transport)


def leave_unstarted() -> None:
    """Start MPI at the end of a program that has not done so: other ranks may wait for it."""
    if _world.cache_info().currsize:
        return
    # Without mpi4py nobody can be waiting.
    with contextlib.suppress(MissingDependencyError):
        Transport(load_mpi()).say_farewell()


def alone() -> Communicator:
    """Return a communicator of this process alone, for which MPI need not be installed."""
    return Communicator(None)


# How many differences a message lists.
_LISTED = 10


def check_agreement(op: str, transport: Transport, model: Module, *settings: str) -> None:
    """Raise DistributedError on every rank if one has another model or other settings."""
    lines = [*settings, *_described("parameter", model.parameters())]
    lines += _described("buffer", model.buffers())
    text = "\n".join(lines).encode()
    # A few bytes travel where all is well, and the whole text only where it is not.
    if len(set(transport.gather(hashlib.sha256(text).digest()))) == 1:
        return
    texts = [one.decode().split("\n") for one in transport.gather(text)]
    differences = [
        line for rank, other in enumerate(texts) for line in _differences(rank, texts[0], other)
    ]
    listed = "".join([f"\n  {line}" for line in differences[:_LISTED]])
    more = f"\n  and {len(differences) - _LISTED} more" if len(differences) > _LISTED else ""
    raise DistributedError(
        f"{op}: the ranks differ; give each the same model and the same settings:{listed}{more}"
    )


def _described(kind: str, tensors: dict[str, Any]) -> list[str]:
    # Each tensor goes by its first name, so that shared tensors must be the same ones, too.
    first: dict[int, str] = {}
    lines = []
    for name, tensor in tensors.items():
        known = first.setdefault(tensor.id, name)
        shared = "" if known == name else f", the same as {known}"
        lines.append(f"{kind} {name}: shape {tensor.shape}, {tensor.dtype}{shared}")
    return lines


def _differences(rank: int, expected: Sequence[str], found: Sequence[str]) -> list[str]:
    missing = [line for line in expected if line not in set(found)]
    extra = [line for line in found if line not in set(expected)]
    lines = [f"rank 0 alone, not rank {rank}: {line}" for line in missing]
    lines += [f"rank {rank} alone, not rank 0: {line}" for line in extra]
    if not lines and list(expected) != list(found):
        lines.append(f"rank {rank} has them in another order than rank 0")
    return lines
