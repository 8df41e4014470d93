"""One epoch: a step for each batch, from the first, or from where a checkpoint was written.

Of many ranks each takes its share of a batch, and they stay alike.

Ctrl-C and SIGTERM are requests: the running step ends, and then the training.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import islice, zip_longest
from typing import TYPE_CHECKING, Any, Generic, Literal, Self, TypeAlias

import numpy as np
from typing_extensions import override

from tapetensor.data.rows import rows_taken
from tapetensor.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    NumericalInstabilityError,
    ShapeError,
)
from tapetensor.io.state import Part
from tapetensor.nn import Module
from tapetensor.optim import Optimizer, exponential_moving_average
from tapetensor.optim.schedules import Schedule
from tapetensor.tape import NoneTape, OwnedTape
from tapetensor.tape.gradients import Gradients
from tapetensor.tensor import Tensor, Tensor0D, full
from tapetensor.tensor.base import check_plain
from tapetensor.training.checkpoint import Position
from tapetensor.training.evaluation import Batch, M, Source, check_equal, iterate, rows_of
from tapetensor.training.logs import ProgressBar
from tapetensor.training.streams import Streams, print_of

if TYPE_CHECKING:
    from tapetensor.distributed import Communicator


Loss: TypeAlias = Callable[[M, Batch], Tensor0D[OwnedTape, Any]]
# A step trains on a batch, and returns the loss before that, times the rows of this rank; NaN if it
# was skipped.
Step: TypeAlias = Callable[[Batch], float]
# What is done where a loss or a gradient is not finite; None finds it out at the end of the epoch.
Finite: TypeAlias = Literal["stop", "skip"] | None
# So many batches of an epoch are compared with those that are drawn anew; the first may be the same
# by chance.
_KNOWN = 2
# What is done with parameters without a gradient.
Unused: TypeAlias = Literal["error", "skip"]


def step_of(
    model: M,
    optimizer: Optimizer,
    loss_of: Loss[M, Batch],
    clip_norm: float | None,
    is_compiled: bool,
    check_finite: Finite,
    unused: Unused,
) -> Step[Batch]:
    """Return the step of a process that trains alone."""

    def step(batch: Batch) -> Tensor0D[NoneTape, Any]:
        loss = loss_from(loss_of, model, batch)
        value = loss.detach()
        grads = loss.backward(wrt=optimizer, check_finite=check_finite == "stop")
        if check_finite == "skip":
            is_finite = math.isfinite(value.item()) and math.isfinite(grads.global_norm())
            if not is_finite:
                return full((), math.nan, value.dtype.type)
        if clip_norm is not None:
            grads.clip_by_global_norm(clip_norm)
        optimizer.step(grads, unused=unused)
        return value

    if is_compiled:
        from tapetensor.compiler import compile  # only if it is asked for

        step = compile(step)
    return lambda batch: rows_of(batch) * step(batch).item()


def averaging(step: Step[Batch], average: M, model: M, decay: float) -> Step[Batch]:
    """Return the step, after which a moving average follows the model."""

    def both(batch: Batch) -> float:
        loss = step(batch)
        exponential_moving_average(average, model, decay)
        return loss

    return both


def loss_from(loss_of: Loss[M, Batch], model: M, batch: Batch) -> Tensor0D[OwnedTape, Any]:
    """Return the loss; refuse what is no tensor."""
    loss: object = loss_of(model, batch)
    if not isinstance(loss, Tensor):
        raise ArgumentTypeError(
            f"fit: loss_of must return the loss, a traced tensor, got {type(loss).__name__}"
        )
    return loss


def step_of_ranks(
    model: M,
    optimizer: Optimizer,
    loss_of: Loss[M, Batch],
    clip_norm: float | None,
    is_compiled: bool,
    streams: Streams,
    ranks: Communicator,
    check_finite: Finite,
    unused: Unused,
) -> Step[Batch]:
    """Return the step of one of many ranks, on its share of a batch.

    A share counts by its rows. So the gradients are those of the whole batch, also where that does
    not divide among the ranks; a rank for which no row is left takes part with nothing.
    """
    from tapetensor.compiler import compile
    from tapetensor.distributed import Reducer

    reducer = Reducer(model, ranks, op="sum")

    def gradients(share: Batch, weight: float) -> tuple[Tensor0D[NoneTape, Any], Gradients]:
        loss = loss_from(loss_of, model, share)
        value = loss.detach()
        cotangent = full((), weight, loss.dtype.type)
        grads = loss.backward(cotangent, wrt=optimizer, check_finite=check_finite == "stop")
        return value, grads

    compiled = compile(gradients)

    def reduced(share: Batch, weight: float) -> tuple[float, Gradients]:
        if weight == 0:
            return 0.0, reducer.all_reduce(Gradients())
        if is_compiled or check_finite == "stop":
            value, grads = (compiled if is_compiled else gradients)(share, weight)
            return value.item(), reducer.all_reduce(grads)
        loss = loss_from(loss_of, model, share)
        value = loss.detach()
        return value.item(), reducer.backward(loss, full((), weight, loss.dtype.type))

    def step(batch: Batch) -> float:
        share, count = share_of(batch, ranks)
        with streams.of_rank(ranks.rank, optimizer.steps):
            loss, grads = reduced(share, count / rows_of(batch))
        if check_finite == "skip":
            # The gradients are the same on all ranks, and the losses are not.
            (spoilt,) = ranks.sum(not math.isfinite(loss))
            if spoilt or not math.isfinite(grads.global_norm()):
                return math.nan
        if clip_norm is not None:
            # Frozen parameters have gradients too, for the `Reducer` is one of the whole model.
            grads.retain_leafs(optimizer.parameters().values())
            grads.clip_by_global_norm(clip_norm)
        optimizer.step(grads, unused=unused)
        return count * loss

    return step


def share_of(batch: Batch, ranks: Communicator) -> tuple[Batch, int]:
    """Return this rank's rows of a batch, in the order of ranks, and how many there are."""
    rows = rows_of(batch)
    start, end = (rows * rank // ranks.size for rank in (ranks.rank, ranks.rank + 1))

    def cut(value: Any) -> Any:
        if isinstance(value, tuple):
            parts = [cut(part) for part in value]
            return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
        if not _has_rows(value):
            return value
        if len(value) != rows:
            raise ShapeError(
                f"fit: the parts of a batch need as many rows each to be divided among ranks, got "
                f"{rows} and {len(value)}"
            )
        if not isinstance(value, Tensor):
            return value[start:end]
        check_plain("fit", "a batch", value, "trace what comes out instead")
        return rows_taken((value,), slice(start, end))

    first: Any = batch
    while isinstance(first, tuple) and first:
        first = first[0]
    if not _has_rows(first) or isinstance(first, np.ndarray):
        raise ArgumentTypeError(
            "fit: many ranks divide a batch by its rows; it must be a tensor, a list of items or a "
            f"tuple that begins with one of these, got {type(first).__name__}"
        )
    share: Batch = cut(batch)
    return share, end - start


def _has_rows(value: object) -> bool:
    return isinstance(value, list) or (
        isinstance(value, Tensor | np.ndarray) and len(value.shape) > 0
    )


@dataclass(frozen=True)
class EpochRunner(Generic[Batch]):
    """Runs epochs; all ranks take the same steps.

    Args:
        is_resumable: whether the first batches of an epoch are to be known again.
    """

    step: Step[Batch]
    batches: Source[Batch]
    optimizer: Optimizer
    schedule: Schedule | None
    streams: Streams
    ranks: Communicator
    check_finite: Finite
    is_resumable: bool

    def run(self, position: Position, interruption: Interruption, bar: ProgressBar) -> bool:
        """Run the rest of an epoch; return whether it came to its end."""
        began = time.perf_counter() - position.seconds
        for batch in self._agreed(self._remaining(position)):
            if self.schedule is not None:
                self.optimizer.lr = self.schedule(self.optimizer.steps)
            own = self.step(batch)
            total, asked = self.ranks.sum(own, interruption.asked)
            rows = rows_of(batch)
            position.batches += 1
            if math.isfinite(total):
                position.total += total
                position.weight += rows
            elif self.check_finite == "skip":
                position.skipped += 1
            else:
                raise self._not_finite(position, own, total / rows)
            position.seconds = time.perf_counter() - began
            bar.step()
            if asked:
                return False
        if position.skipped == position.batches > 0:
            raise NumericalInstabilityError(
                f"fit: of none of the {position.batches} batches of epoch {len(position.rows) + 1} "
                "are loss and gradients finite, so no step was taken"
            )
        if position.weight == 0:
            raise ArgumentValueError("fit: there are no batches")
        return True

    def _not_finite(self, position: Position, own: float, loss: float) -> NumericalInstabilityError:
        where = ""
        if self.ranks.size > 1:
            flags = [0.0] * self.ranks.size
            flags[self.ranks.rank] = float(not math.isfinite(own))
            named = [str(rank) for rank, flag in enumerate(self.ranks.sum(*flags)) if flag]
            where = f", on rank {', '.join(named)}"
        return NumericalInstabilityError(
            f"fit: the loss of epoch {len(position.rows) + 1}, batch {position.batches} is {loss}"
            f'{where}; the step was taken, but no checkpoint of it. check_finite="stop" names the '
            'op whose gradient is not finite before, check_finite="skip" takes no such step; a '
            "smaller learning rate, a warm-up or clip_norm may help"
        )

    def _agreed(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        """Yield batches, each after a check that all ranks have one with as many rows."""
        for batch in batches:
            check_equal("fit", self.ranks, rows_of(batch))
            yield batch
        check_equal("fit", self.ranks, -1)

    def _remaining(self, position: Position) -> Iterator[Batch]:
        """Return the batches that are not done, drawn as they were when the epoch began."""
        if position.batches == 0:
            position.starts = {"streams": self.streams.read(), "first": []}
            return self._noted(position)
        now = self.streams.read()
        self.streams.write(position.starts["streams"])
        batches, drawn = iterate("fit", "batches", self.batches), list[Batch]()
        for number in range(position.batches):
            batch = next(batches, None)
            if batch is None:
                raise ArgumentValueError(
                    f"fit: {position.batches} batches of the epoch are done, and now there are "
                    f"{number}; resume with the batches that the training began with"
                )
            if number < _KNOWN:
                drawn.append(batch)
        _tell_of_others(drawn, position)
        self.streams.write(now)
        return batches

    def _noted(self, position: Position) -> Iterator[Batch]:
        """Yield the batches of an epoch, of which the first are known again by their numbers."""
        for number, batch in enumerate(iterate("fit", "batches", self.batches)):
            if number < _KNOWN and self.is_resumable:
                position.starts["first"].append(print_of(batch))
            yield batch

    def compare(self, position: Position) -> None:
        """Warn if the last epoch of a training that goes on would now have other batches."""
        if position.batches == 0 and position.starts.get("first"):
            now = self.streams.read()
            self.streams.write(position.starts["streams"])
            drawn = islice(iterate("fit", "batches", self.batches), _KNOWN)
            _tell_of_others(list(drawn), position)
            self.streams.write(now)


def _tell_of_others(drawn: Sequence[object], position: Position) -> None:
    known: list[int | None] = position.starts["first"]
    # Those that hold what has no numbers are not compared.
    pairs = zip_longest(known, drawn) if position.batches == 0 else zip(known, drawn, strict=False)
    if any(first is not None and print_of(batch) != first for first, batch in pairs):
        warnings.warn(
            "fit: the batches are not those that this training had before: epoch "
            f"{len(position.rows) + (position.batches > 0)} would now begin with others. "
            "There are other data, or batches depend on a generator (give it as rng=) or a place "
            "that is out of sight",
            RuntimeWarning,
            stacklevel=4,
        )


def count_batches(batches: Source[Batch], streams: Streams, most: int) -> int:
    """Return how many batches an epoch has, looking no further than for `most` of them.

    Those whose number nobody knows have to come for that; the streams stay where they are.
    """
    known = len(batches) if isinstance(batches, Sized) else None
    if known is not None or most == 0:
        return known or 0
    states = streams.read()
    found = sum(1 for _ in islice(iterate("fit", "batches", batches), most))
    streams.write(states)
    return found


_SAID = b"\nfit: ends after this step; Ctrl-C once more ends at once, without a checkpoint\n"


class Interruption(AbstractContextManager["Interruption"]):
    """Takes note of a first Ctrl-C or SIGTERM inside; a second one does what it ever does.

    Schedulers of clusters send SIGTERM. Only the main thread gets signals, and a handler that the
    program has set itself stays in charge.

    Attributes:
        asked: whether there was one.
    """

    def __init__(self) -> None:
        self.asked = False
        self._before: dict[int, Any] = {}

    @override
    def __enter__(self) -> Self:
        usual = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
        if threading.current_thread() is threading.main_thread():
            for number, handler in usual.items():
                if signal.getsignal(number) is handler:
                    self._before[number] = signal.signal(number, self._note)
        return self

    @override
    def __exit__(self, *_: object) -> None:
        while self._before:
            signal.signal(*self._before.popitem())

    def _note(self, number: int, frame: Any) -> None:
        if self.asked:
            self.__exit__()
            signal.raise_signal(number)
        self.asked = True
        # A call of print may be what was interrupted, so this writes by itself.
        with contextlib.suppress(OSError, ValueError):
            os.write(sys.__stderr__.fileno() if sys.__stderr__ else 2, _SAID)


def check_same_start(
    ranks: Communicator, model: Module, streams: Streams, settings: dict[str, object]
) -> None:
    """Raise DistributedError on every rank if not all begin the same training."""
    if ranks.transport is not None:
        from tapetensor.distributed.communicator import check_agreement

        lines = [f"fit's {name}: {value}" for name, value in settings.items()]
        check_agreement("fit", ranks.transport, model, f"generators: {streams.kinds}", *lines)


def settings_of(optimizer: Optimizer) -> str:
    """Return the kind of an optimizer and its numbers, which are to be the same on all ranks."""
    kinds = (int, float, str, tuple, type(None))
    told = [f"{name.lstrip('_')}={value!r}" for name, value in vars(optimizer).items()
            if isinstance(value, kinds) and name not in ("_op", "_lr")]  # fmt: skip
    return f"{type(optimizer).__name__}({', '.join(told)})"


def make_alike(ranks: Communicator, parts: Iterable[Part]) -> None:
    """Give every rank what rank 0 has."""
    if ranks.size > 1:
        for part in parts:
            ranks.broadcast(part)


def make_streams_alike(ranks: Communicator, streams: Streams, *, is_start: bool) -> None:
    """Give every rank the generators of rank 0, and at the start the numbers that count, too."""
    if ranks.size > 1:
        states = streams.read()
        if not is_start:
            # What a rank counts is its own.
            del states["numbers"]
        streams.write(from_root(ranks, states))


def from_root(ranks: Communicator, value: dict[str, Any]) -> dict[str, Any]:
    """Return, on every rank, the numbers and lists that rank 0 has."""
    if ranks.transport is None:
        return value
    sent = ranks.transport.broadcast_bytes(json.dumps(value).encode())
    found: dict[str, Any] = json.loads(sent)
    return found
