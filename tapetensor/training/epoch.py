"""One epoch: a step for each batch, from the first, or from where a checkpoint was written."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeAlias

from tapetensor.errors import ArgumentTypeError, ArgumentValueError, NumericalInstabilityError
from tapetensor.optim import Optimizer
from tapetensor.optim.schedules import Schedule
from tapetensor.tape import NoneTape, OwnedTape
from tapetensor.tensor import Tensor, Tensor0D
from tapetensor.training.checkpoint import Generators, Position, set_states, states_of
from tapetensor.training.evaluation import Batch, M, Source, check_equal, iterate, rows_of
from tapetensor.training.interruption import Interruption
from tapetensor.training.progress import ProgressBar

if TYPE_CHECKING:
    from tapetensor.distributed import Communicator

Loss: TypeAlias = Callable[[M, Batch], Tensor0D[OwnedTape, Any]]
# A step trains on a batch, and returns the loss before that, times the rows of this rank.
Step: TypeAlias = Callable[[Batch], float]


def step_of(
    model: M,
    optimizer: Optimizer,
    loss_of: Loss[M, Batch],
    clip_norm: float | None,
    is_compiled: bool,
) -> Step[Batch]:
    """Return the step of a process that trains alone."""

    def step(batch: Batch) -> Tensor0D[NoneTape, Any]:
        loss = loss_from(loss_of, model, batch)
        value = loss.detach()
        grads = loss.backward(wrt=optimizer)
        if clip_norm is not None:
            grads.clip_by_global_norm(clip_norm)
        optimizer.step(grads)
        return value

    if is_compiled:
        from tapetensor.compiler import compile  # only if it is asked for

        step = compile(step)
    return lambda batch: rows_of(batch) * step(batch).item()


def loss_from(loss_of: Loss[M, Batch], model: M, batch: Batch) -> Tensor0D[OwnedTape, Any]:
    """Return the loss.

    Raises:
        ArgumentTypeError: if it is no tensor.
    """
    loss: object = loss_of(model, batch)
    if not isinstance(loss, Tensor):
        raise ArgumentTypeError(
            f"fit: loss_of must return the loss, a traced tensor, got {type(loss).__name__}"
        )
    return loss


@dataclass(frozen=True)
class EpochRunner(Generic[Batch]):
    """Runs epochs.

    Args:
        optimizer: its learning rate follows the schedule.
        generators: what batches and model draw from.
        ranks: the ranks, which all take the same steps.
    """

    step: Step[Batch]
    batches: Source[Batch]
    optimizer: Optimizer
    schedule: Schedule | None
    generators: Generators
    ranks: Communicator

    def run(self, position: Position, interruption: Interruption, bar: ProgressBar) -> bool:
        """Run the rest of an epoch; return whether it came to its end.

        Raises:
            NumericalInstabilityError: if a loss is not finite.
            ArgumentValueError: if there are no batches.
            DistributedError: if the ranks have other batches.
        """
        began = time.perf_counter() - position.seconds
        for batch in self._agreed(self._remaining(position)):
            if self.schedule is not None:
                self.optimizer.lr = self.schedule(self.optimizer.steps)
            total, asked = self.ranks.sum(self.step(batch), interruption.asked)
            rows = rows_of(batch)
            if not math.isfinite(total):
                raise NumericalInstabilityError(
                    f"fit: the loss of epoch {len(position.rows) + 1}, batch "
                    f"{position.batches + 1} is {total / rows}; the step was taken, but no "
                    "checkpoint of it. A smaller learning rate, a warm-up or clip_norm may help"
                )
            position.total += total
            position.weight += rows
            position.batches += 1
            position.seconds = time.perf_counter() - began
            bar.step()
            if asked:
                return False
        if position.weight == 0:
            raise ArgumentValueError("fit: there are no batches")
        return True

    def _agreed(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        """Yield batches, each after a check that all ranks have one with as many rows."""
        for batch in batches:
            check_equal("fit", self.ranks, rows_of(batch))
            yield batch
        check_equal("fit", self.ranks, -1)

    def _remaining(self, position: Position) -> Iterator[Batch]:
        """Return the batches that are not done, drawn as they were when the epoch began."""
        if position.batches == 0:
            position.starts = states_of(self.generators)
            return iterate("fit", "batches", self.batches)
        now = states_of(self.generators)
        set_states(self.generators, position.starts)
        batches = iterate("fit", "batches", self.batches)
        for number in range(position.batches):
            if next(batches, None) is None:
                raise ArgumentValueError(
                    f"fit: {position.batches} batches of the epoch are done, and now there are "
                    f"{number}; resume with the batches that the training began with"
                )
        set_states(self.generators, now)
        return batches
