"""A bar that shows how far a training is."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from typing import Any

from tapetensor.extras import import_extra
from tapetensor.training.history import Row, described


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

    Args:
        wanted: whether to show it; None means in a notebook, and if stderr is a terminal, which
            gets a line for each epoch if tqdm is not installed.
        epochs: how many there are.
        per_epoch: how many steps they have, if that is known.
        done: how many steps there were before.

    Raises:
        MissingDependencyError: if it is wanted and tqdm is not installed.
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
