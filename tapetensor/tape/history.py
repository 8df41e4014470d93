"""The history of a tensor: the steps that led to it.

An op gives its result a *step* that names the step of each operand that has one, so results share
what came before them, and two histories meet by being named both. Nothing in a step changes until a
backward pass uses it up. A step that nobody can reach any more is freed.

A step of an op on a tensor with a tape is *recorded*: it has the pullbacks. One of an op on plain
tensors *keeps* its pullbacks where all operands that a gradient flows to belong to a model, and has
none where one of them is data. A step without pullbacks is a *gap*: a gradient that arrives there
stops. That does no harm as long as nobody asks for what it would have flowed on to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet
from functools import partial
from itertools import compress, count
from operator import attrgetter
from typing import Any, Final, Self, TypeAlias, final
from weakref import WeakValueDictionary

import numpy as np
from typing_extensions import override

from tapetensor.arrays.stand_ins import StandIn
from tapetensor.tape.pullbacks import CONSTANT, Pullback, Pullbacks, Zero

# `count().__next__` is atomic under the GIL, so ids are unique across threads.
next_id = count(1).__next__


@final
class TensorId(int):
    """The identity of a tensor, by which `Gradients` files what flowed to it.

    A number like any other in the memory of the library, so that ops pay nothing for it; for
    checkers, and for those who ask ``x.id``, a type of its own.

    >>> import tapetensor as tt
    >>> x = tt.ones((2,))
    >>> x.trace().id == x.id, isinstance(x.id, tt.TensorId)
    (True, True)
    """

    __slots__ = ()

    @classmethod
    def new(cls) -> Self:
        """Return an id that no tensor has, nor ever will: for a value kept beside the tensors'.

        >>> import tapetensor as tt
        >>> tt.TensorId.new() == tt.TensorId.new()
        False
        """
        return cls(next_id())


# A list of six, for a backward pass empties it where it is:
#   0  the id of the result, which is also the time stamp: a larger one is a later one
#   1  the kernel, whose name is that of the op
#   2  the pullbacks, one per operand; None for a gap
#   3  the ids of the operands; of a gap all that it was computed from: ids, ranges that stand for
#      all ids in them, the histories of operands, and backward passes
#   4  the step before it, a tuple of several, or None; once it is used up, the pass that did it
#   5  how long the past of a plain value is: in steps where they keep their pullbacks, in ids
#      otherwise; 0 for a step that is recorded
# An op of one operand has its pullback and its id bare: the tuples around them would be a tenth of
# what a small op costs.
Step: TypeAlias = list[Any]
History: TypeAlias = Step | None


class Recording(list[Step]):
    """The steps of what records by itself, and not on a tensor's tape; the earliest is first."""


# The history of a tensor that belongs to a model, a parameter or a buffer, or that is made of
# numbers: nothing is before it, and what is computed from such tensors alone keeps its pullbacks.
OWN: Final[Step] = [0, None, (), (), None, 1]

# The parameters that are alive, by id.
_trained: WeakValueDictionary[int, Any] = WeakValueDictionary()

# So many steps in a row keep their pullbacks.
MOST_KEPT = 64
# From an op on that chooses among a model's own values by data, as a look-up of ids does: what it
# makes is as large as the data, and no part of a model.
KEPT_OF_CHOSEN = 4
# Of a longer history the ids are kept, and not how they hang together: values that are computed
# from each other for ever, as the state of a filter is, need bounded memory.
MOST_IDS = 512
# So many runs of ids without a gap are told apart then. Among them are in any case so many of the
# oldest, for a model is older than what it is trained on, and of the latest, where weights are that
# a program makes anew.
_MOST_RUNS = 192
_OLDEST_RUNS = 96
_LATEST_RUNS = 48


def op_name(kernel: Callable[..., object]) -> str:
    """Return the name of an op as its user writes it."""
    if isinstance(kernel, partial):
        kernel = kernel.func
    name: str = getattr(kernel, "__name__", type(kernel).__name__)
    return name.removesuffix("_number")


