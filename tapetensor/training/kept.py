"""The files of a training: its checkpoint, and its best model."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from pathlib import Path

from tapetensor import io
from tapetensor.arrays.array import Array
from tapetensor.errors import ArgumentValueError
from tapetensor.nn import Module
from tapetensor.training.checkpoint import Checkpoint, Position
from tapetensor.training.disk import explained
from tapetensor.training.history import Row
from tapetensor.training.stopping import EarlyStopping

_NOTHING_LOST = "nothing was lost: the model in memory has all its steps"
_CHOICE = (
    "resume=True goes on from a checkpoint, overwrite=True begins anew in place of it, and another "
    "path keeps both"
)


class Kept:
    """The files of a training, and the best model if it is to be restored at the end.

    Args:
        file: the checkpoint, if there is one.
        model: the validated model, whose best state is kept.
        stop: decides which state is the best, and has the path of its file.
    """

    def __init__(self, file: Checkpoint | None, model: Module, stop: EarlyStopping | None) -> None:
        self._file = file
        self._model = model
        self._stop = stop
        self._best: dict[str, Array] | None = None

    def start(self, resume: bool, overwrite: bool, count: Callable[[int], int]) -> Position:
        """Return the position to begin at, and make sure that all files can be written.

        Raises:
            ArgumentValueError: if there are files, and it was not said what becomes of them.
            StateMismatchError: if the checkpoint does not fit.
            OSError: if a file cannot be written.
        """
        if resume and overwrite:
            raise ArgumentValueError(f"fit: resume and overwrite exclude each other: {_CHOICE}")
        position = Position()
        if self._file is None:
            if resume:
                raise ArgumentValueError("fit: resume needs the path of a checkpoint")
        else:
            path = self._file.path
            if path.exists() and not resume and not overwrite:
                raise ArgumentValueError(
                    f"fit: the checkpoint {os.fspath(path)!r} is there already; {_CHOICE}"
                )
            if path.exists() and resume:
                position = self._file.load(count)
            with explained("the checkpoint", path, f"{_NOTHING_LOST}, and no file has changed"):
                _try_out(path, lambda place: self._file_at(place).write(position))
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

    def _file_at(self, place: Path) -> Checkpoint:
        assert self._file is not None
        return self._file.at(place)

    def save(self, position: Position) -> None:
        """Write the checkpoint, as a whole or not at all.

        Raises:
            OSError: if it cannot be written; the message says what is there nevertheless.
        """
        if self._file is None:
            return
        rest = _NOTHING_LOST
        if self._file.path.exists():
            rest += ", and the file is as it was before"
        with explained("the checkpoint", self._file.path, rest):
            self._file.write(position)

    def keep_best(self, rows: list[Row]) -> None:
        """Keep the model if the last epoch is the best.

        Raises:
            OSError: if the file cannot be written; the message says what is there nevertheless.
        """
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
        """Give the model its best state, if `stop` asks for it."""
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
