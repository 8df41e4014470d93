"""The recorder: what ran, by the id of its result, and the one loop that replays it backwards."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Literal, Self, TypeAlias

import numpy as np
from typing_extensions import override

from tapetensor.arguments import check_choice
from tapetensor.arrays.array import Array, are_added_in_place
from tapetensor.errors import (
    MissingGradientError,
    NumericalInstabilityError,
)
from tapetensor.tape.origins import name_of
from tapetensor.tape.pullbacks import JointPullbacks, Kernel, PartPullback, Pullback, Pullbacks

# What ran, one pullback per operand (None where there is nothing to differentiate), and the
# operands' ids. An op of one operand has its pullback and its id bare: the tuples around them
# would be a tenth of what a small op costs.
Record: TypeAlias = tuple[Kernel, Any, Any]
# Called with the op and the id of every gradient that a pullback takes or gives.
Check: TypeAlias = Callable[[str, int, Array], None]
# What to do with a recorded op that does not lead to the output.
Unused: TypeAlias = Literal["ignore", "error"]


class Recorder(dict[int, Record]):
    """Records, filed under the id of their result, which is also the time stamp.

    Ids are handed out in order, so a larger one is a later one. An `OwnedTape` holds a recorder
    that is filled by ops on tensors, a `GradientTape` one that is filled by hand.
    """

    __slots__ = ()

    @override
    def copy(self) -> Self:
        """Return a recorder of the same kind with the same records."""
        twin = self.__class__()
        dict.update(twin, self)
        return twin

    def replay(
        self,
        arrays: dict[int, Array],
        wanted: frozenset[int] | None = None,
        *,
        keeps_all: bool = False,
    ) -> dict[int, Array]:
        """Run the records backwards, latest first, and return the gradients by id.

        The records are used up. One whose output received no cotangent does not lead to the result
        and is skipped, and so is every pullback that contributes to none of the ids `wanted`.

        Args:
            arrays: the cotangents to start from; used up as well.
            wanted: the ids to return; None means every leaf: ids that no record produced.
            keeps_all: whether to return the ids that records produced beside the leafs.
        """
        order = sorted(self)
        if wanted is not None:
            order = self._pruned(wanted, order)
        kept = self.keys() & wanted if wanted is not None else set(order) if keeps_all else set()
        finished: dict[int, Array] = {}
        # The ids whose gradient was made here and is nobody else's: a sum, a part among zeros.
        summed: set[int] = set()
        take_record, take = self.pop, arrays.pop
        for produced_id in reversed(order):
            _, pullbacks, parents = take_record(produced_id)
            g = take(produced_id, None)
            if g is None:
                continue
            if kept and produced_id in kept:
                finished[produced_id] = g
            if parents.__class__ is not int:
                if len(parents) != 2:
                    # As many parents as pullbacks; saying so to zip() costs a tenth of the loop.
                    for parent, pullback in zip(parents, pullbacks):  # noqa: B905
                        if pullback is not None:
                            if parent in arrays:
                                added = _summed(summed, parent, arrays[parent], pullback, g)
                            else:
                                added = pullback(g)
                            arrays[parent] = added
                    continue
                # Written out, for a zip() costs as much as half a small op: the first of the two,
                # and then the second as if it were alone.
                parent, parents = parents
                pullback, pullbacks = pullbacks
                if pullback is not None:
                    if parent in arrays:
                        added = _summed(summed, parent, arrays[parent], pullback, g)
                    else:
                        added = pullback(g)
                    arrays[parent] = added
            if pullbacks is not None:
                if parents in arrays:
                    added = _summed(summed, parents, arrays[parents], pullbacks, g)
                else:
                    added = pullbacks(g)
                    if pullbacks.__class__ is PartPullback:
                        # A fresh array, as a sum is.
                        summed.add(parents)
                arrays[parents] = added
        # What is left belongs to ids that no record produced: leafs.
        if wanted is not None:
            # In the order in which they were found: that of a set depends on the ids.
            arrays = {key: array for key, array in arrays.items() if key in wanted}
        finished.update(arrays)
        return finished

    def replay_by_group(
        self, arrays: dict[int, Array], groups: Sequence[frozenset[int]]
    ) -> Iterator[dict[int, Array]]:
        """Run the records backwards in parts; yield the gradients of a group once they are final.

        The groups come in the order given. Between two of them no record runs, so that the caller
        can start something with one before the rest is computed. The records are used up.

        Args:
            arrays: the cotangents to start from; used up as well.
            groups: the ids to yield gradients for. One to which none flows is left out.
        """
        wanted = frozenset[int]().union(*groups)
        if not wanted.isdisjoint(self):
            # What a record produced is final before that record runs, which a leaf need not wait
            # for. So rare that it is not worth parts.
            finished = self.replay(arrays, wanted)
            yield from [{key: finished[key] for key in group & finished.keys()} for group in groups]
            return
        order = self._pruned(wanted, sorted(self))
        # The first record to use an id is the last one to run.
        first_use: dict[int, int] = {}
        for produced_id in order:
            _, pullbacks, parents = with_tuples(self[produced_id])
            for parent, pullback in zip(parents, pullbacks, strict=True):
                if pullback is not None:
                    first_use.setdefault(parent, produced_id)
        for group in groups:
            stop = min([first_use[key] for key in group if key in first_use], default=None)
            part = Recorder()
            while stop is not None and order and order[-1] >= stop:
                produced_id = order.pop()
                part[produced_id] = self.pop(produced_id)
            arrays = part.replay(arrays)
            yield {key: array for key, array in arrays.items() if key in group}

    def _pruned(self, wanted: frozenset[int], order: list[int]) -> list[int]:
        """Drop every pullback from which no gradient flows on to `wanted`; return what is left."""
        needed = set(wanted)
        left = []
        for produced_id in order:
            kernel, pullbacks, parents = self[produced_id]
            # Nothing flows to an operand without a pullback: indices, a mask.
            if parents.__class__ is int:
                leads = parents in needed and pullbacks is not None
            elif pullbacks.__class__ is JointPullbacks:
                are_needed = tuple([parent in needed for parent in parents])
                leads = any(are_needed)
                self[produced_id] = kernel, pullbacks.narrow(are_needed), parents
            elif len(parents) == 2:
                # Written out: most records have one operand or two, and this is a third of a
                # replay.
                lhs, rhs = parents
                to_lhs, to_rhs = pullbacks
                leads = lhs in needed and to_lhs is not None
                if rhs not in needed or to_rhs is None:
                    self[produced_id] = kernel, to_lhs, lhs
                elif not leads:
                    leads = True
                    self[produced_id] = kernel, to_rhs, rhs
            else:
                flows = [
                    pullback if parent in needed else None
                    for parent, pullback in zip(parents, pullbacks, strict=True)
                ]
                leads = any(flows)
                self[produced_id] = kernel, tuple(flows), parents
            if leads:
                needed.add(produced_id)
                left.append(produced_id)
            else:
                del self[produced_id]
        return left

    def reached_from(self, ids: Iterable[int]) -> set[int]:
        """Return the ids, and all to which a gradient flows on from them."""
        reached = set(ids)
        for produced_id in sorted(self, reverse=True) if reached else ():
            if produced_id in reached:
                _, pullbacks, parents = with_tuples(self[produced_id])
                reached.update(
                    [p for p, pullback in zip(parents, pullbacks, strict=True) if pullback]
                )
        return reached

    def checked(self, check: Check) -> Recorder:
        """Return the same records with `check` called on what every pullback takes and gives."""
        checked = Recorder()
        for produced_id, record in self.items():
            kernel, pullbacks, parents = with_tuples(record)
            name = op_name(kernel)
            # Tapes within `source_lines` know it.
            if (place := getattr(kernel, "place", None)) is not None:
                name = f"{name} at {place}"
            checked[produced_id] = (
                kernel,
                tuple(
                    [
                        pullback and partial(_pull_back, pullback, check, name, produced_id, parent)
                        for pullback, parent in zip(pullbacks, parents, strict=True)
                    ]
                ),
                parents,
            )
        return checked


def with_tuples(record: Record) -> tuple[Kernel, Pullbacks, tuple[int, ...]]:
    """Return a record with its pullbacks and ids in tuples, also if there is one of each."""
    kernel, pullbacks, parents = record
    return (kernel, (pullbacks,), (parents,)) if isinstance(parents, int) else record


def _pull_back(
    pullback: Pullback, check: Check, name: str, produced_id: int, parent: int, g: Array
) -> Array:
    # Each summand was finite, but their sum may have overflowed.
    check(name, produced_id, g)
    gradient = pullback(g)
    check(name, parent, gradient)
    return gradient


def _summed(
    summed: set[int], unique_id: int, earlier: Array, pullback: Pullback, g: Array
) -> Array:
    """Return the sum of a gradient and of what `pullback` gives.

    It is written over the earlier one if that was made here, so that nobody else holds it.
    """
    if unique_id not in summed:
        summed.add(unique_id)
        # It has a name, for numpy would write the sum over a large value without one, in its order.
        added = pullback(g)
        return earlier + added
    if pullback.__class__ is PartPullback and earlier.__class__ is g.__class__:
        pullback.add_to(earlier, g)
        return earlier
    added = pullback(g)
    if are_added_in_place(earlier, added):
        earlier += added
        return earlier
    return earlier + added


def check_finite(gradient: Array, origin: str, place: str) -> None:
    """Raise NumericalInstabilityError if a floating array holds a NaN or an infinity.

    Args:
        gradient: the array. One that is captured goes by way of `run_check`.
        origin: the op that it comes from, for the message.
        place: what it is the gradient of, for the message.
    """
    finite = np.isfinite(gradient)
    if np.all(finite):
        return
    values = np.ravel(gradient)[~np.ravel(finite)]
    raise NumericalInstabilityError(
        f"backward: the gradient of {place}, from {origin!r}, is not finite: {values.size} of "
        f"{gradient.size} elements are NaN or infinite, the first is {values[0]}"
    )


def check_unused(
    op: str, records: Recorder, output: int, unused: str, wanted: Mapping[int, Any] | None = None
) -> None:
    """Raise MissingGradientError if it is asked for and gradients do not get everywhere.

    Args:
        op: for the message.
        records: what is recorded.
        output: the id that gradients flow from.
        unused: "error" to ask for it.
        wanted: by id the tensors, or their names, that must get one, beside all that is recorded.

    Raises:
        ArgumentValueError: if `unused` is neither "ignore" nor "error".
    """
    check_choice(op, "unused", unused, ("ignore", "error"))
    if unused == "ignore":
        return
    reached = records.reached_from({output})
    names = [op_name(records[one][0]) for one in sorted(records) if one not in reached]
    if names:
        raise MissingGradientError(
            f"{op}: {len(names)} recorded ops do not lead to the output, so no gradient reaches "
            f'them: {", ".join(names)}; leave them out, or write unused="ignore"'
        )
    missed = [name_of(one) for key, one in (wanted or {}).items() if key not in reached]
    if missed:
        raise MissingGradientError(
            f"{op}: no gradient reaches {', '.join(missed)}; leave them out of wrt, use them in "
            "ops that are recorded (weight.retaped(x.tape_type) before plain ops), or write "
            'unused="ignore"'
        )


def op_name(kernel: Callable[..., object]) -> str:
    """Return the name of an op as its user writes it."""
    if isinstance(kernel, partial):
        kernel = kernel.func
    name: str = getattr(kernel, "__name__", type(kernel).__name__)
    return name.removesuffix("_number")
