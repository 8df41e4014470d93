"""The numbers of a training, epoch by epoch, and when they are reason to stop.

Early stopping is a function of the history, so that it needs no state of its own.
"""

from __future__ import annotations

import errno
import importlib.util
import io
import math
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal, TypeAlias, final

from typing_extensions import override

from tapetensor.arguments import as_flag, as_number, as_size, check_choice, check_kind, check_path
from tapetensor.errors import ArgumentValueError
from tapetensor.extras import import_extra
from tapetensor.pictures import table

if TYPE_CHECKING:
    from matplotlib.figure import Figure


# The numbers of an epoch, by column.
Row: TypeAlias = dict[str, float]
Ended: TypeAlias = Literal["epochs", "early stopping", "interrupted"]

# `fit` writes these down for every epoch; the metrics follow.
COLUMNS = ("epoch", "steps", "lr", "seconds", "loss")
# And, where steps may be skipped, how many of them were.
SKIPPED = "skipped"
_NOT_DRAWN = {"epoch", "steps", "seconds"}


@final
class History:
    """The numbers of every epoch: ``history["loss"]`` is a list, one number for each.

    Iterating over a history gives its rows, so ``pandas.DataFrame(history)`` has its columns. In a
    notebook it shows its curves and its numbers.

    Attributes:
        rows: for each epoch its number from 1, the steps of the optimizer until its end, the last
            learning rate, the seconds that it took, the mean loss and the metrics after it.
        ended: why there are no more epochs.
    """

    def __init__(self, rows: Sequence[Row] = ()) -> None:
        check_kind("History", "rows", rows, Iterable, "a list of dicts")
        self.rows = list(rows)
        for row in self.rows:
            check_kind("History", "a row", row, dict, "a dict of numbers by column")
        self.ended: Ended = "epochs"

    @property
    def columns(self) -> list[str]:
        """The names of the numbers."""
        return list(dict.fromkeys(name for row in self.rows for name in row))

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __getitem__(self, column: str) -> list[float]:
        if column not in self.columns:
            raise ArgumentValueError(
                f"History: no column {column!r}; there are {', '.join(self.columns) or 'none'}"
            )
        return [row.get(column, math.nan) for row in self.rows]

    def plot(self, path: str | os.PathLike[str] | None = None) -> Figure:
        """Draw loss, metrics and learning rate over the epochs; no display is needed.

        A rate that is the same in all epochs is left out.

        Args:
            path: the file of the picture. Its suffix is the format, such as ``.png`` or ``.svg``.

        Returns:
            The figure, to go on with; a notebook shows it, whatever it does with matplotlib.

        Raises:
            MissingDependencyError: if matplotlib is not installed.
            ArgumentValueError: if there are no epochs yet.
            OSError: if the file cannot be written.
        """
        drawn = [name for name in self.columns if name not in _NOT_DRAWN]
        if "lr" in drawn and len(set(self["lr"])) == 1 < len(drawn):
            drawn.remove("lr")
        if not drawn:
            raise ArgumentValueError("History.plot: there are no epochs yet")
        # This avoids pyplot, which asks for a display and keeps every figure.
        module = import_extra("matplotlib.figure", "Pictures of a history", "training")
        wide = min(3, len(drawn))
        high = -(-len(drawn) // wide)
        figure: Figure = module.Figure(figsize=(4 * wide, 3 * high), layout="constrained")
        panels = figure.subplots(high, wide, squeeze=False).ravel()
        # A single epoch is a dot, for there is no line yet.
        marker = "o" if len(self) == 1 else ""
        for axes, name in zip(panels, drawn, strict=False):
            axes.plot(self["epoch"], self[name], marker=marker)
            axes.set(title=name, xlabel="epoch")
            axes.grid(alpha=0.3)
        for axes in panels[len(drawn) :]:
            axes.set_axis_off()
        if path is not None:
            with explained("the picture", path, "the history is as it was", "History.plot"):
                figure.savefig(path, dpi=120)
        # A figure without pyplot has no picture of its own in a cell.
        vars(figure)["_repr_svg_"] = partial(_svg, figure)
        return figure

    @override
    def __repr__(self) -> str:
        """Show how far it got, and the last row."""
        last = "".join([f"; {described(row)}" for row in self.rows[-1:]])
        return f"History({len(self)} epochs, ended by {self.ended}{last})"

    def _repr_html_(self) -> str:
        """Return curves, if matplotlib is installed, and numbers, for a notebook's cell."""
        rows = [[_written(row.get(name, math.nan)) for name in self.columns] for row in self.rows]
        numbers = table(repr(self), [self.columns, *rows])
        has_picture = self.rows and importlib.util.find_spec("matplotlib") is not None
        return f"{_svg(self.plot())}{numbers}" if has_picture else numbers


def _written(number: float) -> str:
    return f"{number:,}" if isinstance(number, int) else f"{number:.4g}"


def _svg(figure: Figure) -> str:
    written = io.StringIO()
    figure.savefig(written, format="svg")
    _, begin, rest = written.getvalue().partition("<svg")
    # What stands before the element is for files.
    return begin + rest


def described(row: Row) -> str:
    """Return loss and metrics of an epoch, for a line of text."""
    return ", ".join([f"{name} {row[name]:.4g}" for name in row if name not in COLUMNS[:-1]])


@dataclass(frozen=True)
class EarlyStopping:
    """Stop when a number has not improved for some epochs.

    Args:
        watch: the name of a metric, ``"loss"`` or ``"val_loss"``.
        patience: how many epochs in a row may be no better than the best, >= 1.
        mode: whether a small number is good, or a large one.
        min_delta: the smallest change that counts as better, >= 0.
        best: the path of a file for the model of the best epoch, as `tapetensor.io.save` takes it.
            The file of an earlier training is not overwritten, unless `fit` gets
            ``overwrite=True``.
        restore: whether the model has the state of its best epoch at the end, and not that of the
            last epoch. An interrupted training keeps the last.

    Raises:
        ArgumentTypeError: if an argument is of the wrong kind.
        ArgumentValueError: if one lies outside its range.

    Source: Prechelt (1998), "Early stopping - but when?".

    >>> stop = EarlyStopping("loss", patience=2)
    >>> stop.best_of([3.0, 1.0, 2.0]), stop.is_reached([3.0, 1.0, 2.0])
    (1, False)
    >>> stop.is_reached([3.0, 1.0, 2.0, 1.5])
    True
    """

    watch: str
    patience: int = 3
    mode: Literal["min", "max"] = "min"
    min_delta: float = 0.0
    best: str | os.PathLike[str] | None = None
    restore: bool = False

    def __post_init__(self) -> None:
        check_kind("EarlyStopping", "watch", self.watch, str, "the name of a metric")
        as_size("EarlyStopping", "patience", self.patience, low=1)
        check_choice("EarlyStopping", "mode", self.mode, ("min", "max"))
        as_number("EarlyStopping", "min_delta", self.min_delta, at_least=0)
        as_flag("EarlyStopping", "restore", self.restore)
        if self.best is not None:
            check_path("EarlyStopping", "best", self.best)

    def best_of(self, values: Sequence[float]) -> int:
        """Return the position of the best of the values; the first one if none is a number."""
        sign = 1 if self.mode == "min" else -1
        best, position = math.inf, 0
        for index, value in enumerate(values):
            # The comparison is False for a NaN, which is never better.
            if sign * value < best - self.min_delta:
                best, position = sign * value, index
        return position

    def is_reached(self, values: Sequence[float]) -> bool:
        """Tell whether patience is at its end."""
        return len(values) - 1 - self.best_of(values) >= self.patience


@contextmanager
def explained(
    what: str, path: str | os.PathLike[str], rest: str, op: str = "fit"
) -> Iterator[None]:
    """Raise an error of the disk again, of the same class, with what is there nevertheless."""
    try:
        yield
    except OSError as error:
        number = error.errno or errno.EIO
        reason = error.strerror or str(error)
        # The number makes it a PermissionError, a FileNotFoundError, ... again.
        raise OSError(
            number, f"{op}: {what} could not be written ({reason}); {rest}", os.fspath(path)
        ) from error
