"""Early stopping: a function of the history, so that it needs no state of its own."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from tapetensor.arguments import as_flag, as_number, as_size, check_choice, check_kind, check_path


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