class Ids(set[int]):
    """Ids of tensors: those in the set, and all that lie in one of the ranges."""

    __slots__ = ("ranges",)

    def __init__(self, ids: Iterable[int] = (), ranges: Iterable[range] = ()) -> None:
        super().__init__(ids)
        self.ranges = [*ranges]

    @override
    def __contains__(self, one: object) -> bool:
        return super().__contains__(one) or any(one in each for each in self.ranges)

    @override
    def __ior__(self, others: AbstractSet[int]) -> Self:  # type: ignore[override]  # ids only
        self.update(others)
        self.ranges += others.ranges if isinstance(others, Ids) else ()
        return self

    def among(self, several: Iterable[int]) -> Ids:
        """Return those of several ids that are here."""
        return Ids(filter(self.__contains__, several))


class BackwardPass:
    """A backward pass that has used steps up, or whose gradients are computed with.

    Attributes:
        origins: what its gradients are computed from, as of a gap.
        size: how long the past of the gaps among them is.
        place: the line that ran it, if it is known.
    """

    __slots__ = ("origins", "place", "size")

    def __init__(self, place: tuple[str, int] | None = None) -> None:
        self.origins: list[Any] = []
        self.size = 0
        self.place = place


class UsedUp(partial):  # type: ignore[type-arg]  # of whatever a kernel returns
    """The kernel of a step of a plain value, and the backward pass that took its pullbacks."""

    done: BackwardPass


def recorded_step(
    output_id: int,
    kernel: Callable[..., object],
    pullbacks: Pullbacks,
    operands: tuple[Any, ...],
) -> Step:
    """Return the step of an op on tensors of which one has a tape."""
    parents = []
    earlier: Any = None
    for one in operands:
        parents.append(one._id)
        history = one.history
        if history is not None and history is not OWN and history is not earlier:
            if earlier is None:
                earlier = history
            else:
                earlier = (*earlier, history) if earlier.__class__ is tuple else (earlier, history)
    if len(parents) == 1 and pullbacks[0] is not None:
        return [output_id, kernel, pullbacks[0], parents[0], earlier, 0]
    return [output_id, kernel, pullbacks, tuple(parents), earlier, 0]


def plain_step(
    output_id: int,
    kernel: Callable[..., object],
    pullbacks: Pullbacks,
    operands: tuple[Any, ...],
    options: tuple[Any, ...] = (),
) -> History:
    """Return the history of the result of an op on plain tensors.

    It is None, or that of a model's own tensor, where there is nothing to differentiate.
    """
    if len(operands) == 3 and None not in pullbacks:
        # Written out, for a layer on an input, a weight and a bias.
        x, y, z = operands
        earlier = x.history
        if y.history is OWN and z.history is OWN:
            if earlier is None:
                return [output_id, kernel, None, (x._id, y._id, z._id), None, 3]
            if earlier[2] is None and earlier[5] < MOST_IDS:
                origins = x._id, y._id, z._id, earlier
                return [output_id, kernel, None, origins, None, earlier[5] + 3]
    histories: list[Any] = [one.history for one in operands]
    is_led = [one is not None and one.__class__ is not Zero for one in pullbacks]
    is_chosen = _has_data(kernel, options) or not all(map(is_kept, histories))
    if True not in is_led:
        return None if is_chosen or all(map(is_detached, histories)) else OWN
    leading = list(compress(histories, is_led))
    # Of detached values alone no parameter gets a gradient, so that nothing is kept for it.
    if all(map(is_kept, leading)) and not all(map(is_detached, leading)):
        length = 1 + max([one[5] for one in leading if one is not OWN], default=0)
        if is_chosen:
            length = max(length, 1 + MOST_KEPT - KEPT_OF_CHOSEN)
        if length <= MOST_KEPT:
            step = recorded_step(output_id, kernel, pullbacks, operands)
            step[5] = length
            return step
    found: list[Any] = []
    size = 0
    for operand, earlier, leads in zip(operands, histories, is_led, strict=True):
        if leads:
            found.append(operand._id)
            size += 1
            if earlier is not None and earlier is not OWN:
                size += earlier[5]
                if earlier[2] is None or earlier[5] <= MOST_KEPT - KEPT_OF_CHOSEN:
                    found.append(earlier)
                elif earlier[4] is None and earlier[3].__class__ is tuple:
                    # Data that was chosen by is let go.
                    found += earlier[3]
                else:
                    found += ids_before(earlier)
    return gap_step(output_id, kernel, tuple(found), size)


