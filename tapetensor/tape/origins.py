"""What a plain value was computed from, and the gradients that are incomplete because of it.

Ops on plain values are not recorded, so no gradient flows through them. That does no harm as long
as nobody asks for one. A plain value therefore remembers its *origins*: the ids of the tensors that
it was computed from. Where it meets a tape as an operand that is differentiated, the tape notes it,
and to ask for the gradient of one of these tensors is an error, instead of a part of the gradient.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from operator import attrgetter
from typing import Any, Self, TypeAlias

from typing_extensions import override

from tapetensor.errors import MissingGradientError

# The number of steps, and for each operand of the last step its id and its own origins, None if it
# was not computed; a range stands for all ids in it, the last of which is before it. A flat tuple,
# because every op on plain values makes one.
Origins: TypeAlias = tuple[Any, ...]

# The origins of a value that was parted from its tape: what is computed from it is a constant.
PARTED: Origins = (0,)

# Of a longer history the ids are kept, and not how they hang together: values that are computed
# from each other for ever, as the state of a filter is, need bounded memory.
MOST_STEPS = 512
# So many runs of ids without a gap are told apart then. Among them are in any case so many of the
# oldest, for a model is older than what it is trained on, and of the latest, where weights are that
# a program makes anew.
_MOST_RUNS = 192
_OLDEST_RUNS = 96
_LATEST_RUNS = 48


class Ids(set[int]):
    """Ids of tensors: those in the set, and all that lie in one of the ranges."""

    __slots__ = ("ranges",)

    def __init__(self, ids: Iterable[int] = (), ranges: Iterable[range] = ()) -> None:
        super().__init__(ids)
        self.ranges = [*ranges]

    @override
    def __contains__(self, one: object) -> bool:
        return super().__contains__(one) or any(one in each for each in self.ranges)

    @override
    def __ior__(self, others: AbstractSet[int]) -> Self:  # type: ignore[override]  # ids only
        self.update(others)
        self.ranges += others.ranges if isinstance(others, Ids) else ()
        return self

    def among(self, several: Iterable[int]) -> Ids:
        """Return those of several ids that are here."""
        return Ids(filter(self.__contains__, several))


def shortened(origins: Origins) -> Origins:
    """Return a long history without what hangs together how: the ids in it.

    Where they are scattered more than there is room for, the smallest gaps between them are closed,
    but for the oldest and the latest ones: an id too many leads to an error that `detach()` cures,
    one too few to a wrong gradient.
    """
    known = ids_since(0, origins)
    runs: list[range] = []
    alone = [range(one, one + 1) for one in known]
    for one in sorted([*known.ranges, *alone], key=attrgetter("start")):
        if runs and one.start <= runs[-1].stop:
            runs[-1] = range(runs[-1].start, max(one.stop, runs[-1].stop))
        else:
            runs.append(one)
    middle = range(_OLDEST_RUNS, len(runs) - _LATEST_RUNS)
    gaps = sorted(middle, key=lambda one: runs[one].start - runs[one - 1].stop)
    closed = {*gaps[: max(len(runs) - _MOST_RUNS, 0)]}
    kept: list[range] = []
    for number, one in enumerate(runs):
        if number in closed:
            kept[-1] = range(kept[-1].start, one.stop)
        else:
            kept.append(one)
    return origins_from(Ids(ranges=kept))


def origins_of(*operands: Any) -> Origins:
    """Return the origins of a value that was computed from other tensors.

    Args:
        operands: of each of these its id, and then its own origins.
    """
    steps = len(operands) // 2
    for earlier in operands[1::2]:
        if earlier is not None:
            steps += earlier[0]
    origins = (steps, *operands)
    return origins if steps < MOST_STEPS else shortened(origins)


def origins_from(ids: AbstractSet[int]) -> Origins:
    """Return the origins of a value that was computed from the tensors with these ids."""
    ranges = ids.ranges if isinstance(ids, Ids) else []
    # Many are no long history, and leave room for the steps that follow.
    flat: list[Any] = [min(len(ids) + len(ranges), MOST_STEPS // 2)]
    for one in ids:
        flat += (one, None)
    for each in ranges:
        flat += (each.stop - 1, each)
    return tuple(flat)


def ids_since(first: int, origins: Origins) -> Ids:
    """Return the ids among the origins, from `first` on: nothing is computed from a later id."""
    found = Ids()
    left = [origins]
    while left:
        node = left.pop()
        for position in range(1, len(node), 2):
            unique_id, earlier = node[position], node[position + 1]
            if unique_id < first or earlier is PARTED:
                continue
            if isinstance(earlier, range):
                found.ranges.append(earlier)
            elif not set.__contains__(found, unique_id):
                found.add(unique_id)
                if earlier is not None:
                    left.append(earlier)
    return found


def overlap(
    origins: Origins, fixed: frozenset[int], others: tuple[int, ...]
) -> tuple[frozenset[int], tuple[bool, ...]]:
    """Return which of the fixed ids are among the origins, and of the others whether they are."""
    found = ids_since(min(fixed.union(others), default=0), origins)
    return frozenset(found.among(fixed)), tuple([one in found for one in others])


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
        self._found = Ids()

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
