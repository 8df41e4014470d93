"""The content of a picture: ops with their operands, and facts about each; and that as text."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

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


class _Strokes(NamedTuple):
    item: str
    last: str
    line: str


_UNICODE = _Strokes("├─ ", "└─ ", "│  ")
_ASCII = _Strokes("|- ", "`- ", "|  ")


def tree(graph: Graph, ascii: bool | None = None) -> str:
    """Return a graph as text, the latest op first.

    Below an op stands, without indent, the operand that the longest chain of ops leads to, and
    indented the others. An op that several read is shown once, elsewhere its number is.

    Args:
        graph: what to show.
        ascii: whether to draw with plain characters; None means if the terminal needs it.
    """
    if ascii is None:
        ascii = not _can_print(_UNICODE)
    writer = _Writer(graph, _ASCII if ascii else _UNICODE)
    text = "\n".join([f"{graph.title}: {graph.summary}", *writer.lines()])
    return text.encode("ascii", "backslashreplace").decode() if ascii else text


def _can_print(strokes: _Strokes) -> bool:
    encoding = getattr(sys.stdout, "encoding", None) or "ascii"
    try:
        "".join(strokes).encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True


class _Writer:
    def __init__(self, graph: Graph, strokes: _Strokes) -> None:
        self._ops = {op.key: op for op in graph.ops}
        self._strokes = strokes
        self._shown: set[int] = set()
        # The number of ops on the longest way to an input.
        self._depth: dict[int, int] = {}
        for op in graph.ops:
            self._depth[op.key] = 1 + max([self._depth[one] for one in op.operands], default=0)

    def lines(self) -> list[str]:
        """Return the lines of everything, from each op that nobody reads."""
        read = {one for op in self._ops.values() for one in op.operands}
        roots = [key for key in reversed(self._ops) if key not in read]
        return [line for root in roots for line in self._chain(root)]

    def _chain(self, key: int) -> list[str]:
        chain = self._taken(key)
        lines = []
        for position, op in enumerate(chain):
            lines.append(_label(op))
            following = chain[position + 1].key if position + 1 < len(chain) else None
            others = list(op.operands)
            if following is not None:
                others.remove(following)
            for place, other in enumerate(others):
                is_last = place == len(others) - 1 and following is None
                head, rest = self._strokes.item, self._strokes.line
                if is_last:
                    head, rest = self._strokes.last, "   "
                branch = self._branch(other)
                lines.append(head + branch[0])
                lines += [rest + line for line in branch[1:]]
        return lines

    def _taken(self, key: int) -> list[Op]:
        """Return the longest chain down from an op, all of which counts as shown from now on."""
        chain = [self._ops[key]]
        self._shown.add(key)
        while left := [one for one in chain[-1].operands if self._goes_on(one)]:
            deepest = max(left, key=self._depth.__getitem__)
            self._shown.add(deepest)
            chain.append(self._ops[deepest])
        return chain

    def _goes_on(self, key: int) -> bool:
        return key not in self._shown and not self._ops[key].is_input

    def _branch(self, key: int) -> list[str]:
        op = self._ops[key]
        if op.is_input:
            return [_label(op)]
        return [f"#{key} {op.name}, shown elsewhere"] if key in self._shown else self._chain(key)


def _label(op: Op) -> str:
    parts = [op.name if op.is_input else f"#{op.key} {op.name}"]
    if op.form:
        parts.append(op.form)
    if op.nbytes is not None and not op.is_input:
        parts.append(in_bytes(op.nbytes))
    if op.seconds is not None:
        parts.append(in_seconds(op.seconds))
    if op.place is not None:
        parts.append(str(op.place))
    return "  ".join(parts)
