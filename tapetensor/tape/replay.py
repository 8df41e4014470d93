"""The one loop that runs steps backwards, and what is asked of the steps before it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from sys import getrefcount
from typing import Any, Literal, TypeAlias

import numpy as np

from tapetensor.arrays.array import Array, are_added_in_place
from tapetensor.errors import MissingGradientError, NumericalInstabilityError
from tapetensor.tape.gaps import Gap, check_complete, name_of, used_error
from tapetensor.tape.history import BackwardPass, Step, UsedUp, flows, op_name, reached_from
from tapetensor.tape.pullbacks import (
    CONSTANT,
    AddingPullback,
    JointPullbacks,
    PartPullback,
    Pullback,
)

# Called with the op and the id of every gradient that a pullback takes or gives.
Check: TypeAlias = Callable[[str, int, Array], None]
# What to do with a recorded op that does not lead to the output.
Unused: TypeAlias = Literal["ignore", "error"]


def replay(
    steps: list[Step],
    arrays: dict[int, Array],
    done: BackwardPass,
    gaps: list[Gap],
    *,
    keeps_all: bool = False,
    kept: frozenset[int] = frozenset(),
    needed: AbstractSet[int] | None = None,
) -> dict[int, Array]:
    """Run steps backwards, latest first, and return the gradients by id.

    The list and the steps in it are used up. A step whose output received no cotangent does not
    lead to the result and is skipped. The gradients that are returned are those of leafs (what no
    step produced) and of plain values.

    Args:
        steps: the earliest first.
        arrays: the cotangents to start from; used up as well.
        done: what says of a step that it is used up.
        gaps: where to note what gradients stopped at.
        keeps_all: whether to return the gradients of all that steps produced as well.
        kept: the ids among what steps produced to return the gradients of.
        needed: the ids that gradients flow to, as `needed_for` returns them; None for all.

    Raises:
        TapeUsedError: if another thread has used a step up in the meantime.
    """
    finished: dict[int, Array] = {}
    # The ids whose gradient was made here and is nobody else's: a sum, a part among zeros.
    summed: set[int] = set()
    take_step, take = steps.pop, arrays.pop
    selects = keeps_all or bool(kept)
    while steps:
        step = take_step()
        produced_id, _, pullbacks, parents, earlier, is_plain = step
        g = take(produced_id, None)
        if pullbacks is None:
            if g is not None:
                if needed is None:
                    if not is_plain:
                        raise used_error("backward", step)
                    gaps.append(Gap.at(step, g.shape))
                finished[produced_id] = g
            elif needed is None:
                # No gradient says what is behind it.
                done.origins.append(parents)
            continue
        step[2] = None
        step[4] = done
        if is_plain:
            _leave_plain(step, pullbacks, earlier, done)
            if g is not None and needed is None:
                finished[produced_id] = g
        if g is None:
            if needed is None:
                done.origins.append(parents)
            continue
        if selects and (keeps_all or produced_id in kept):
            finished[produced_id] = g
        if parents.__class__ is not int:
            if len(parents) != 2 or pullbacks.__class__ is JointPullbacks:
                if needed is not None and pullbacks.__class__ is JointPullbacks:
                    pullbacks = _narrowed(parents, pullbacks, needed)
                # As many parents as pullbacks; saying so to zip() costs a tenth of the loop.
                for parent, pullback in zip(parents, pullbacks):  # noqa: B905
                    if pullback is not None and (needed is None or parent in needed):
                        if pullback is CONSTANT:
                            gaps.append(Gap.constant(step, parent, steps))
                        elif parent in arrays:
                            arrays[parent] = _summed(summed, parent, arrays[parent], pullback, g)
                        else:
                            arrays[parent] = pullback(g)
                continue
            # Written out, for a zip() costs as much as half a small op: the first of the two,
            # and then the second as if it were alone.
            parent, parents = parents
            pullback, pullbacks = pullbacks
            if pullback is not None and (needed is None or parent in needed):
                if parent in arrays:
                    arrays[parent] = _summed(summed, parent, arrays[parent], pullback, g)
                else:
                    arrays[parent] = pullback(g)
            if pullbacks is None:
                continue
        if needed is not None and parents not in needed:
            continue
        # No variable holds what an array among the gradients is, which may then be added to.
        if parents in arrays:
            arrays[parents] = _summed(summed, parents, arrays[parents], pullbacks, g)
        else:
            arrays[parents] = pullbacks(g)
            if pullbacks.__class__ is PartPullback:
                # A fresh array, as a sum is.
                summed.add(parents)
    # What is left belongs to ids that no step produced: leafs.
    finished.update(arrays)
    return finished


def _leave_plain(step: Step, pullbacks: Any, earlier: Any, done: BackwardPass) -> None:
    """Leave a plain value's step as the gap that it is from now on, which knows its past."""
    step[4] = None
    if pullbacks == ():
        # A detached value stays one.
        step[2] = ()
    elif pullbacks is not None:
        step[1] = UsedUp(step[1])
        step[1].done = done
        parents = (step[3],) if step[3].__class__ is int else step[3]
        step[3] = parents if earlier is None else (*parents, earlier)


