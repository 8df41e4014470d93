"""The state of a training in files, from which it goes on with the same bits.

A training keeps its checkpoint, and its best model.
"""

from __future__ import annotations

import math
import os
import secrets
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tapetensor import io
from tapetensor.arrays.array import Array
from tapetensor.errors import ArgumentValueError, NumericalInstabilityError, StateMismatchError
from tapetensor.nn import Module
from tapetensor.optim import Optimizer
from tapetensor.training.history import EarlyStopping, Row, explained
from tapetensor.training.streams import Streams, is_number


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
        starts: the states of the streams when the epoch began, which its batches are drawn from,
            as ``"streams"``, and as ``"first"`` what tells the first ones from others.
    """

    rows: list[Row] = field(default_factory=list)
    batches: int = 0
    total: float = 0.0
    weight: int = 0
    seconds: float = 0.0
    starts: dict[str, Any] = field(default_factory=dict)
    skipped: int = 0


def refuse_not_finite(optimizer: Optimizer) -> None:
    """Refuse to save a model or an optimizer with a number that is not finite."""
    arrays = {name: tensor._array for name, tensor in optimizer.parameters().items()}
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
    """A file with everything on which the next steps depend: models, the optimizer, streams."""

    def __init__(self, path: Path, parts: dict[str, Any], streams: Streams) -> None:
        self.path = path
        self._streams = streams
        self._parts = parts

    def write(self, position: Position, path: Path | None = None) -> None:
        """Write the file, or another one in its place, as a whole or not at all."""
        states = self._streams.read()
        notes = io.Notes({"parts": list(self._parts), "streams": states, **asdict(position)})
        io.save_checkpoint(path or self.path, training=notes, **self._parts)

    def load(self, count: Callable[[int], int]) -> Position:
        """Load the file into all parts, or into none, and return where it was written.

        Args:
            count: tells how many batches an epoch has, looking no further than for so many.
        """
        notes = io.Notes(None)
        io.load_checkpoint(self.path, training=notes)
        try:
            found = dict(notes.value)
            parts, streams = list(found.pop("parts")), found.pop("streams")
            position = Position(**found)
            pairs = [(parts, list(self._parts)), (list(streams), self._streams.names)]
            unlike = [pair for pair in pairs if pair[0] != pair[1]]
            if not unlike:
                _check_position(position, self._streams)
                self._streams.check(streams)
        except (TypeError, ValueError, KeyError, AttributeError, OverflowError) as error:
            raise self._mismatch(f"training: not written by fit ({error})") from None
        if unlike:
            held, expected = unlike[0]
            raise self._mismatch(
                f"training: it holds {', '.join(map(str, held))}, expected is "
                f"{', '.join(expected)}; a training goes on with as many generators as before, "
                "and with the same models"
            )
        there_are = count(position.batches)
        if position.batches > there_are:
            raise self._mismatch(
                f"training: {position.batches} batches of the epoch are done, and now there are "
                f"{there_are}; resume with the batches that the training began with"
            )
        io.load_checkpoint(self.path, **self._parts)
        self._streams.write(streams)
        return position

    def _mismatch(self, message: str) -> StateMismatchError:
        return StateMismatchError(f"fit: {os.fspath(self.path)}: {message}", [message])


def _check_position(position: Position, streams: Streams) -> None:
    """Raise ValueError if a position is none that a training can have."""
    if not isinstance(position.rows, list):
        raise ValueError(f"rows: {position.rows!r} is no list")
    for row in position.rows:
        if not isinstance(row, dict) or not all(map(is_number, row.values())):
            raise ValueError(f"rows: {row!r} is no row of numbers")
    for name in ("batches", "weight", "skipped"):
        count = getattr(position, name)
        if type(count) is not int or count < 0:
            raise ValueError(f"{name}: {count!r} is no count")
    for name in ("total", "seconds"):
        number = getattr(position, name)
        if not is_number(number) or not math.isfinite(number):
            raise ValueError(f"{name}: {number!r} is no finite number")
    if position.seconds < 0 or position.skipped > position.batches:
        raise ValueError("its seconds or its skipped batches cannot be")
    if position.batches or position.starts:
        streams.check(position.starts["streams"])
        if not all(type(one) in (int, type(None)) for one in position.starts["first"]):
            raise ValueError("starts: what tells the first batches is no number")


_NOTHING_LOST = "nothing was lost: the model in memory has all its steps"
_CHOICE = (
    "resume=True goes on from a checkpoint, overwrite=True begins anew in place of it, and another "
    "path keeps both"
)


class TrainingFiles:
    """The files of a training, and the best state of what is validated, for the end."""

    def __init__(self, file: Checkpoint | None, model: Module, stop: EarlyStopping | None) -> None:
        self._file = file
        self._model = model
        self._stop = stop
        self._best: dict[str, Array] | None = None

    def start(self, resume: bool, overwrite: bool, count: Callable[[int], int]) -> Position:
        """Return where to begin, and make sure that all files can be written."""
        if resume and overwrite:
            raise ArgumentValueError(f"fit: resume and overwrite exclude each other: {_CHOICE}")
        position = Position()
        if self._file is None:
            if resume:
                raise ArgumentValueError("fit: resume needs the path of a checkpoint")
        else:
            file = self._file
            path = file.path
            if path.exists() and not resume and not overwrite:
                raise ArgumentValueError(
                    f"fit: the checkpoint {os.fspath(path)!r} is there already; {_CHOICE}"
                )
            if path.exists() and resume:
                position = file.load(count)
            with explained("the checkpoint", path, f"{_NOTHING_LOST}, and no file has changed"):
                _try_out(path, lambda place: file.write(position, place))
        if self._stop is not None:
            self._start_best(self._stop, position, overwrite)
        return position

    def _start_best(self, stop: EarlyStopping, position: Position, overwrite: bool) -> None:
        is_new = not position.rows and not position.batches
        if stop.best is None:
            if stop.restore and not is_new:
                raise ArgumentValueError(
                    "fit: a training that goes on has its best model in a file only; give "
                    "EarlyStopping(restore=True, best=path)"
                )
            return
        path = Path(stop.best)
        if path.exists() and is_new and not overwrite:
            raise ArgumentValueError(
                f"fit: the best model {os.fspath(path)!r} is there already, of another training; "
                f"{_CHOICE}"
            )
        with explained("the best model", path, f"{_NOTHING_LOST}, and no file has changed"):
            _try_out(path, lambda place: io.save(place, self._model))
        if not position.batches:
            # The training may have ended between the checkpoint of this epoch and its best model.
            self.keep_best(position.rows)

    def save(self, position: Position) -> None:
        """Write the checkpoint, as a whole or not at all."""
        if self._file is None:
            return
        rest = _NOTHING_LOST
        if self._file.path.exists():
            rest += ", and the file is as it was before"
        with explained("the checkpoint", self._file.path, rest):
            self._file.write(position)

    def keep_best(self, rows: list[Row]) -> None:
        """Keep the model if the last epoch is the best."""
        stop = self._stop
        # An earlier part of the training may have had other metrics.
        if stop is None or not rows or stop.watch not in rows[-1]:
            return
        values = [row[stop.watch] for row in rows if stop.watch in row]
        if stop.best_of(values) != len(values) - 1:
            return
        if stop.best is not None:
            rest = f"{_NOTHING_LOST}; the checkpoint, if there is one, has this epoch"
            with explained("the best model", stop.best, rest):
                io.save(stop.best, self._model)
        elif stop.restore:
            self._best = {name: array.copy() for name, array in io.state_dict(self._model).items()}

    def restore(self) -> None:
        """Give the model its best state, if that is wanted."""
        if self._stop is None or not self._stop.restore:
            return
        if self._stop.best is not None:
            io.load(self._stop.best, self._model)
        elif self._best is not None:
            io.load_state_dict(self._model, self._best)


def _try_out(path: Path, write: Callable[[Path], None]) -> None:
    """Find out whether a file can be written, in a file beside it that goes at once."""
    place = path.with_name(f".{secrets.token_hex(8)}{path.suffix}")
    try:
        write(place)
    finally:
        place.unlink(missing_ok=True)
