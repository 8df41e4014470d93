"""A part of a model that keeps nothing for the backward pass, and is run again there."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from itertools import zip_longest
from typing import Any, NamedTuple, Never, TypeAlias, overload

import numpy as np
from typing_extensions import TypeVar, override

from tapetensor.arguments import check_function, check_rng
from tapetensor.arrays.array import Array
from tapetensor.arrays.stand_ins import IS_TRACING, captured_among
from tapetensor.checkpointing.fingerprints import Fingerprinted, Fingerprints
from tapetensor.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    UntracedTensorError,
    at_the_call,
)
from tapetensor.surroundings.reachable import Surroundings
from tapetensor.tape import OwnedTape
from tapetensor.tape.context import GradientContext
from tapetensor.tape.history import BackwardPass, Step, flows, gathered, next_id, op_name
from tapetensor.tape.pullbacks import JointPullbacks, Needed
from tapetensor.tape.replay import copies, needed_for, replay
from tapetensor.tape.row_sparse import dense_of
from tapetensor.tensor.apply import Enclosed, apply_enclosing
from tapetensor.tensor.base import check_tensor, wrap
from tapetensor.tensor.tensor import Tensor

X = TypeVar("X", bound=Tensor[Any, Any, Any])
Y = TypeVar("Y", bound=Tensor[Any, Any, Any])
Z = TypeVar("Z", bound=Tensor[Any, Any, Any])
Result = TypeVar("Result", bound=Tensor[Any, Any, Any])


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


class _Outcome(NamedTuple):
    """The results of a run: an id from before it, and all that is later."""

    start: int
    output: Tensor[Any, Any, Any]
    traced: list[Tensor[Any, Any, Any]]
    leafs: list[int]
    recorded: list[OpPrint]
    steps: list[Step]


@overload
def checkpoint(
    f: Callable[[X], Result], x: X, /, *, rng: np.random.Generator | None = None
) -> Result: ...
@overload
def checkpoint(
    f: Callable[[X, Y], Result], x: X, y: Y, /, *, rng: np.random.Generator | None = None
) -> Result: ...
@overload
def checkpoint(
    f: Callable[[X, Y, Z], Result], x: X, y: Y, z: Z, /, *, rng: np.random.Generator | None = None
) -> Result: ...
def checkpoint(
    f: Callable[..., Any], /, *inputs: Any, rng: np.random.Generator | None = None
) -> Any:
    """Return ``f(*inputs)`` as one op that keeps its inputs only and runs `f` again backwards.

        f(x)

    The forward pass drops the intermediate results of `f`. The backward pass computes them again,
    checkpoint by checkpoint, and so needs memory for one at a time. Gradients flow to the inputs
    and to the tensors that `f` closes over, such as a module's parameters.

    The second run repeats the first. It sees the old values of everything that `f` reaches:
    parameters, attributes of modules and of other objects, lists, dicts, globals, numpy arrays of
    up to a MiB. Generators have their old state, so that dropout draws the same mask. Afterwards
    all is as it was: running statistics and counters have moved once. What cannot be found is not
    overlooked: all that the ops of the first run kept for the backward pass is compared with the
    second run by checksums, so that a change is an error in the backward pass, and never a wrong
    gradient. Inside `tt.compile` there is no second run: the plan computes the values again that
    the backward pass reads, but for what was drawn.

    Shape: that of the result of `f`.
    Derivative: that of `f`.
    Tape: the result has a tape if an input has. With plain inputs it is just ``f(*inputs)``.

    Args:
        f: a function of the inputs that returns one tensor, the same in every call. An input with a
            tape comes with another tape, so that `f` knows whether it trains.
        *inputs: one to three tensors, any of which may have a tape.
        rng: a generator that `f` draws from and that cannot be found, such as one that an object of
            another library holds.

    Raises:
        ArgumentTypeError: if `f` is not callable or does not return a tensor, or an input is none.
        UntracedTensorError: if the result of `f` owns no tape though an input does, or `f` uses a
            tensor that owns a tape and is not among the inputs.
        ArgumentValueError: in the backward pass, if the second run computes something else, or `f`
            writes to a numpy array of more than a MiB.

    Source: Chen, Xu, Zhang & Guestrin (2016), "Training deep nets with sublinear memory cost".

    >>> import tapetensor as tt
    >>> x = tt.from_numpy([1.0, 2.0], shape=(2,))
    >>> y = tt.checkpoint(lambda x: (x * 2.0).square().sum(), x.trace())
    >>> y
    Tensor(20., shape=(), dtype=float32, OwnedTape(1 ops))
    >>> y.backward()[x]
    Tensor([ 8., 16.], shape=(2,), dtype=float32, NoneTape)
    """
    check_function("checkpoint", "f", f)
    if not inputs:
        raise ArgumentTypeError("checkpoint: give the tensor to run f on: checkpoint(f, x)")
    for position, x in enumerate(inputs):
        check_tensor("checkpoint", f"input {position}", x)
    if rng is not None:
        check_rng("checkpoint", rng)
    with at_the_call:
        is_traced = any(x.owns_tape for x in inputs)
        if IS_TRACING.get() or not is_traced:
            # A plan computes the values again itself; what is captured for one is run once.
            captured = captured_among([x._array for x in inputs]) if is_traced else None
            run = partial(f, *inputs)
            output = run() if captured is None else captured.capture_checkpoint(run)
            check_tensor("checkpoint", "the result of f", output)
            return output
        part = _Part(f, inputs, Surroundings(f, rng, *inputs))
        ids = tuple([x.id for x in inputs if x.owns_tape])
        return apply_enclosing(checkpoint, partial(part.run_forgetful, ids), inputs)[0]


class _Part(Fingerprinted):
    """A function of tensors that is run forwards once, and again for a backward pass."""

    def __init__(
        self,
        f: Callable[..., Any],
        inputs: tuple[Tensor[Any, Any, Any], ...],
        surroundings: Surroundings,
    ) -> None:
        self.f = f
        # A plain input is given on as it is: what flows to it flows to its id, as to any leaf. Of
        # one that owns a tape only the value is kept.
        self.plain_inputs = tuple([None if x.owns_tape else x for x in inputs])
        self.arrays: tuple[Array, ...] = ()
        # Of those that own a tape.
        self.ids: tuple[int, ...] = ()
        self.surroundings = surroundings
        self.leafs: list[int] = []
        self.recorded: list[OpPrint] = []
        # How many values inside gradients stop at.
        self.stops = 0

    @property
    @override
    def fingerprint(self) -> object:
        """The record of the first run; its leafs are parents of the record of this part."""
        return tuple(self.recorded)

    def run_forgetful(self, ids: tuple[int, ...], *arrays: Array) -> Enclosed:
        """Run forwards on a tape that keeps no pullback, and learn which leafs there are."""
        self.arrays = arrays
        self.ids = ids
        outcome = self._run(is_kept=False)
        self.leafs, self.recorded = outcome.leafs, outcome.recorded
        # Values inside through which no gradient flows: it arrives there all the same.
        stops = [step for step in outcome.steps if step[2] is None and step[0] > outcome.start]
        self.stops = len(stops)
        parents = (*ids, *self.leafs, *[step[0] for step in stops])
        pullbacks = JointPullbacks((True,) * len(parents), self.run_again)
        histories = [step for step in outcome.steps if step[5] and step[0] <= outcome.start]
        return [outcome.output._array], parents, [pullbacks], [*stops, *histories]

    def run_again(self, needed: Needed, g: Array) -> list[Any]:
        """Run forwards and backwards; return the cotangents of the parents that are needed."""
        with self.surroundings.as_before():
            outcome = self._run(is_kept=True)
        if outcome.leafs != self.leafs:
            raise _not_repeatable("gave a result by other parameters")
        if outcome.recorded != self.recorded:
            raise _not_repeatable(_difference(self.recorded, outcome.recorded))
        traced = outcome.traced
        parents = [*[x.id for x in traced], *self.leafs]
        # Not strict: those of values inside come last.
        wanted = {one: "an operand of checkpoint" for one, is_in in zip(parents, needed) if is_in}  # noqa: B905
        needed_ids, _ = needed_for("backward", outcome.steps, outcome.output.id, wanted)
        found = replay(
            copies(outcome.steps, needed_ids), {outcome.output.id: g}, BackwardPass(), [],
            kept=frozenset(wanted), needed=needed_ids,
        )  # fmt: skip
        for x in traced:
            # f need not depend on every input. What flows on from one is the whole of its gradient.
            of_x = found.get(x.id)
            found[x.id] = np.zeros_like(x._array) if of_x is None else dense_of(of_x)
        nothing: list[Any] = [np.zeros((), g.dtype)] * self.stops
        return [*[found.get(unique_id) for unique_id in parents], *nothing]

    def _run(self, *, is_kept: bool) -> _Outcome:
        """Run forwards; keep what a backward pass needs, or nothing."""
        start = next_id()
        # What both runs find as it is need not be looked through.
        fingerprints = Fingerprints([*self.arrays, *self.surroundings.arrays])
        run = Run(fingerprints, is_kept=is_kept)
        with GradientContext() as inside:
            handles: list[Tensor[Any, Any, Any]] = []
            for plain_input, array in zip(self.plain_inputs, self.arrays, strict=True):
                if plain_input is None:
                    # A twin of what had a tape has one that notes its run.
                    tape = FingerprintingTape()
                    tape.notes = run
                    handles.append(wrap(Tensor, array, next_id(), tape))
                else:
                    handles.append(plain_input)
            traced = [x for x in handles if x.owns_tape]
            output = self._call(handles, inside)
        steps, _ = gathered(output.history)
        leafs, recorded = run.leading_to(steps, output.id, [x.id for x in handles], start)
        recorded.append(("result", fingerprints.of(output._array)))
        return _Outcome(start, output, traced, leafs, recorded, steps)

    def _call(
        self, handles: list[Tensor[Any, Any, Any]], inside: GradientContext
    ) -> Tensor[Any, OwnedTape, Any]:
        output: Tensor[Any, OwnedTape, Any] = self.f(*handles)
        check_tensor("checkpoint", "the result of f", output)
        if not isinstance(output.tape, OwnedTape):
            raise UntracedTensorError(
                "checkpoint: the result of f owns no tape, so it does not depend on the traced "
                "input; inside f use the tensor that it is given, without detach()"
            )
        if not output.tape.is_only_of(inside):
            raise UntracedTensorError(
                "checkpoint: f uses a tensor that owns a tape from outside; "
                "give it to checkpoint as another input"
            )
        return output


def _difference(first: list[OpPrint], second: list[OpPrint]) -> str:
    """Return where two runs part."""
    (name, _), (other, _) = next(
        pair
        for pair in zip_longest(first, second, fillvalue=("result", None))
        if pair[0] != pair[1]
    )
    if "result" not in (name, other):
        return f"computed something else, first in {other!r},"
    return "gave another result"


def _not_repeatable(what: str) -> ArgumentValueError:
    return ArgumentValueError(
        f"checkpoint: in the backward pass f {what} than in the forward pass, so that its "
        "gradients would be wrong; it draws from a generator that is out of sight (give it as "
        "rng=), or depends on something that was changed in between"
    )
