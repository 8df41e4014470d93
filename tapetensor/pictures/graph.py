"""The content of a picture: ops with their operands, and facts about each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tapetensor.pictures.places import Place


@dataclass(frozen=True)
class Op:
    """One box of a picture.

    Args:
        key: its number in the picture.
        name: what it does.
        operands: the keys of what it reads, in their order.
        shape: the shape of its result, if known.
        dtype: the dtype of its result, if known.
        seconds: how long it took, if measured.
        place: the user's line that ran it, if recorded.
        facts: what else there is to say, by title.
        is_input: whether it comes from outside, and nothing ran.
    """

    key: int
    name: str
    operands: tuple[int, ...] = ()
    shape: tuple[int, ...] | None = None
    dtype: np.dtype[Any] | None = None
    seconds: float | None = None
    place: Place | None = None
    facts: tuple[tuple[str, str], ...] = ()
    is_input: bool = False

    @property
    def nbytes(self) -> int | None:
        """The bytes of its result, if shape and dtype are known."""
        if self.shape is None or self.dtype is None:
            return None
        return math.prod(self.shape) * self.dtype.itemsize

    @property
    def form(self) -> str:
        """Shape and dtype, as far as known."""
        if self.shape is None or self.dtype is None:
            return ""
        return f"{self.shape} {self.dtype}"


@dataclass(frozen=True)
class Graph:
    """Ops, each after its operands.

    Args:
        title: what is pictured.
        ops: the boxes.
        time_is: what the times are times of.
        note: a sentence on what is missing, if anything is.
    """

    title: str
    ops: Sequence[Op]
    time_is: str = "time"
    note: str = ""

    @property
    def summary(self) -> str:
        """The sums, in a line."""
        ran = [op for op in self.ops if not op.is_input]
        parts = [_count(len(ran), "op"), _count(len(self.ops) - len(ran), "input")]
        sizes = [op.nbytes for op in ran if op.nbytes is not None]
        if sizes:
            parts.append(f"{in_bytes(sum(sizes))} of results")
        times = [op.seconds for op in ran if op.seconds is not None]
        if times:
            parts.append(f"{self.time_is} {in_seconds(sum(times))}")
        return ", ".join(parts)


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def in_bytes(count: int) -> str:
    """Return a number of bytes for people."""
    size, unit = float(count), "B"
    for larger in ("kB", "MB", "GB", "TB"):
        if size < 1000:
            break
        size, unit = size / 1000, larger
    return f"{size:.0f} {unit}" if unit == "B" else f"{size:.3g} {unit}"


def in_seconds(seconds: float) -> str:
    """Return a time for people."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds * 1e9:.0f} ns"
