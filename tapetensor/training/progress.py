"""A bar that shows how far a training is."""

from __future__ import annotations

import importlib.util
import sys
from typing import Any

from tapetensor.extras import import_extra
from tapetensor.training.history import Row, described


class ProgressBar:
    """One bar over all steps, by tqdm, on the error stream.

    Args:
        wanted: whether to show it; None means if tqdm is installed and stderr is a terminal.
        epochs: how many there are.
        per_epoch: how many steps they have, if that is known.
        done: how many steps there were before.

    Raises:
        MissingDependencyError: if it is wanted and tqdm is not installed.
    """

    def __init__(self, wanted: bool | None, epochs: int, per_epoch: int | None, done: int) -> None:
        self._epochs = epochs
        self._bar: Any = None
        if wanted is False or (wanted is None and importlib.util.find_spec("tqdm") is None):
            return
        library = import_extra("tqdm", "Progress bars", "training")
        # tqdm draws in ASCII where the stream has no Unicode.
        self._bar = library.tqdm(
            total=None if per_epoch is None else epochs * per_epoch,
            initial=done,
            unit="step",
            file=sys.stderr,
            disable=None if wanted is None else False,
        )

    def epoch(self, number: int) -> None:
        """Say which epoch begins."""
        if self._bar is not None:
            self._bar.set_description_str(f"epoch {number}/{self._epochs}")

    def step(self) -> None:
        """Go one step on."""
        if self._bar is not None:
            self._bar.update(1)

    def row(self, row: Row) -> None:
        """Show the numbers of the epoch that ended."""
        if self._bar is not None:
            # The names of metrics may hold characters that the stream cannot write.
            encoding = getattr(sys.stderr, "encoding", None) or "ascii"
            text = described(row).encode(encoding, "replace").decode(encoding)
            self._bar.set_postfix_str(text)

    def close(self) -> None:
        """Leave the bar as it is."""
        if self._bar is not None:
            self._bar.close()
