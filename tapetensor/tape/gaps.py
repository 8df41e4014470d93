"""Places where a backward pass stops though there is something to flow on to."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from tapetensor.pictures import Place, users_place
from tapetensor.tape.origins import Incomplete, Origins, ids_since, name_of, origins_from
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
        origins: what it was computed from by ops that are not recorded; None if it was lent.
        segments: of a value that was lent, where its record is.
    """

    shape: tuple[int, ...]
    op: str
    place: Place | None
    origins: Origins | None
    segments: tuple[Segment, ...] = ()

    @classmethod
    def at(
        cls,
        op: str,
        value: Any,
        origins: Origins | None,
        segments: tuple[Segment, ...] = (),
    ) -> Gap:
        """Return the gap at a tensor, met by the line of the program that runs now."""
        return cls(value.array.shape, op, users_place(), origins, segments)


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
    found = []
    for unique_id, gap in gaps.items():
        if unique_id in records:
            # The owner of the record joined.
            continue
        lacking = _of_lent(unique_id, gap) if gap.origins is None else _of_computed(gap, records)
        if wanted is not None:
            concerned = [name_of(wanted[key]) for key in wanted if lacking.concerns(key)]
        elif gap.origins is None:
            concerned = ["all that comes before it"]
        else:
            concerned = []
            found.append(lacking)
        if concerned:
            raise lacking.error("backward", concerned)
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
        if gap.origins is not None and unique_id not in records:
            ids = records.reached_from(ids_since(0, gap.origins))
            outside = origins_from([renamed.get(one, one) for one in ids])
            found[unique_id] = gap._replace(origins=outside)
    return found


def _of_lent(unique_id: int, gap: Gap) -> Incomplete:
    upstream = all_records(Recorder(), gap.segments).reached_from({unique_id}) - {unique_id}
    return Incomplete(
        f"{gap.op}{_at(gap)} lent a tensor of shape {gap.shape}, and the gradient stops there, for "
        "the tensor itself took no part in this result",
        "lend it by share(), which goes on, or detach() it where it is a constant",
        (),
        upstream,
    )


def _of_computed(gap: Gap, records: Recorder) -> Incomplete:
    origins = gap.origins or ()
    recorded = ids_since(min(records), origins) & records.keys() if records else set()
    return Incomplete(
        f"{gap.op}{_at(gap)} got a plain operand of shape {gap.shape} that was computed from it, "
        "and ops on plain values are not recorded",
        "give the parameter a tape before them, weight.retaped(x.tape_type), or trace() their "
        "input, or detach() the operand where it is a constant",
        origins,
        records.reached_from(recorded) if recorded else set(),
    )


def _at(gap: Gap) -> str:
    return f" at {gap.place}" if gap.place else ""
