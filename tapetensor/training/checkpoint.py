"""How far a training is, as a file from which it goes on, the same to the bit."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterable, Sequence
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
        skipped: how many of them were not taken, for a gradient was not finite.
        starts: the states of the generators when the epoch began, which its batches are drawn from.
    """

    rows: list[Row] = field(default_factory=list)
    batches: int = 0
    total: float = 0.0
    weight: int = 0
    seconds: float = 0.0
    starts: list[Any] = field(default_factory=list)
    skipped: int = 0


def refuse_not_finite(optimizer: Optimizer) -> None:
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
                'check_finite="stop" names the op, and within tapetensor.source_lines() its line; '
                "a smaller learning rate or clip_norm may help"
            )


class Checkpoint:
    """A file with all that the next steps depend on.

    Args:
        path: the file, as `tapetensor.io.save_checkpoint` takes it.
        parts: models, the optimizer, and the generators that training draws from, by name.
        generators: the same generators.
    """

    def __init__(self, path: Path, parts: dict[str, Any], generators: Generators) -> None:
        self.path = path
        self._generators = generators
        self._parts = parts | {f"rng{number}": rng for number, rng in enumerate(generators)}

    def at(self, path: Path) -> Checkpoint:
        """Return the same in another place."""
        return Checkpoint(path, self._parts, self._generators)

    def write(self, position: Position) -> None:
        """Write the file, as a whole or not at all."""
        notes = io.Notes({"parts": list(self._parts), **asdict(position)})
        io.save_checkpoint(self.path, training=notes, **self._parts)

    def load(self, count: Callable[[int], int]) -> Position:
        """Give all parts what the file holds, and return where it was written.

        Args:
            count: tells how many batches an epoch has, looking no further than for so many.

        Raises:
            StateMismatchError: if it does not fit; nothing has changed then.
        """
        notes = io.Notes(None)
        io.load_checkpoint(self.path, training=notes)
        try:
            found = dict(notes.value)
            parts, position = list(found.pop("parts")), Position(**found)
            if parts == list(self._parts):
                _check_position(position, self._generators)
        except (TypeError, ValueError, KeyError, AttributeError) as error:
            raise self._mismatch(f"training: not written by fit ({error})") from None
        if parts != list(self._parts):
            raise self._mismatch(
                f"training: it holds {', '.join(map(str, parts))}, expected is "
                f"{', '.join(self._parts)}; a training goes on with as many generators as before, "
                "and with the same models"
            )
        there_are = count(position.batches)
        if position.batches > there_are:
            raise self._mismatch(
                f"training: {position.batches} batches of the epoch are done, and now there are "
                f"{there_are}; resume with the batches that the training began with"
            )
        io.load_checkpoint(self.path, **self._parts)
        return position

    def _mismatch(self, message: str) -> StateMismatchError:
        return StateMismatchError(f"fit: {os.fspath(self.path)}: {message}", [message])


def _check_position(position: Position, generators: Generators) -> None:
    """Raise ValueError if a position is none that a training can have."""
    if not isinstance(position.rows, list):
        raise ValueError(f"rows: {position.rows!r} is no list")
    for row in position.rows:
        if not isinstance(row, dict) or not all(map(_is_number, row.values())):
            raise ValueError(f"rows: {row!r} is no row of numbers")
    for name in ("batches", "weight", "skipped"):
        count = getattr(position, name)
        if type(count) is not int or count < 0:
            raise ValueError(f"{name}: {count!r} is no count")
    for name in ("total", "seconds"):
        number = getattr(position, name)
        if not _is_number(number) or not math.isfinite(number):
            raise ValueError(f"{name}: {number!r} is no finite number")
    if position.seconds < 0 or position.skipped > position.batches:
        raise ValueError("its seconds or its skipped batches cannot be")
    if position.batches:
        for rng, state in zip(generators, position.starts, strict=True):
            kind: Any = type(rng.bit_generator)
            # This raises where a generator does not take the state.
            kind(0).state = state


def _is_number(value: object) -> bool:
    return type(value) in (int, float)


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
