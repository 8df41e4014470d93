"""The tape: what `NoneTape` and `OwnedTape` are, and how tapes move and merge."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Never, TypeAlias, final

from typing_extensions import override

from tapetensor.arguments import check_kind
from tapetensor.arrays.array import Array
from tapetensor.arrays.stand_ins import Level, run_check
from tapetensor.errors import (
    MovedTensorError,
    TapeClosedError,
    UntracedTensorError,
)
from tapetensor.pictures import notebook_cell, to_html, tree
from tapetensor.tape.context import GradientContext, active_context
from tapetensor.tape.gaps import (
    Gap,
    Segment,
    all_records,
    every_segment,
    incomplete,
    seen_from_outside,
)
from tapetensor.tape.gradients import Gradients, Tensorlike
from tapetensor.tape.graph import Output, graph_of_tape
from tapetensor.tape.origins import Ids, Origins, ids_since, origins_from
from tapetensor.tape.recorder import Record, Recorder, check_finite, op_name
from tapetensor.tape.source_lines import new_recorder


@final
class NoneTape:
    """The tape state of a plain value: nothing is owned and nothing is recorded."""

    __slots__ = ()

    @override
    def __repr__(self) -> str:
        """Show the name."""
        return "NoneTape"


@final
class OwnedTape:
    """The tape state of a tensor that owns the record of the ops that made it.

    A tape has exactly one owner, so it cannot be copied. Two tapes that meet in an op merge: each
    record is kept once, whichever of the two held it, and gradients carried by either are summed.
    It belongs to the context that is active when it is made, which may close it.

    Args:
        gradients: earlier gradients that the tape carries; a backward pass adds to them.
    """

    __slots__ = ("__weakref__", "_contexts", "gaps", "level", "records", "segments", "stores")

    def __init__(self, gradients: Gradients | None = None) -> None:
        if gradients is not None:
            check_kind("OwnedTape", "carried gradients", gradients, Gradients, "Gradients")
        context = active_context()
        context.add(self)
        self._contexts: tuple[GradientContext, ...] = (context,)
        # The derivative of higher order that it is made in, None for none.
        self.level: Level | None = context.level
        self.records = new_recorder()
        # Kept by identity: what was recorded before the tape was shared, and is not changed.
        self.segments: dict[int, Segment] = {}
        # By id the values that gradients stop at though there is something to flow on to.
        self.gaps: dict[int, Gap] = {}
        # Kept by identity, like the records: a store that both sides of a merge hold counts once.
        self.stores: dict[int, Gradients] = {} if gradients is None else {id(gradients): gradients}

    @override
    def __repr__(self) -> str:
        """Show how much the tape holds."""
        if self.records is _SPENT:
            return "OwnedTape(moved)"
        if self.is_closed:
            return "OwnedTape(closed)"
        carried = f", carrying {len(self.stores)} Gradients" if self.stores else ""
        return f"OwnedTape({len(self.recorded())} ops{carried})"

    @override
    def __reduce__(self) -> Never:
        """Refuse to be copied or pickled: a tape has one owner, and its records are functions."""
        raise UntracedTensorError(
            "copy: a tape has exactly one owner and cannot be copied or pickled; "
            "write x.share() for a second traced handle"
        )

    def merge(self, other: OwnedTape) -> None:
        """Take over what `other` holds, which is spent; this tape then belongs to its contexts too.

        Raises:
            MovedTensorError: if one of the two is spent already.
            TapeClosedError: if one of the two is closed.
        """
        self.check_usable("merge")
        records, segments, gaps, carried = other._taken("merge")
        if len(records) > len(self.records):
            self.records, records = records, self.records
        self.records.update(records)
        self.segments.update(segments)
        self.gaps.update(gaps)
        self.stores.update(carried)
        if other._contexts != self._contexts:
            for context in other._contexts:
                if context not in self._contexts:
                    context.add(self)
                    self._contexts += (context,)

    def fork(self) -> OwnedTape:
        """Return a tape that holds the same records, to be owned by a second tensor.

        The records so far become a segment that both point to, so that it takes neither time nor
        memory for each of them.

        Raises:
            MovedTensorError: if the contents have been handed to a new owner.
            TapeClosedError: if the tape is closed.
        """
        self.check_usable("fork")
        segments = self.frozen()
        return self._in_same_contexts(
            self.records.copy(), segments.copy(), self.gaps.copy(), self.stores.copy()
        )

    def frozen(self) -> dict[int, Segment]:
        """Let all that is recorded so far become a segment; return the segments."""
        if self.records:
            segment = Segment(self.records, tuple(self.segments.values()))
            self.records = self.records.__class__()
            self.segments = {id(segment): segment}
        return self.segments

    def has_record(self, unique_id: int) -> bool:
        """Tell whether the op that made a tensor is recorded here."""
        return unique_id in self.records or any(
            unique_id in segment.records for segment in every_segment(self.segments.values())
        )

    def leads_on(self, unique_id: int) -> bool:
        """Tell whether there is something before a tensor: its op, or what is not recorded."""
        return unique_id in self.gaps or self.has_record(unique_id)

    def history(self, unique_id: int) -> Origins:
        """Return the origins of a tensor that owns the tape, for a handle apart from the tape."""
        return origins_from(self.sources(unique_id))

    def sources(self, unique_id: int, renamed: Mapping[int, int] | None = None) -> Ids:
        """Return the ids of what a tensor was computed from in the beginning, recorded or not.

        Args:
            unique_id: of a tensor that owns the tape.
            renamed: the ids outside of tensors that have another one on the tape.
        """
        outside = renamed or {}
        records = self.recorded()
        reached = records.reached_from({unique_id})
        found = Ids(outside.get(one, one) for one in reached - records.keys())
        for value, gap in seen_from_outside(self.gaps, records, outside).items():
            if value in reached:
                found |= ids_since(0, gap.origins or ())
        found.discard(unique_id)
        return found

    def recorded(self) -> Recorder:
        """Return all records, those before the tape was shared among them."""
        if self.segments:
            self.records = all_records(self.records, self.segments.values())
            self.segments = {}
        return self.records

    def move(self) -> OwnedTape:
        """Hand the contents to a new owner; this object is spent.

        Raises:
            MovedTensorError: if it is spent already.
            TapeClosedError: if it is closed.
        """
        return self._in_same_contexts(*self._taken("put_tape"))

    def close(self, reason: str) -> None:
        """Let go of the records; the next use raises TapeClosedError, which gives the reason."""
        if self.records is not _SPENT:
            self.records, self.segments, self.gaps, self.stores = _Closed(reason), {}, {}, {}

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing on it, recorded or carried."""
        return not (self.records or self.segments or self.stores)

    @property
    def is_closed(self) -> bool:
        """Whether a context has closed the tape."""
        return isinstance(self.records, _Closed)

    def is_only_of(self, context: GradientContext) -> bool:
        """Tell whether all that is recorded was traced in one context."""
        return self._contexts == (context,)

    def check_usable(self, op: str) -> None:
        """Raise an error if the tape is closed, or if its contents were handed to a new owner."""
        if self.records is _SPENT:
            raise MovedTensorError(
                f"{op}: this tape was put on a tensor before; a tape has exactly one owner. "
                "For a second value with a tape of its own use share()"
            )
        if isinstance(self.records, _Closed):
            raise self.records.error(op)

    def to_html(
        self, output: Output | None = None, *, names: Mapping[str, Tensorlike[Any]] | None = None
    ) -> str:
        """Return an HTML page that draws the graph of what is recorded; it needs no network.

        The pullbacks run once for it, for their times and for the shapes of what they give; the
        records are not used up. Inside `source_lines` an op knows the line that ran it.

        Args:
            output: the tensor that the tape belonged to, to start from; without it nothing is
                measured, and shapes are not known.
            names: names for inputs, such as ``model.parameters()``.

        Raises:
            MovedTensorError: if the contents have been handed to a new owner.
            TapeClosedError: if the tape is closed.
        """
        self.check_usable("to_html")
        return to_html(graph_of_tape(self.recorded(), output, names))

    def tree(
        self,
        output: Output | None = None,
        *,
        names: Mapping[str, Tensorlike[Any]] | None = None,
        ascii: bool | None = None,
    ) -> str:
        """Return the graph of what is recorded as text, the latest op first.

        Args:
            output: as for `to_html`.
            names: as for `to_html`.
            ascii: whether to draw with plain characters; None means if the terminal needs it.

        Raises:
            MovedTensorError: if the contents have been handed to a new owner.
            TapeClosedError: if the tape is closed.
        """
        self.check_usable("tree")
        return tree(graph_of_tape(self.recorded(), output, names), ascii)

    def _repr_html_(self, output: Output | None = None) -> str | None:
        """Return the picture for a notebook; None, for the plain repr, if nothing is recorded."""
        if not self.recorded():
            return None
        return notebook_cell(
            graph_of_tape(self.recorded(), output), repr(self if output is None else output)
        )

    def _taken(self, op: str) -> _Contents:
        """Give up and return the contents."""
        self.check_usable(op)
        # Of several threads one gets them: there is no call in this line, so no other has a turn.
        records, self.records = self.records, _SPENT
        if records is _SPENT:
            self.check_usable(op)
        contents = records, self.segments, self.gaps, self.stores
        self.segments, self.gaps, self.stores = {}, {}, {}
        return contents

    def beside(self, gradients: Gradients) -> OwnedTape:
        """Return a new tape that carries gradients, and belongs to the contexts of this one."""
        return self._in_same_contexts(new_recorder(), {}, {}, {id(gradients): gradients})

    def _in_same_contexts(self, *contents: *_Contents) -> OwnedTape:
        """Return a tape with these contents that belongs to the contexts of this one."""
        tape = object.__new__(OwnedTape)
        tape.records, tape.segments, tape.gaps, tape.stores = contents
        tape._contexts, tape.level = self._contexts, self.level
        for context in self._contexts:
            context.add(tape)
        return tape

    def replay(
        self,
        output_id: int,
        cotangent: Array,
        wanted: Mapping[int, Any] | None = None,
        *,
        finite: bool = False,
    ) -> Gradients:
        """Run the records backwards from `output_id` and return the gradients.

        The records are used up. A record runs once, latest first; one whose output received no
        cotangent does not lead to the result and is skipped, and so is, when `wanted` is given,
        every pullback that contributes to none of those ids.

        Args:
            output_id: the id of the tensor to differentiate.
            cotangent: its cotangent.
            wanted: the ids to compute gradients for, with their tensors or names for messages; None
                means the leafs that carried gradients declare, or, without a declaration, every
                leaf.
            finite: whether to check every gradient on the way.

        Raises:
            MissingGradientError: if a gradient that is wanted lacks a part; the records stay.
            NumericalInstabilityError: if `finite` and a gradient is not; the records stay.
        """
        result = self.carried()
        if wanted is None:
            result.drop_non_leafs()
            if result.leafs is not None:
                wanted = dict.fromkeys(result.leafs, "a leaf that is declared")
        wanted_ids = None if wanted is None else frozenset(wanted)
        keeps_all = wanted_ids is None and result.is_leaky
        records = self.recorded()
        if self.gaps:
            result.incomplete += incomplete(self.gaps, records, wanted)
        if finite:
            _check_finite("the cotangent", output_id, cotangent)
            records = records.checked(_check_finite)
        result.accumulate(records.replay({output_id: cotangent}, wanted_ids, keeps_all=keeps_all))
        if finite:
            for unique_id, total in result.arrays.items():
                _check_finite("the sum of gradients", unique_id, total)
            self.records.clear()
        return result

    def replay_by_group(
        self,
        output_id: int,
        cotangent: Array,
        groups: Sequence[frozenset[int]],
        names: Mapping[int, str],
    ) -> Iterator[dict[int, Array]]:
        """Run the records backwards and yield the gradients of each group once they are final.

        What the tape carries is not in them. The records are used up.

        Args:
            output_id: the id of the tensor to differentiate.
            cotangent: its cotangent.
            groups: the ids of leafs; the gradients of one group after the other are yielded.
            names: what messages call those leafs, by id.

        Raises:
            MissingGradientError: if one of the gradients lacks a part; the records stay.
        """
        records = self.recorded()
        incomplete(self.gaps, records, names)
        return records.replay_by_group({output_id: cotangent}, groups)

    def carried(self) -> Gradients:
        """Return the sum of the gradients that the tape carries.

        What one store declares says nothing about the entries of another that declares nothing, so
        those are kept as declared ones.
        """
        result = Gradients()
        for gradients in self.stores.values():
            result.merge(gradients)
        if result.leafs is not None:
            kept = [one.arrays for one in self.stores.values() if one.leafs is None]
            leafs = result.leafs.union(*kept)
            result = Gradients.of(result.arrays, leafs, result.is_leaky, result.incomplete)
        return result


@final
class _Closed(Recorder):
    """The records of a tape that a context has closed: there are none, and none are taken.

    So an op notices a closed tape where it files its record, and an open one costs it nothing.
    """

    __slots__ = ("_reason",)

    def __init__(self, reason: str) -> None:
        super().__init__()
        self._reason = reason

    @override
    def __setitem__(self, produced_id: int, record: Record) -> Never:
        raise self.error(op_name(record[0]))

    def error(self, op: str) -> TapeClosedError:
        return TapeClosedError(
            f"{op}: the tape was closed when {self._reason}; run the forward pass again from "
            "x.trace(), or take the plain value with detach()"
        )


def _check_finite(origin: str, unique_id: int, gradient: Array) -> None:
    run_check(check_finite, gradient, origin, f"the tensor with id {unique_id}")


Tape: TypeAlias = NoneTape | OwnedTape
_Contents: TypeAlias = tuple[Recorder, dict[int, Segment], dict[int, Gap], dict[int, Gradients]]


# The records of a tape whose contents have been handed to a new owner: there are none.
_SPENT = Recorder()