def emptied(steps: Iterable[Step], done: BackwardPass) -> None:
    """Use steps up without running them."""
    for step in steps:
        if step[5]:
            pullbacks, step[2] = step[2], None
            _leave_plain(step, pullbacks, step[4], done)
        elif step[2] is not None:
            step[2] = None
            step[4] = done


def needed_for(
    op: str, steps: list[Step], output_id: int, wanted: Mapping[int, Any]
) -> tuple[set[int], list[Step]]:
    """Return the ids through which gradients flow to those that are wanted, and the gaps.

    Args:
        op: for the message of an error.
        steps: the earliest first.
        output_id: the id that gradients flow from.
        wanted: by id the tensors, or their names.

    Raises:
        MissingGradientError: if a gradient that is wanted would lack a part.
        TapeUsedError: if that is because a backward pass has used a step up.
    """
    needed = set(wanted)
    gaps = []
    constants: list[tuple[Step, int]] = []
    for step in steps:
        produced_id, _, pullbacks, parents, _, _ = step
        if pullbacks is None:
            gaps.append(step)
        # Nothing flows to an operand without a pullback: indices, a mask.
        elif parents.__class__ is int:
            if parents in needed:
                needed.add(produced_id)
        elif len(parents) == 2:
            # Written out: most steps have one operand or two.
            lhs, rhs = parents
            to_lhs, to_rhs = pullbacks
            if (lhs in needed and to_lhs is not None) or (rhs in needed and to_rhs is not None):
                needed.add(produced_id)
        else:
            for parent, pullback in zip(parents, pullbacks, strict=True):
                if pullback is CONSTANT:
                    constants.append((step, parent))
                elif parent in needed and pullback is not None:
                    needed.add(produced_id)
    if gaps or constants:
        check_complete(op, steps, output_id, wanted, gaps, constants)
    return needed, gaps


def _narrowed(
    parents: tuple[int, ...], pullbacks: JointPullbacks, needed: AbstractSet[int]
) -> JointPullbacks:
    """Return joint pullbacks that compute what is needed of them, and no more."""
    are_needed = tuple(
        [
            pullback is not None and parent in needed
            for parent, pullback in zip(parents, pullbacks, strict=True)
        ]
    )
    return pullbacks if all(are_needed) else pullbacks.narrow(are_needed)


def copies(steps: Iterable[Step], needed: AbstractSet[int]) -> list[Step]:
    """Return copies of the steps that lead to what is needed, for a replay that uses them up."""
    return [step[:] for step in steps if step[0] in needed]


def check_reached(steps: list[Step], output_id: int) -> None:
    """Raise TapeUsedError if gradients would arrive at a step that was used up."""
    reached = reached_from(steps, {output_id})
    for step in reversed(steps):
        if step[2] is None and not step[5] and step[0] in reached:
            raise used_error("backward", step)


