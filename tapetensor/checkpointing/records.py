"""What a run of a checkpoint records: each op with its fingerprint, kept or forgotten."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Never, Self, TypeAlias

from typing_extensions import override

from tapetensor.checkpointing.fingerprints import Fingerprints
from tapetensor.errors import UntracedTensorError
from tapetensor.tape.recorder import Record, Recorder, op_name, with_tuples

# The name of an op, and the fingerprint of its record.
OpPrint: TypeAlias = tuple[str, object]


class FingerprintedRecords(Recorder):
    """Records with the fingerprint of each, taken as it is recorded; kept, or forgotten then.

    What an op captured for its pullbacks is freed with a record that is forgotten. All tapes that
    come of one share this recorder: where they meet again nothing needs to be merged.

    Args:
        fingerprints: makes the fingerprints.
        kept: where to keep the records, None for nowhere. In itself it holds none, so that whatever
            asks how many there are is answered the same in both cases.
    """

    __slots__ = ("_fingerprints", "_kept", "_made", "parents")

    def __init__(self, fingerprints: Fingerprints, kept: Recorder | None = None) -> None:
        super().__init__()
        self._fingerprints = fingerprints
        self._kept = kept
        self._made: dict[int, tuple[str, int, list[tuple[int, bool]]]] = {}
        self.parents: dict[int, list[int]] = {}

    @override
    def __setitem__(self, produced_id: int, record: Record) -> None:
        kernel, pullbacks, parents = with_tuples(record)
        flows = [pullback is not None for pullback in pullbacks]
        made = self._fingerprints.of_record(kernel, pullbacks)
        self._made[produced_id] = op_name(kernel), made, list(zip(parents, flows, strict=True))
        self.parents[produced_id] = [
            parent for parent, flow in zip(parents, flows, strict=True) if flow
        ]
        if self._kept is not None:
            self._kept[produced_id] = record

    @override
    def __contains__(self, produced_id: object) -> bool:
        return produced_id in self.parents

    @override
    def copy(self) -> Self:
        return self

    @override
    def update(self, records: Mapping[int, Record]) -> None:  # type: ignore[override]  # of records only
        for produced_id, record in records.items():
            self[produced_id] = record

    @override
    def reached_from(self, ids: Iterable[int]) -> set[int]:
        reached = set(ids)
        for produced_id in sorted(self.parents, reverse=True):
            if produced_id in reached:
                reached.update(self.parents[produced_id])
        return reached

    @override
    def replay(self, *_: object, **__: object) -> Never:
        """Refuse: there is nothing to replay."""
        raise _no_replay()

    @override
    def replay_by_group(self, *_: object, **__: object) -> Never:
        """Refuse as well."""
        raise _no_replay()

    @override
    def checked(self, *_: object, **__: object) -> Never:
        """Refuse as well."""
        raise _no_replay()

    def leading_to(
        self, output_id: int, inputs: list[int], start: int
    ) -> tuple[list[int], list[OpPrint]]:
        """Return the ids, in order, that an output came of, and what was recorded on the way.

        Args:
            output_id: the id of the output.
            inputs: the ids of the inputs.
            start: an id from before the run. A tensor that is made meanwhile has another id in
                every run, and is left out.
        """
        reached = self.reached_from({output_id})
        order = sorted(reached & self.parents.keys())
        leafs = [one for one in sorted(reached - self.parents.keys()) if one < start]
        numbers = {
            one: f"{kind} {number}"
            for kind, ids in (("leaf", leafs), ("input", inputs), ("op", order))
            for number, one in enumerate(ids)
        }
        recorded: list[OpPrint] = []
        for produced_id in order:
            name, made, parents = self._made[produced_id]
            # What has no number is a constant, or was made meanwhile: no gradient is asked of it.
            origins = [(numbers.get(parent), flow) for parent, flow in parents]
            recorded.append((name, (made, tuple(origins))))
        return leafs, recorded


def _no_replay() -> UntracedTensorError:
    return UntracedTensorError(
        "checkpoint: f runs a backward pass on the tape of its input, of which checkpoint keeps "
        "nothing; inside f start from a handle with a tape of its own (x.with_empty_tape()), or "
        "write tt.grad(...)"
    )
