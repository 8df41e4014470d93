"""How far a training is, as a file from which it goes on, the same to the bit."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tapetensor import io
from tapetensor.arguments import check_rng
from tapetensor.data import Batches
from tapetensor.errors import NumericalInstabilityError, StateMismatchError
from tapetensor.nn import Module
from tapetensor.optim import Optimizer
from tapetensor.training.disk import explained
from tapetensor.training.history import Row

Generators = Sequence[np.random.Generator]


@dataclass
class Position:
    """How far a training is.

    Attributes:
        rows: the history.
        batches: how many steps of the running epoch are done.
        total: the sum of their losses, each times the rows of its batch.
        weight: the sum of those rows.
        seconds: how long they took.
        starts: the states of the generators when the epoch began, which its batches are drawn from.
    """

    rows: list[Row] = field(default_factory=list)
    batches: int = 0
    total: float = 0.0
    weight: int = 0
    seconds: float = 0.0
    starts: list[Any] = field(default_factory=list)


def check_finite(optimizer: Optimizer) -> None:
    """Refuse to write down a training that a gradient which is not finite has spoilt.

    Raises:
        NumericalInstabilityError: if a parameter or the state of the optimizer is not finite.
    """
    arrays = {name: tensor.array for name, tensor in optimizer.parameters().items()}
    for name, array in {**arrays, **optimizer.state_arrays()}.items():
        if array.dtype.kind == "f" and not np.all(np.isfinite(array)):
            what = "the parameter" if name in arrays else "the state of the optimizer,"
            raise NumericalInstabilityError(
                f"fit: {what} {name!r} is not finite after step {optimizer.steps}, though the loss "
                "was; the checkpoint and the best model are as they were before this epoch. "
                "loss.backward(check_finite=True) names the op; a smaller learning rate or "
                "clip_norm may help"
            )


class Checkpoint:
    """A file with all that the next steps depend on.

    Args:
        path: the file, as `tapetensor.io.save_checkpoint` takes it.
        generators: all that training draws from.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        model: Module,
        optimizer: Optimizer,
        generators: Generators,
    ) -> None:
        self._path = path
        self._parts: dict[str, Any] = {"model": model, "optimizer": optimizer}
        self._parts |= {f"rng{number}": rng for number, rng in enumerate(generators)}

    def exists(self) -> bool:
        """Tell whether there is a file."""
        return Path(self._path).exists()

    def save(self, position: Position) -> None:
        """Write the file, as a whole or not at all.

        Raises:
            OSError: if it cannot be written; the message says what is there nevertheless.
        """
        notes = io.Notes({"parts": list(self._parts), **asdict(position)})
        rest = "nothing was lost: the model in memory has all its steps"
        if self.exists():
            rest += ", and the file is as it was before"
        with explained("the checkpoint", self._path, rest):
            io.save_checkpoint(self._path, training=notes, **self._parts)

    def try_out(self, position: Position) -> None:
        """Find out whether the file can be written, and leave none where none was.

        So a training that fails in its first epoch can be begun again.
        """
        is_new = not self.exists()
        self.save(position)
        if is_new:
            Path(self._path).unlink()

    def load(self) -> Position:
        """Give all parts what the file holds, and return where it was written.

        Raises:
            StateMismatchError: if it does not fit; nothing has changed then.
        """
        notes = io.Notes(None)
        io.load_checkpoint(self._path, training=notes)
        try:
            found = dict(notes.value)
            parts, position = found.pop("parts"), Position(**found)
        except (TypeError, ValueError, KeyError) as error:
            raise self._mismatch(f"training: not written by fit ({error})") from None
        if parts != list(self._parts):
            raise self._mismatch(
                f"training: it holds {', '.join(parts)}, expected is {', '.join(self._parts)}; "
                "a training goes on with as many generators as before"
            )
        io.load_checkpoint(self._path, **self._parts)
        return position

    def _mismatch(self, message: str) -> StateMismatchError:
        return StateMismatchError(f"fit: {os.fspath(self._path)}: {message}", [message])


def found_generators(
    model: Module,
    sources: Sequence[object],
    given: np.random.Generator | Iterable[np.random.Generator] | None,
) -> list[np.random.Generator]:
    """Return the generators of the model, of batches and those that were given, each once.

    Raises:
        ArgumentTypeError: if something else was given.
    """
    modules = [model, *model.modules().values()]
    found: list[object] = [value for module in modules for value in vars(module).values()]
    found += [source.rng for source in sources if isinstance(source, Batches)]
    generators = [one for one in found if isinstance(one, np.random.Generator)]
    extra = () if given is None else given
    for one in extra if isinstance(extra, Iterable) else [extra]:
        check_rng("fit", one)
        generators.append(one)
    return list({id(one): one for one in generators}.values())


def states_of(generators: Generators) -> list[Any]:
    """Return the states of generators, as JSON has them: with lists for arrays."""
    states = [rng.bit_generator.state for rng in generators]
    plain: list[Any] = json.loads(json.dumps(states, default=np.ndarray.tolist))
    return plain


def set_states(generators: Generators, states: Sequence[Any]) -> None:
    """Put generators back into states that they had."""
    for rng, state in zip(generators, states, strict=True):
        rng.bit_generator.state = state
