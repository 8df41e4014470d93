"""What a plain value was computed from, and the gradients that are incomplete because of it.

Ops on plain values are not recorded, so no gradient flows through them. That does no harm as long
as nobody asks for one. A plain value therefore remembers its *origins*: the ids of the tensors that
it was computed from. Where it meets a tape as an operand that is differentiated, the tape notes it,
and to ask for the gradient of one of these tensors is an error, instead of a part of the gradient.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Collection, Sequence
from typing import Any, TypeAlias

from tapetensor.errors import MissingGradientError

# The number of steps, and for each operand of the last step its id and its own origins, None if it
# was not computed. A flat tuple, because every op on plain values makes one.
Origins: TypeAlias = tuple[Any, ...]

# The origins of a value that was parted from its tape: what is computed from it is a constant.
PARTED: Origins = (0,)

# Of a longer history the steps are forgotten: values that are computed from each other for ever,
# as the state of a filter is, need the memory of this many steps and no more.
MOST_STEPS = 512


def shortened(origins: Origins) -> Origins:
    """Return a long history without its steps: what it began with, parameters among it.

    Of more than there is room for, as where every step takes in new data, those are kept that were
    used last, and those that are oldest, for a model is older than what it is trained on.
    """
    began, room = _beginnings(origins), MOST_STEPS // 2
    if len(began) > 2 * room:
        began = list(dict.fromkeys(began[:room] + sorted(began)[:room]))
    return origins_from(began)


def _beginnings(origins: Origins) -> list[int]:
    """Return the ids of what was not computed itself, those used last first."""
    began: dict[int, None] = {}
    left = deque([origins])
    while left:
        node = left.popleft()
        for position in range(1, len(node), 2):
            unique_id, earlier = node[position], node[position + 1]
            if earlier is None:
                began[unique_id] = None
            else:
                left.append(earlier)
    return list(began)


def origins_of(*operands: tuple[int, Origins | None]) -> Origins:
    """Return the origins of a value that was computed from tensors of these ids and origins."""
    steps = 0
    parts: list[Any] = []
    for unique_id, earlier in operands:
        steps += 1 if earlier is None else earlier[0] + 1
        parts += (unique_id, earlier)
    origins = (steps, *parts)
    return origins if steps < MOST_STEPS else shortened(origins)


def origins_from(ids: Collection[int]) -> Origins:
    """Return the origins of a value that was computed from the tensors with these ids."""
    # Many are no long history, and leave room for the steps that follow.
    flat: list[Any] = [min(len(ids), MOST_STEPS // 2)]
    for one in ids:
        flat += (one, None)
    return tuple(flat)


def ids_since(first: int, origins: Origins) -> set[int]:
    """Return the ids among the origins, from `first` on: nothing is computed from a later id."""
    found: set[int] = set()
    left = [origins]
    while left:
        node = left.pop()
        for position in range(1, len(node), 2):
            unique_id, earlier = node[position], node[position + 1]
            if unique_id >= first and unique_id not in found and earlier is not PARTED:
                found.add(unique_id)
                if earlier is not None:
                    left.append(earlier)
    return found


def overlap(
    origins: Origins, fixed: frozenset[int], others: tuple[int, ...]
) -> tuple[frozenset[int], tuple[bool, ...]]:
    """Return which of the fixed ids are among the origins, and of the others whether they are."""
    found = ids_since(min(fixed.union(others), default=0), origins)
    return fixed & found, tuple([one in found for one in others])


def lacking(
    incomplete: tuple[Incomplete, ...], fixed: frozenset[int], others: tuple[int, ...]
) -> tuple[frozenset[int], tuple[bool, ...]]:
    """Return of which of the fixed ids the gradients lack a part, and whether of the others."""
    if not incomplete:
        return frozenset(), (False,) * len(others)
    found = {key for key in (*fixed, *others) for one in incomplete if one.concerns(key)}
    return fixed & found, tuple([one in found for one in others])


class Incomplete:
    """What gradients lack because they stopped at a value whose record is not on the tape.

    Args:
        what: where they stopped, and why; a sentence that goes on with what is concerned.
        cure: what to write instead.
        origins: what the value was computed from by ops that are not recorded.
        upstream: the ids of further tensors that the gradients should have flowed on to.
    """

    __slots__ = ("_cure", "_first", "_found", "_upstream", "_what", "origins")

    def __init__(self, what: str, cure: str, origins: Origins | None, upstream: set[int]) -> None:
        self._what = what
        self._cure = cure
        self.origins = origins
        self._upstream = upstream
        # The origins are looked through as far back as somebody asks.
        self._first = sys.maxsize
        self._found: set[int] = set()

    def concerns(self, unique_id: int) -> bool:
        """Tell whether the gradient of a tensor lacks a part."""
        if unique_id in self._upstream:
            return True
        if unique_id < self._first and self.origins is not None:
            self._first, self._found = unique_id, ids_since(unique_id, self.origins)
        return unique_id in self._found

    def of_others(self, origins: Origins) -> Incomplete:
        """Return the same of another value, of these origins, in the place of the one here."""
        return Incomplete(self._what, self._cure, origins, set())

    def error(self, op: str, names: Sequence[str]) -> MissingGradientError:
        """Return the error for those who ask for gradients that lack a part.

        Args:
            op: what asks.
            names: the tensors whose gradients they are.
        """
        of = "gradient" if len(names) == 1 else "gradients"
        return MissingGradientError(
            f"{op}: a part of the {of} of {', '.join(names)} is missing: {self._what}; {self._cure}"
        )


def name_of(wanted: Any) -> str:
    """Return what a message calls a tensor: its name, or what can be told of it without one."""
    return wanted if isinstance(wanted, str) else f"the tensor of shape {wanted.shape}"
