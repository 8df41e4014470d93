"""A graph of ops as text, for a terminal."""

from __future__ import annotations

import sys
from typing import NamedTuple

from tapetensor.pictures.graph import Graph, Op, in_bytes, in_seconds


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
