"""The tape: what `NoneTape` and `OwnedTape` are, and how tapes move and merge."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Never, TypeAlias, final

from typing_extensions import override

from tapetensor.errors import ArgumentTypeError, MovedTensorError, UntracedTensorError
from tapetensor.gradients import Array, Gradients
from tapetensor.recorder import Kernel as Kernel
from tapetensor.recorder import Pullback as Pullback
from tapetensor.recorder import Pullbacks as Pullbacks
from tapetensor.recorder import Recorder


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
        self.records = Recorder()
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
        twin.records = Recorder(self.records)
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

    def _taken(self) -> tuple[Recorder, dict[int, Gradients]]:
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
        result = Gradients()
        for gradients in self._carried.values():
            result.merge(gradients)
        if wanted is None:
            result.drop_non_leafs()
            wanted = result.leafs
        wanted_ids = None if wanted is None else frozenset(wanted)
        keeps_all = wanted_ids is None and result.is_leaky
        result.accumulate(
            self.records.replay({output_id: cotangent}, wanted_ids, keeps_all=keeps_all)
        )
        return result


Tape: TypeAlias = NoneTape | OwnedTape

_SPENT = Recorder()

_NO_COPY = (
    "copy: a tape has exactly one owner and cannot be copied or pickled; "
    "write x.with_empty_tape() for a second traced handle"
)
