"""Places where a backward pass stops though there is something to flow on to."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from tapetensor.pictures import Place, users_place
from tapetensor.tape.origins import Ids, Incomplete, Origins, ids_since, name_of, origins_from
from tapetensor.tape.recorder import Recorder


class Segment(NamedTuple):
    """Records that several tapes hold together; nobody changes them any more.

    Attributes:
        records: by the id of their result.
        earlier: the segments that they go on from.
    """

    records: Recorder
    earlier: tuple[Segment, ...]


class Gap(NamedTuple):
    """A value on a tape that has no record of what the value was computed from.

    Attributes:
        shape: the shape of the value.
        op: what it met the tape in, or was lent by.
        place: the line of the program that ran the op; None if a thread began inside the library.
        origins: what it was computed from by ops that are not recorded here; None if that is to be
            found in segments.
        segments: of a value that was lent, where its record is.
        gaps: of a value that was lent, those of the tape of its owner.
        is_lent: whether it was lent by its owner, and not computed without a tape.
    """

    shape: tuple[int, ...]
    op: str
    place: Place | None
    origins: Origins | None
    segments: tuple[Segment, ...] = ()
    gaps: tuple[tuple[int, Gap], ...] = ()
    is_lent: bool = False

    @classmethod
    def computed(cls, op: str, value: Any) -> Gap:
        """Return the gap at a plain tensor that meets a tape in the line that runs now."""
        return cls(value.array.shape, op, users_place(), value.origins)

    @classmethod
    def lent(cls, op: str, value: Any) -> Gap:
        """Return the gap at a handle, lent in the line that runs now by the owner of a tape."""
        segments, gaps = tuple(value.tape.frozen().values()), tuple(value.tape.gaps.items())
        return cls(value.array.shape, op, users_place(), None, segments, gaps, is_lent=True)


def every_segment(segments: Iterable[Segment]) -> Iterator[Segment]:
    """Iterate over segments and over all that they go on from, the latest ones first."""
    seen: set[int] = set()
    left = deque(segments)
    while left:
        segment = left.popleft()
        if id(segment) not in seen:
            seen.add(id(segment))
            yield segment
            left += segment.earlier


def all_records(records: Recorder, segments: Iterable[Segment]) -> Recorder:
    """Return the records of a tape and of the segments that it goes on from, as one."""
    whole = records.copy()
    for segment in every_segment(segments):
        whole.update(segment.records)
    return whole


def incomplete(
    gaps: Mapping[int, Gap], records: Recorder, wanted: Mapping[int, Any] | None
) -> tuple[Incomplete, ...]:
    """Return what the gradients of a backward pass may lack, for those who ask for them later.

    Args:
        gaps: by the id of the value.
        records: all that the pass replays.
        wanted: the ids to compute gradients for, with their names or tensors; None for every leaf.

    Raises:
        MissingGradientError: if a gradient that is wanted lacks a part.
    """
    # Nothing older than these is asked for now, so long histories are not looked through.
    first = min([min(records, default=0), *(wanted or ())])
    found = []
    for unique_id, gap in gaps.items():
        if unique_id in records or (wanted is not None and unique_id in wanted):
            # The owner of the record joined, or the gradient is to stop there.
            continue
        missing = _before(unique_id, gap, first)
        missing |= records.reached_from(missing.among(records))
        if wanted is None and not gap.is_lent:
            found.append(Incomplete(*_words(gap), gap.origins, missing))
            continue
        concerned = [name_of(one) for key, one in (wanted or {}).items() if key in missing]
        if wanted is None:
            concerned = ["all that comes before it"]
        if concerned:
            raise Incomplete(*_words(gap), gap.origins, missing).error("backward", concerned)
    return tuple(found)


def seen_from_outside(
    gaps: Mapping[int, Gap], records: Recorder, renamed: Mapping[int, int]
) -> dict[int, Gap]:
    """Return the gaps inside an op that encloses a function, for the tape that records the op.

    Args:
        gaps: those of the tape inside.
        records: what is recorded inside, which the tape outside does not see.
        renamed: the ids outside of tensors that have another one inside.
    """
    found = {}
    for unique_id, gap in gaps.items():
        if unique_id in records:
            continue
        before = _before(unique_id, gap, 0)
        ids = records.reached_from(before | before.among(records))
        outside = origins_from(Ids((renamed.get(one, one) for one in ids), before.ranges))
        found[unique_id] = gap._replace(origins=outside, segments=(), gaps=())
    return found


def _before(unique_id: int, gap: Gap, first: int) -> Ids:
    """Return all ids, from `first` on, that gradients would have flowed on to from a gap."""
    found = Ids()
    seen: set[int] = set()
    left = [(unique_id, gap)]
    while left:
        value, one = left.pop()
        if one.origins is not None:
            found |= ids_since(first, one.origins)
        elif value not in seen:
            seen.add(value)
            reached = all_records(Recorder(), one.segments).reached_from({value})
            found |= reached - {value}
            left += [(key, earlier) for key, earlier in one.gaps if key in reached]
    return found


def _words(gap: Gap) -> tuple[str, str]:
    """Return what happened, and the cure."""
    where = f"{gap.op} at {gap.place}" if gap.place else gap.op
    if gap.is_lent:
        return (
            f"{where} lent a tensor of shape {gap.shape}, which itself took no part in the result, "
            "so that the gradient stops there",
            "lend it by share(), which goes on, or detach() it where it is a constant",
        )
    return (
        f"{where} got a plain operand of shape {gap.shape} that was computed from it, and ops on "
        "plain values are not recorded",
        "give it a tape before them, weight.retaped(x.tape_type) or x.trace(), or detach() the "
        "operand where it is a constant",
    )
