"""The tape: what `NoneTape` and `OwnedTape` are, how tapes merge and how one is replayed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias, final

from typing_extensions import override

from tapetensor.errors import ArgumentTypeError, MovedTensorError
from tapetensor.gradients import Array, Gradients

Pullback: TypeAlias = Callable[[Array], Array]
Pullbacks: TypeAlias = tuple[Pullback | None, ...]
Kernel: TypeAlias = Callable[..., tuple[Array, Pullbacks]]
# What ran, one pullback per operand (None where there is nothing to differentiate), and the
# operands' ids. Filed under the id of the result, which, ids being handed out in order, is also
# the time stamp.
Record: TypeAlias = tuple[Kernel, Pullbacks, tuple[int, ...]]


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

    A tape has exactly one owner. Two tapes that meet in an op merge: each record is kept once,
    whichever of the two held it, and gradients carried by either are summed.

    Args:
        gradients: earlier gradients that the tape carries; a backward pass adds to them.
    """

    __slots__ = ("__weakref__", "_carried", "records")

    def __init__(self, gradients: Gradients | None = None) -> None:
        if gradients is not None and not isinstance(gradients, Gradients):
            raise ArgumentTypeError(
                f"trace: carried gradients must be Gradients, got {type(gradients).__name__}"
            )
        self.records: dict[int, Record] = {}
        # Kept by identity, like the records: a store that both sides of a merge hold counts once.
        self._carried: dict[int, Gradients] = (
            {} if gradients is None else {id(gradients): gradients}
        )

    @override
    def __repr__(self) -> str:
        """Show how much the tape holds."""
        carried = f", carrying {len(self._carried)} Gradients" if self._carried else ""
        return f"OwnedTape({len(self.records)} ops{carried})"

    def merge(self, other: OwnedTape) -> None:
        """Take over what `other` holds."""
        if len(other.records) > len(self.records):
            self.records, other.records = other.records, self.records
        self.records.update(other.records)
        self._carried.update(other._carried)

    def fork(self) -> OwnedTape:
        """Return a tape that holds the same records, to be owned by a second tensor."""
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
        successor.records, successor._carried = self.records, self._carried
        self.records, self._carried = _SPENT, {}
        return successor

    def check_not_moved(self) -> None:
        """Raise MovedTensorError if the contents have been handed to a new owner."""
        if self.records is _SPENT:
            raise MovedTensorError(
                "put_tape: this tape was put on a tensor before; a tape has exactly one owner. "
                "For a second value with a tape of its own use with_empty_tape()"
            )

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
            wanted: the ids to compute gradients for; None means every leaf.
        """
        records = self.records
        order = sorted(records)
        result = Gradients()
        for gradients in self._carried.values():
            result.merge(gradients)
        wanted_ids = frozenset(() if wanted is None else wanted)
        needed = None if wanted is None else self._leading_to(wanted_ids, order)
        arrays = {output_id: cotangent}
        finished: dict[int, Array] = {}
        for produced_id in reversed(order):
            _, pullbacks, parents = records.pop(produced_id)
            g = arrays.pop(produced_id, None)
            if g is None:
                continue
            if (
                produced_id in wanted_ids
                if needed is not None
                else result.keeps(produced_id, is_leaf=False)
            ):
                finished[produced_id] = g
            for parent, pullback in zip(parents, pullbacks, strict=True):
                if pullback is None or (needed is not None and parent not in needed):
                    continue
                earlier = arrays.get(parent)
                arrays[parent] = pullback(g) if earlier is None else earlier + pullback(g)
        # What is left belongs to ids that no record produced.
        finished.update(
            {
                leaf: array
                for leaf, array in arrays.items()
                if (leaf in wanted_ids if needed is not None else result.keeps(leaf, is_leaf=True))
            }
        )
        result.accumulate(finished)
        return result

    def _leading_to(self, wanted: frozenset[int], order: list[int]) -> set[int]:
        """Return the ids from which a gradient flows on to one of `wanted`, those included."""
        needed = set(wanted)
        for produced_id in order:
            if not needed.isdisjoint(self.records[produced_id][2]):
                needed.add(produced_id)
        return needed


Tape: TypeAlias = NoneTape | OwnedTape

_SPENT: dict[int, Record] = {}
