"""The tape: what `NoneTape` and `OwnedTape` are, how tapes merge and how one is replayed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Never, TypeAlias, final

from typing_extensions import override

from tapetensor.errors import ArgumentTypeError, MovedTensorError, UntracedTensorError
from tapetensor.gradients import Array, Gradients

Pullback: TypeAlias = Callable[[Array], Array]
Pullbacks: TypeAlias = tuple[Pullback | None, ...]
Kernel: TypeAlias = Callable[..., tuple[Array, Pullbacks]]
# What ran, one pullback per operand (None where there is nothing to differentiate), and the
# operands' ids. Filed under the id of the result, which, ids being handed out in order, is also
# the time stamp. An op of one operand has its pullback and its id bare: the tuples around them
# would be a tenth of what a small op costs.
Record: TypeAlias = tuple[Kernel, Any, Any]


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

    Args:
        gradients: earlier gradients that the tape carries; a backward pass adds to them.
    """

    __slots__ = ("__weakref__", "_carried", "records")

    def __init__(self, gradients: Gradients | None = None) -> None:
        if gradients is not None and not isinstance(gradients, Gradients):
            raise ArgumentTypeError(
                f"OwnedTape: carried gradients must be Gradients, got {type(gradients).__name__}"
            )
        self.records: dict[int, Record] = {}
        # Kept by identity, like the records: a store that both sides of a merge hold counts once.
        self._carried: dict[int, Gradients] = (
            {} if gradients is None else {id(gradients): gradients}
        )

    @override
    def __repr__(self) -> str:
        """Show how much the tape holds."""
        if self.records is _SPENT:
            return "OwnedTape(moved)"
        carried = f", carrying {len(self._carried)} Gradients" if self._carried else ""
        return f"OwnedTape({len(self.records)} ops{carried})"

    def __copy__(self) -> Never:
        """Refuse: a tape has exactly one owner."""
        raise UntracedTensorError(_NO_COPY)

    def __deepcopy__(self, memo: object) -> Never:
        """Refuse: a tape has exactly one owner."""
        raise UntracedTensorError(_NO_COPY)

    @override
    def __reduce__(self) -> Never:
        """Refuse to be pickled: a tape has exactly one owner, and its records are functions."""
        raise UntracedTensorError(_NO_COPY)

    def merge(self, other: OwnedTape) -> None:
        """Take over what `other` holds, which is spent.

        Raises:
            MovedTensorError: if one of the two is spent already.
        """
        self.check_not_moved()
        records, carried = other._taken()
        if len(records) > len(self.records):
            self.records, records = records, self.records
        self.records.update(records)
        self._carried.update(carried)

    def fork(self) -> OwnedTape:
        """Return a tape that holds the same records, to be owned by a second tensor.

        Raises:
            MovedTensorError: if the contents have been handed to a new owner.
        """
        self.check_not_moved()
        twin = OwnedTape()
        twin.records = self.records.copy()
        twin._carried = self._carried.copy()
        return twin

    def move(self) -> OwnedTape:
        """Hand the contents to a new owner; this object is spent.

        Raises:
            MovedTensorError: if it is spent already.
        """
        successor = OwnedTape()
        successor.records, successor._carried = self._taken()
        return successor

    def check_not_moved(self) -> None:
        """Raise MovedTensorError if the contents have been handed to a new owner."""
        if self.records is _SPENT:
            raise MovedTensorError(
                "put_tape: this tape was put on a tensor before; a tape has exactly one owner. "
                "For a second value with a tape of its own use with_empty_tape()"
            )

    def _taken(self) -> tuple[dict[int, Record], dict[int, Gradients]]:
        """Give up and return the contents."""
        self.check_not_moved()
        contents = self.records, self._carried
        self.records, self._carried = _SPENT, {}
        return contents

    def replay(
        self, output_id: int, cotangent: Array, wanted: Iterable[int] | None = None
    ) -> Gradients:
        """Run the records backwards from `output_id` and return the gradients.

        The records are used up. A record runs once, latest first; one whose output received no
        cotangent does not lead to the result and is skipped, and so is, when `wanted` is given,
        every pullback that contributes to none of those ids.

        Args:
            output_id: the id of the tensor to differentiate.
            cotangent: its cotangent.
            wanted: the ids to compute gradients for; None means the leafs that carried gradients
                declare, or, without a declaration, every leaf.
        """
        records = self.records
        order = sorted(records)
        result = Gradients()
        for gradients in self._carried.values():
            result.merge(gradients)
        if wanted is None:
            result.drop_non_leafs()
            wanted = result.leafs
        wanted_ids = None if wanted is None else frozenset(wanted)
        needed = None if wanted_ids is None else self._leading_to(wanted_ids, order)
        keeps_all = needed is None and result.is_leaky
        kept: frozenset[int] = wanted_ids or frozenset()
        arrays = {output_id: cotangent}
        finished: dict[int, Array] = {}
        take, look_up = arrays.pop, arrays.get
        for produced_id in reversed(order):
            _, pullbacks, parents = records.pop(produced_id)
            g = take(produced_id, None)
            if g is None:
                continue
            if keeps_all or produced_id in kept:
                finished[produced_id] = g
            if parents.__class__ is int:
                if pullbacks is not None and (needed is None or parents in needed):
                    earlier = look_up(parents)
                    arrays[parents] = pullbacks(g) if earlier is None else earlier + pullbacks(g)
                continue
            # As many parents as pullbacks; saying so to zip() would cost a fifth of this loop.
            for parent, pullback in zip(parents, pullbacks):  # noqa: B905
                if pullback is not None and (needed is None or parent in needed):
                    earlier = look_up(parent)
                    arrays[parent] = pullback(g) if earlier is None else earlier + pullback(g)
        # What is left belongs to ids that no record produced: leafs.
        finished.update(
            arrays if needed is None else {key: arrays[key] for key in kept & arrays.keys()}
        )
        result.accumulate(finished)
        return result

    def _leading_to(self, wanted: frozenset[int], order: list[int]) -> set[int]:
        """Return the ids from which a gradient flows on to one of `wanted`, those included."""
        needed = set(wanted)
        for produced_id in order:
            _, pullbacks, parents = self.records[produced_id]
            # Nothing flows to an operand without a pullback: indices, a mask.
            if parents.__class__ is int:
                if parents in needed and pullbacks is not None:
                    needed.add(produced_id)
                continue
            for parent, pullback in zip(parents, pullbacks):  # noqa: B905  # as in replay
                if parent in needed and pullback is not None:
                    needed.add(produced_id)
                    break
        return needed


Tape: TypeAlias = NoneTape | OwnedTape

_SPENT: dict[int, Record] = {}

_NO_COPY = (
    "copy: a tape has exactly one owner and cannot be copied or pickled; "
    "write x.with_empty_tape() for a second traced handle"
)