def is_kept(history: History) -> bool:
    """Tell whether a plain value belongs to a model, or is computed from such values alone."""
    return history is not None and history[2] is not None and history[5] > 0


def detached_step(unique_id: int) -> Step:
    """Return the history of a value that was detached: nothing is before it.

    A program says by it that the value is a constant, so that an op on it and on a model's own
    keeps its pullbacks: the next step of a recurrence, a discriminator on what was generated.
    """
    return [unique_id, detached_step, (), (), None, 1]


def is_detached(history: History) -> bool:
    """Tell whether a value is one that was detached."""
    return history is not None and history is not OWN and history[2] == ()


def gap_step(
    output_id: int, kernel: Callable[..., object], origins: tuple[Any, ...], size: int
) -> Step:
    """Return the step of a value through which no gradient flows.

    Args:
        output_id: the id of the value.
        kernel: what made it.
        origins: ids, ranges of ids, steps and backward passes that it came of.
        size: how many ids they are.
    """
    if size >= MOST_IDS:
        origins = bounded(origins)
        # Many are no long history, and leave room for the steps that follow.
        size = min(len(origins), MOST_IDS // 2)
    return [output_id, kernel, None, origins, None, size]


def bounded(origins: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return any number of origins as a bounded number of ranges, which hold on to nothing."""
    return shortened(ids_before(origins))


def one_pass(passes: tuple[Any, ...]) -> BackwardPass:
    """Return many backward passes, and histories among them, as one of bounded size."""
    several = BackwardPass()
    several.origins = [*bounded(passes)]
    several.size = len(several.origins)
    return several


def size_of(origins: Iterable[Any]) -> int:
    """Return how long the past is that a gap of these origins has."""
    sizes = [one[5] if one.__class__ is list else getattr(one, "size", 0) for one in origins]
    return len(sizes) + sum(sizes)


def joined(output_id: int, first: History, second: History) -> History:
    """Return a history that leads to all that is in two."""
    if first is None or first is OWN:
        return None if second is OWN else second
    if second is None or second is OWN or second is first:
        return first
    return [output_id, joined, (), (), (first, second), 0]


def together(histories: list[Any]) -> Any:
    """Return what names several histories as what is before a step."""
    several = [one for one in histories if one is not None and one is not OWN]
    if not several:
        return None
    return several[0] if len(several) == 1 else tuple(several)


def _has_data(kernel: Callable[..., object], options: tuple[Any, ...]) -> bool:
    """Tell whether an op has been given arrays beside its operands: positions, a mask."""
    if isinstance(kernel, partial):
        options = (*options, *kernel.args, *kernel.keywords.values())
    return any(
        isinstance(one, np.ndarray | StandIn | tuple | list) and _is_data(one) for one in options
    )


def _is_data(option: Any) -> bool:
    if isinstance(option, tuple | list):
        return any(map(_is_data, option))
    return isinstance(option, StandIn) or (isinstance(option, np.ndarray) and option.size > 1)


def gathered(history: History) -> tuple[list[Step], bool]:
    """Return the steps that led to a tensor, the earliest first, up to gaps and to used ones.

    The second value tells whether there is a step among them that was used up.
    """
    steps: list[Step] = []
    append = steps.append
    step: Any = history
    while step.__class__ is list:
        append(step)
        step = step[4]
    if step is None:
        steps.reverse()
        return steps, False
    is_used = False
    found = {one[0]: one for one in steps}
    left = [step]
    while left:
        step = left.pop()
        while step.__class__ is list and step[0] not in found:
            found[step[0]] = step
            step = step[4]
        if step.__class__ is tuple:
            left += step
        elif step.__class__ is BackwardPass:
            is_used = True
    # What only joins two histories is not used up: it goes on leading to what is.
    return [found[key] for key in sorted(found) if found[key][1] is not joined], is_used


def flows(step: Step) -> list[tuple[int, Pullback]]:
    """Return the ids that gradients flow on to from a step, with the pullbacks."""
    _, _, pullbacks, parents, _, _ = step
    if pullbacks is None:
        return []
    if parents.__class__ is int:
        return [(parents, pullbacks)]
    return [
        (parent, pullback)
        for parent, pullback in zip(parents, pullbacks, strict=True)
        if pullback is not None and pullback is not CONSTANT
    ]


def reached_from(steps: Iterable[Step], ids: Iterable[int]) -> set[int]:
    """Return the ids, and all to which a gradient flows on; of the steps the earliest is first."""
    reached = set(ids)
    for step in reversed([*steps]) if reached else ():
        if step[0] in reached:
            reached.update([parent for parent, _ in flows(step)])
    return reached


def ids_before(step: Step | tuple[Any, ...], first: int = 0) -> Ids:
    """Return the ids, from `first` on, that lie behind a step, or are among origins or behind them.

    Nothing is computed from a later id, so that what is older than `first` is not looked through.
    """
    found = Ids()
    seen: set[int] = set()
    left: list[Any] = [step]
    while left:
        one = left.pop()
        if one.__class__ is list:
            # OWN, at 0, is never looked into.
            if one[0] > first and one[0] not in seen:
                seen.add(one[0])
                left.append(one[4])
                if one[3].__class__ is int:
                    found.add(one[3])
                else:
                    _sort_origins(one[3], found, left)
        elif one.__class__ is tuple:
            _sort_origins(one, found, left)
        elif one.__class__ is range:
            found.ranges.append(one)
        elif one.__class__ is BackwardPass and id(one) not in seen:
            seen.add(id(one))
            _sort_origins(one.origins, found, left)
    return found


def _sort_origins(origins: Iterable[Any], found: Ids, left: list[Any]) -> None:
    for one in origins:
        if isinstance(one, int):
            found.add(one)
        elif one is not None:
            left.append(one)


def own(tensor: Any, *, is_trained: bool) -> None:
    """Make a tensor a model's own.

    Args:
        tensor: plain, and no value that was computed from parameters.
        is_trained: whether it is a parameter, so that what is computed from it is no leaf.
    """
    tensor.history = OWN
    if is_trained:
        _trained[tensor.id] = tensor


def comes_of_parameters(history: History) -> bool:
    """Tell whether a parameter is behind a value, or anything that a tape has recorded."""
    if history is None or history is OWN:
        return False
    ids = ids_before(history)
    are_ranges = [one for each in ids.ranges for one in [*_trained] if one in each]
    return not history[5] or bool(are_ranges) or not ids.isdisjoint(_trained)


def shortened(ids: Ids) -> tuple[Any, ...]:
    """Return many ids as a bounded number of ranges.

    Where they are scattered more than there is room for, the smallest gaps between them are closed,
    but for the oldest and the latest ones: an id too many leads to an error that `detach()` cures,
    one too few to a wrong gradient.
    """
    runs: list[range] = []
    alone = [range(one, one + 1) for one in ids]
    for one in sorted([*ids.ranges, *alone], key=attrgetter("start")):
        if runs and one.start <= runs[-1].stop:
            runs[-1] = range(runs[-1].start, max(one.stop, runs[-1].stop))
        else:
            runs.append(one)
    middle = range(_OLDEST_RUNS, len(runs) - _LATEST_RUNS)
    between = sorted(middle, key=lambda one: runs[one].start - runs[one - 1].stop)
    closed = {*between[: max(len(runs) - _MOST_RUNS, 0)]}
    kept: list[range] = []
    for number, one in enumerate(runs):
        if number in closed:
            kept[-1] = range(kept[-1].start, one.stop)
        else:
            kept.append(one)
    return tuple(kept)
