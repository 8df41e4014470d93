"""Logs of a training: rows as CSV, and for TensorBoard; and a bar that shows how far it is."""

from __future__ import annotations

import contextlib
import csv
import importlib
import importlib.util
import os
import sys
import time
from collections.abc import Sequence
from typing import IO, Any, Protocol, final

from tapetensor.arguments import check_path
from tapetensor.extras import import_extra
from tapetensor.training.history import Row, described, explained

_STAYS = "the training until here is in the last checkpoint, if there is one"


class Log(Protocol):
    """A log of the numbers of every epoch. A log of your own has these three methods."""

    def start(self, columns: Sequence[str], rows: Sequence[Row]) -> None:
        """Begin a log.

        Args:
            columns: the names of the numbers that each row will hold.
            rows: the rows of the epochs before, where a training goes on.
        """

    def write(self, row: Row) -> None:
        """Write the numbers of one epoch."""

    def close(self) -> None:
        """End the log, also after an error."""


@final
class CsvLog:
    """A table of comma-separated values; the row of an epoch is on the disk as soon as it ends.

    An existing file is replaced. If a training is resumed, the table begins with its earlier rows.
    So it is always the table of one training.

    Args:
        path: the file, also as an attribute.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        check_path("CsvLog", "path", path)
        self.path = path
        self._file: IO[str] | None = None
        self._writer: csv.DictWriter[str] | None = None

    def start(self, columns: Sequence[str], rows: Sequence[Row]) -> None:
        """Write the names of the columns, and the rows until now."""
        # An earlier part of the training may have had other metrics.
        names = list(dict.fromkeys([*columns, *[name for row in rows for name in row]]))
        with explained("the log", self.path, _STAYS):
            self._file = open(self.path, "w", newline="", encoding="utf-8")  # noqa: SIM115
            self._writer = csv.DictWriter(self._file, names)
            self._writer.writeheader()
            self._file.flush()
        for row in rows:
            self.write(row)

    def write(self, row: Row) -> None:
        """Write a row."""
        if self._file is not None and self._writer is not None:
            with explained("the log", self.path, _STAYS):
                self._writer.writerow(row)
                self._file.flush()

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            # Every row was flushed; what a full disk did not take, it does not take now.
            with contextlib.suppress(OSError):
                self._file.close()
            self._file = None


@final
class TensorBoardLog:
    """Scalars for TensorBoard, over the steps of the optimizer, by the writer of tensorboardX.

    Args:
        folder: where the files of this run go; ``tensorboard --logdir`` takes the folder above it
            to show several runs.

    Raises:
        MissingDependencyError: if tensorboardX is not installed.
        ArgumentTypeError: if `folder` is no path.
        ArgumentValueError: if `folder` is empty.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        check_path("TensorBoardLog", "folder", folder)
        self._folder = folder
        # It is imported here, so that it is missed before a training rather than in it.
        self._library = import_extra("tensorboardX", "Logs for TensorBoard", "training")
        self._writer: Any = None

    def start(self, columns: Sequence[str], rows: Sequence[Row]) -> None:
        """Open a file of events; in a run that goes on, those after its checkpoint become void."""
        later = int(rows[-1]["steps"]) + 1 if rows else None
        with explained("the log", self._folder, _STAYS):
            # Two files of one second would have one name, and only the second one would be left.
            suffix = f".{time.time_ns()}"
            self._writer = self._library.SummaryWriter(
                os.fspath(self._folder), purge_step=later, filename_suffix=suffix
            )

    def write(self, row: Row) -> None:
        """Write every number of a row but those that count epochs and steps."""
        for name, value in row.items():
            if name not in ("epoch", "steps"):
                self._writer.add_scalar(name, value, int(row["steps"]))
        with explained("the log", self._folder, _STAYS):
            self._writer.flush()

    def close(self) -> None:
        """Close the file, which waits until all is written.

        Raises:
            OSError: if that fails.
        """
        writer, self._writer = self._writer, None
        if writer is not None:
            with explained("the log", self._folder, _STAYS):
                writer.close()


class _Cell:
    """A stream of which a notebook shows the last line, in one place of the output of a cell.

    A bar that is drawn over and over is one line then, also in the pages that nbconvert makes.
    """

    encoding = "utf-8"

    def __init__(self) -> None:
        display = importlib.import_module("IPython.display").display
        self._place: Any = display({"text/plain": ""}, raw=True, display_id=True)
        self._line = ""

    def write(self, text: str) -> None:
        """Take note of the line that is being drawn."""
        self._line = text.replace("\r", "").strip("\n") or self._line

    def flush(self) -> None:
        """Show it in place of the one before."""
        self._place.update({"text/plain": self._line}, raw=True)


class ProgressBar:
    """One bar over all steps, by tqdm, in a notebook or on the error stream.

    If nobody says whether it is wanted, it is in a notebook and on a terminal, which gets a line
    for each epoch if tqdm is not installed.
    """

    def __init__(self, wanted: bool | None, epochs: int, per_epoch: int | None, done: int) -> None:
        self._epochs = epochs
        self._number = 0
        self._bar: Any = None
        self._writes_lines = False
        # An error stream may be None, or anything that can be written to.
        is_terminal = getattr(sys.stderr, "isatty", lambda: False)()
        is_watched = "ipykernel" in sys.modules or is_terminal
        if wanted is False or (wanted is None and not is_watched):
            return
        if wanted is None and importlib.util.find_spec("tqdm") is None:
            self._writes_lines = True
            return
        library = import_extra("tqdm", "Progress bars", "training")
        # tqdm draws in ASCII where the stream has no Unicode.
        self._bar = library.tqdm(
            total=None if per_epoch is None else epochs * per_epoch,
            initial=done,
            unit="step",
            file=_Cell() if "ipykernel" in sys.modules else sys.stderr,
        )

    def epoch(self, number: int) -> None:
        """Say which epoch begins."""
        self._number = number
        if self._bar is not None:
            self._bar.set_description_str(f"epoch {number}/{self._epochs}")

    def step(self) -> None:
        """Go one step on."""
        if self._bar is not None:
            self._bar.update(1)

    def row(self, row: Row) -> None:
        """Show the numbers of the epoch that ended."""
        # The names of metrics may hold characters that the stream cannot write.
        encoding = getattr(sys.stderr, "encoding", None) or "ascii"
        text = described(row).encode(encoding, "replace").decode(encoding)
        if self._bar is not None:
            self._bar.set_postfix_str(text)
        elif self._writes_lines:
            print(f"epoch {self._number}/{self._epochs}: {text}", file=sys.stderr)

    def close(self) -> None:
        """Leave the bar as it is."""
        if self._bar is not None:
            self._bar.close()
