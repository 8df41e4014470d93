"""The record of a run of a checkpoint: each op with its fingerprint, kept or forgotten."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Never, TypeAlias

from typing_extensions import override

from tapetensor.arrays.array import Array
from tapetensor.checkpointing.fingerprints import Fingerprints
from tapetensor.errors import UntracedTensorError
from tapetensor.tape import OwnedTape
from tapetensor.tape.history import Step, flows, op_name

# The name of an op, and the fingerprint of its step.
OpPrint: TypeAlias = tuple[str, object]


class Run:
    """The record of a run of a checkpoint so far: the fingerprint of each step.

    If the steps do not keep their pullbacks, what an op captured for these is freed.
    """

    def __init__(self, fingerprints: Fingerprints, *, is_kept: bool) -> None:
        self._fingerprints = fingerprints
        self._is_kept = is_kept
        self._made: dict[int, tuple[str, int, list[tuple[int, bool]]]] = {}
        self._parents: dict[int, list[int]] = {}

    def note(self, step: Step) -> None:
        """Take the fingerprint of a step, and then its pullbacks if they are not kept."""
        produced_id, kernel, pullbacks, parents, _, _ = step
        if produced_id in self._made:
            return
        leading = [parent for parent, _ in flows(step)]
        if parents.__class__ is int:
            pullbacks, parents = (pullbacks,), (parents,)
        made = self._fingerprints.of_record(kernel, pullbacks)
        does_flow = [pullback is not None for pullback in pullbacks]
        origins = list(zip(parents, does_flow, strict=True))
        self._made[produced_id] = op_name(kernel), made, origins
        self._parents[produced_id] = leading
        if not self._is_kept:
            step[2] = tuple([pullback and _forgotten for pullback in pullbacks])
            step[3] = parents

    def leading_to(
        self, steps: Iterable[Step], output_id: int, inputs: list[int], start: int
    ) -> tuple[list[int], list[OpPrint]]:
        """Return the ids, in order, that an output came of, and the steps on the way.

        A tensor that is made after the start has another id in every run, and is left out.
        """
        for step in steps:
            # Those of tapes that the function has started itself, and of values that are computed
            # from parameters without one.
            if step[2] is not None and step[0] > start:
                self.note(step)
        reached = {output_id}
        for produced_id in sorted(self._parents, reverse=True):
            if produced_id in reached:
                reached.update(self._parents[produced_id])
        order = sorted(reached & self._parents.keys())
        leafs = [one for one in sorted(reached - self._parents.keys()) if one < start]
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


class FingerprintingTape(OwnedTape):  # type: ignore[misc]  # final to users alone
    """The tape of a checkpoint's inputs, which takes the fingerprint of each op.

    Its `notes` are the run that it is a part of.
    """

    __slots__ = ()

    @override
    def noted(self, step: Step) -> Step:
        self.notes.note(step)
        return step


def _forgotten(_: Array) -> Never:
    raise UntracedTensorError(
        "checkpoint: f runs a backward pass through what it recorded on the tape of its input, of "
        "which checkpoint keeps nothing; write tt.grad(...) inside f, or call it without checkpoint"
    )