def replay_by_group(
    steps: list[Step],
    arrays: dict[int, Array],
    done: BackwardPass,
    needed: AbstractSet[int],
    groups: Sequence[frozenset[int]],
) -> Iterator[dict[int, Array]]:
    """Run steps backwards in parts; yield the gradients of a group once they are final.

    The groups come in the order given. Between two of them no step runs, so that the caller can
    start something with one before the rest is computed. The steps are used up.

    Args:
        steps: those that lead to the groups, the earliest first.
        arrays: the cotangents to start from; used up as well.
        done: as for `replay`.
        needed: as for `replay`.
        groups: the ids to yield gradients for. One to which none flows is left out.
    """
    wanted = frozenset[int]().union(*groups)
    produced = {step[0] for step in steps}
    if not wanted.isdisjoint(produced):
        # What a step produced is final before that step runs, which a leaf need not wait for. So
        # rare that it is not worth parts.
        finished = replay(steps, arrays, done, [], kept=wanted, needed=needed)
        yield from [{key: finished[key] for key in group & finished.keys()} for group in groups]
        return
    # The first step to use an id is the last one to run.
    first_use: dict[int, int] = {}
    for step in steps:
        for parent, _ in flows(step):
            first_use.setdefault(parent, step[0])
    for group in groups:
        stop = min([first_use[key] for key in group if key in first_use], default=None)
        part: list[Step] = []
        while stop is not None and steps and steps[-1][0] >= stop:
            part.append(steps.pop())
        arrays = replay(part[::-1], arrays, done, [], needed=needed)
        # What is handed out is held no longer: it may be large.
        yield {key: arrays.pop(key) for key in [*arrays] if key in group}


def checked(steps: Iterable[Step], check: Check) -> list[Step]:
    """Return copies of steps with `check` called on what every pullback takes and gives."""
    copies = []
    for step in steps:
        produced_id, kernel, pullbacks, parents, _, size = step
        name = op_name(kernel)
        # Steps within `source_lines` know it.
        if (place := getattr(kernel, "place", None)) is not None:
            name = f"{name} at {place}"
        if pullbacks is not None:
            several: Any = ((parents, pullbacks),)
            if parents.__class__ is not int:
                several = tuple(zip(parents, pullbacks, strict=True))
            pullbacks = tuple(
                [
                    pullback
                    if pullback is None or pullback is CONSTANT
                    else partial(_pull_back, pullback, check, name, produced_id, parent)
                    for parent, pullback in several
                ]
            )
            parents = tuple([parent for parent, _ in several])
        copies.append([produced_id, kernel, pullbacks, parents, None, size])
    return copies


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
    is_own = unique_id in summed
    summed.add(unique_id)
    if isinstance(pullback, AddingPullback) and pullback.adds(earlier, g):
        if type(earlier) is np.ndarray and not is_own:
            is_own = _is_free(_references(earlier), earlier)
        if not is_own:
            earlier = np.copy(earlier)
        pullback.add_to(earlier, g)
        return earlier
    # It has a name, for numpy would write the sum over a large value without one, in its order.
    added = pullback(g)
    if is_own and are_added_in_place(earlier, added):
        earlier += added
        return earlier
    return earlier + added


def _references(array: Array) -> tuple[int, int]:
    """Return how many references there are to an array, and to that which it is a view of."""
    return getrefcount(array), getrefcount(array.base)


def _references_of_free() -> tuple[int, int]:
    """Return those, as Python counts them, of a view that only a dict of gradients holds."""

    def at_a_sum(earlier: Array) -> tuple[int, int]:
        return _references(earlier)

    arrays = {0: np.empty((1, 1)).T}
    return at_a_sum(arrays[0])


_OF_FREE = _references_of_free()


def _is_free(references: tuple[int, int], array: Array) -> bool:
    """Tell by the references to it whether nobody but a dict of gradients holds an array."""
    of_array, of_base = references
    base = array.base
    # Memory that is not numpy's may be anybody's.
    is_whole = type(base) is np.ndarray and base.base is None and of_base == _OF_FREE[1]
    return of_array == _OF_FREE[0] and (base is None or is_whole) and array.flags.writeable


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
    op: str,
    steps: list[Step],
    output_id: int,
    wanted: Mapping[int, Any] | None = None,
) -> None:
    """Raise MissingGradientError if gradients do not get everywhere.

    Args:
        op: for the message.
        steps: what is recorded, the earliest first.
        output_id: the id that gradients flow from.
        wanted: by id the tensors, or their names, that must get one, beside all that is recorded.
    """
    reached = reached_from(steps, {output_id})
    names = [
        op_name(step[1]) for step in steps if step[0] not in reached and step[3] and not step[5]
    ]
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
