"""Training on many ranks: the share of each, and how they stay alike."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from tapetensor.arguments import check_kind
from tapetensor.data.rows import rows_taken
from tapetensor.errors import ArgumentTypeError, ShapeError
from tapetensor.io.parts import Part
from tapetensor.nn import Module
from tapetensor.optim import Optimizer
from tapetensor.tape import NoneTape
from tapetensor.tape.gradients import Gradients
from tapetensor.tensor import Tensor, Tensor0D, full
from tapetensor.tensor.base import check_plain
from tapetensor.training.epoch import Finite, Loss, Step, Unused, loss_from
from tapetensor.training.evaluation import Batch, M, rows_of
from tapetensor.training.streams import Streams

if TYPE_CHECKING:
    from tapetensor.distributed import Communicator


def communicator_of(ranks: Communicator | None) -> Communicator:
    """Return the ranks, or this process alone if there are none."""
    from tapetensor.distributed import Communicator, alone  # imports the compiler

    if ranks is None:
        return alone()
    words = "what distributed.world() or distributed.alone() returned"
    check_kind("fit", "ranks", ranks, Communicator, words)
    return ranks


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
