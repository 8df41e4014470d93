"""The tape: what `NoneTape` and `OwnedTape` are, and the backward pass that starts from one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Never, TypeAlias, final

from typing_extensions import override

from tapetensor.arguments import check_kind
from tapetensor.arrays.array import Array
from tapetensor.arrays.stand_ins import Level, run_check
from tapetensor.errors import TapeClosedError, UntracedTensorError
from tapetensor.pictures import notebook_cell, to_html, tree, users_place
from tapetensor.pictures.places import Located, remembers_lines
from tapetensor.tape.context import GradientContext, active_context
from tapetensor.tape.gaps import Gap
from tapetensor.tape.gradients import Gradients, Tensorlike
from tapetensor.tape.graph import Output, graph_of_steps
from tapetensor.tape.history import BackwardPass, History, Step, gathered, op_name
from tapetensor.tape.pullbacks import Kernel
from tapetensor.tape.replay import (
    Unused,
    check_finite,
    check_reached,
    check_unused,
    checked,
    copies,
    emptied,
    needed_for,
    replay,
    replay_by_group,
)
from tapetensor.tape.row_sparse import values_of


@final
class NoneTape:
    """The tape state of a plain value: nothing is recorded."""

    __slots__ = ()

    @override
    def __repr__(self) -> str:
        """Show the name."""
        return "NoneTape"


# To users there is one class: final, so that checkers tell by `x.tape_type` which tape `x` has.
@final
class OwnedTape:
    """The tape state of a tensor that has a tape: what the results of one recording have in common.

    That is the context that it belongs to, which may close it, and the gradients that it carries.
    What was recorded is the history of each tensor. Where tensors of two tapes meet, the result has
    one that belongs to the contexts of both and carries the gradients of both.

    Args:
        gradients: earlier gradients that the tape carries; a backward pass adds to them.
    """

    __slots__ = ("__weakref__", "contexts", "history", "level", "notes", "reason", "stores")

    def __init__(self, gradients: Gradients | None = None) -> None:
        if gradients is not None:
            check_kind("OwnedTape", "carried gradients", gradients, Gradients, "Gradients")
        context = active_context()
        context.add(self)
        self.contexts: tuple[GradientContext, ...] = (context,)
        # The derivative of higher order that it is made in, None for none.
        self.level: Level | None = context.level
        # Kept by identity: a store that both of two tapes carry counts once where they meet.
        self.stores: dict[int, Gradients] = {} if gradients is None else {id(gradients): gradients}
        # Of a tape that is apart from its tensor.
        self.history: History = None
        # Where a tape of a special kind notes what is recorded.
        self.notes: Any = None
        # Why it was closed.
        self.reason = ""
        if remembers_lines() and self.__class__ is OwnedTape:
            self.__class__ = _WithLines

    @classmethod
    def active(cls) -> OwnedTape:
        """Return the tape of all that is traced in the active context and carries no gradients."""
        context = active_context()
        tape: OwnedTape | None = context.tape
        if tape is None or remembers_lines():
            tape = cls()
            if tape.__class__ is OwnedTape:
                context.tape = tape
        return tape

    @override
    def __repr__(self) -> str:
        """Show how much the tape holds."""
        return self.described(self.history)

    def described(self, history: History) -> str:
        """Return the tape of a tensor of a history in words."""
        if self.is_closed:
            return "OwnedTape(closed)"
        carried = f", carrying {len(self.stores)} Gradients" if self.stores else ""
        return f"OwnedTape({len(recorded(history))} ops{carried})"

    @override
    def __reduce__(self) -> Never:
        """Refuse to be copied or pickled: what is recorded are functions."""
        raise UntracedTensorError(
            "copy: a tape cannot be copied or pickled; any number of tensors may have it"
        )

    def noted(self, step: Step) -> Step:
        """Return the step of an op as it is to be recorded; of special tapes alone."""
        return step

    def common(self, other: OwnedTape) -> OwnedTape:
        """Return the tape of the result of an op on tensors of this tape and of another."""
        if other is self or self._covers(other):
            return self
        if other._covers(self):
            return other
        special = self if self.__class__ is not OwnedTape else other
        contexts = self.contexts + tuple(
            [one for one in other.contexts if one not in self.contexts]
        )
        return special._twin(contexts, self.stores | other.stores)  # noqa: SLF001  # of this class

    def apart(self, history: History) -> OwnedTape:
        """Return this tape as one that is apart from its tensor, with the history of that."""
        tape = self._twin(self.contexts, self.stores)
        tape.history = history
        return tape

    def rejoined(self) -> OwnedTape:
        """Return the tape of a tensor that this one, which was apart, is put on."""
        return self if self.history is None else self._twin(self.contexts, self.stores)

    def beside(self, gradients: Gradients) -> OwnedTape:
        """Return a tape that belongs to the contexts of this one, and carries these gradients.

        It notes nothing of what is recorded, also where this one does.
        """
        return self._twin(self.contexts, {id(gradients): gradients}, is_special=False)

    def _covers(self, other: OwnedTape) -> bool:
        return (
            other.__class__ is OwnedTape
            and (not other.stores or other.stores.keys() <= self.stores.keys())
            and (other.contexts == self.contexts or {*other.contexts} <= {*self.contexts})
        )

    def _twin(
        self,
        contexts: tuple[GradientContext, ...],
        stores: dict[int, Gradients],
        *,
        is_special: bool = True,
    ) -> OwnedTape:
        tape: OwnedTape = object.__new__(self.__class__ if is_special else OwnedTape)
        tape.contexts, tape.level, tape.stores = contexts, self.level, stores
        tape.history, tape.notes, tape.reason = None, self.notes, ""
        for context in contexts:
            context.add(tape)
        return tape

    def close(self, reason: str) -> None:
        """Refuse further use; the next one raises TapeClosedError, which gives the reason."""
        self.__class__ = ClosedTape
        self.reason = reason
        self.stores, self.history = {}, None

    @property
    def is_closed(self) -> bool:
        """Whether a context has closed the tape."""
        return self.__class__ is ClosedTape

    def is_only_of(self, context: GradientContext) -> bool:
        """Tell whether all that is recorded was traced in one context."""
        return self.contexts == (context,)

    def check_usable(self, op: str) -> None:
        """Raise TapeClosedError if the tape is closed."""

    def to_html(
        self, output: Output | None = None, *, names: Mapping[str, Tensorlike[Any]] | None = None
    ) -> str:
        """Return an HTML page that draws the graph of what is recorded; it needs no network.

        The pullbacks run once for it, for their times and for the shapes of what they give; what is
        recorded is not used up. Inside `source_lines` an op knows the line that ran it.

        Args:
            output: the tensor that the tape belonged to, to start from; without it nothing is
                measured, and shapes are not known.
            names: names for inputs, such as ``model.parameters()``.

        Raises:
            TapeClosedError: if the tape is closed.
        """
        self.check_usable("to_html")
        return to_html(graph_of_steps(recorded(self.history), output, names))

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
            TapeClosedError: if the tape is closed.
        """
        self.check_usable("tree")
        return tree(graph_of_steps(recorded(self.history), output, names), ascii)

    def _repr_html_(self, output: Output | None = None) -> str | None:
        """Return the picture for a notebook; None, for the plain repr, if nothing is recorded."""
        steps = recorded(self.history)
        if not steps:
            return None
        return notebook_cell(
            graph_of_steps(steps, output), repr(self if output is None else output)
        )

    def run_backward(
        self,
        history: History,
        output_id: int,
        cotangent: Array,
        wanted: Mapping[int, Any] | None = None,
        *,
        retain: bool = False,
        unused: Unused = "ignore",
        finite: bool = False,
        place: tuple[str, int] | None = None,
    ) -> Gradients:
        """Run the steps of a history backwards and return the gradients.

        The steps are used up. A step runs once, latest first; one whose output received no
        cotangent does not lead to the result and is skipped, and so is, when `wanted` is given,
        every pullback that contributes to none of those ids.

        Args:
            history: of the tensor to differentiate.
            output_id: its id.
            cotangent: its cotangent.
            wanted: the ids to compute gradients for, with their tensors or names for messages; None
                means the leafs that carried gradients declare, or, without a declaration, every
                leaf.
            retain: whether the steps stay.
            unused: "error" to refuse what is recorded and does not lead to the output.
            finite: whether to check every gradient on the way.
            place: the line that runs it, if it is known.

        Raises:
            MissingGradientError: if a gradient that is wanted lacks a part; the steps stay.
            TapeUsedError: if a backward pass has used a step up.
            NumericalInstabilityError: if `finite` and a gradient is not; the steps stay.
        """
        result = self.carried()
        if wanted is None:
            result.drop_non_leafs()
            if result.leafs is not None:
                wanted = dict.fromkeys(result.leafs, "a leaf that is declared")
        steps, is_used = gathered(history)
        if unused == "error":
            check_unused("backward", steps, output_id, wanted)
        done = BackwardPass(place)
        if is_used:
            done.origins += _earlier_passes(steps)
        arrays = {output_id: cotangent}
        gaps: list[Gap] = []
        run = steps
        needed = None
        kept = frozenset(wanted or ())
        if wanted is not None:
            needed, stops = needed_for("backward", steps, output_id, wanted)
            done.origins += [step[3] for step in steps]
            if stops:
                done.size = sum([step[5] for step in stops])
        elif is_used:
            check_reached(steps, output_id)
        if finite:
            _check_finite("the cotangent", output_id, cotangent)
            run = checked(steps, _check_finite)
        elif retain:
            run = [step[:] for step in steps]
        keeps_all = wanted is None and result.is_leaky
        arrays = replay(run, arrays, done, gaps, keeps_all=keeps_all, kept=kept, needed=needed)
        if wanted is None:
            stops = [gap.step for gap in gaps if gap.step is not None]
            done.origins += [*arrays, *stops]
            done.size = sum([step[5] for step in stops])
        else:
            # In the order in which they were found: that of a set depends on the ids.
            arrays = {key: array for key, array in arrays.items() if key in kept}
        if gaps:
            result.gaps += tuple(gaps)
        result.origins += (done,)
        result.accumulate(arrays)
        if finite:
            for unique_id, total in result.arrays.items():
                _check_finite("the sum of gradients", unique_id, total)
            if not retain:
                emptied(steps, done)
        return result

    def run_backward_by_group(
        self,
        history: History,
        output_id: int,
        cotangent: Array,
        groups: Sequence[frozenset[int]],
        names: Mapping[int, str],
    ) -> Iterator[dict[int, Array]]:
        """Run the steps backwards and yield the gradients of each group once they are final.

        What the tape carries is not in them. The steps are used up.

        Args:
            history: of the tensor to differentiate.
            output_id: its id.
            cotangent: its cotangent.
            groups: the ids of leafs; the gradients of one group after the other are yielded.
            names: what messages call those leafs, by id.

        Raises:
            MissingGradientError: if one of the gradients lacks a part; the steps stay.
            TapeUsedError: if a backward pass has used a step up.
        """
        steps, _ = gathered(history)
        needed, _ = needed_for("backward", steps, output_id, names)
        run = copies(steps, needed)
        done = BackwardPass(users_place())
        done.origins = [*_earlier_passes(steps), *[step[3] for step in steps]]
        emptied(steps, done)
        return replay_by_group(run, {output_id: cotangent}, done, needed, groups)

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
            result.declare(result.leafs.union(*kept))
        return result


@final
class ClosedTape(OwnedTape):  # type: ignore[misc]  # final to users alone
    """A tape that a context has closed.

    A context changes the class of a tape for it, so that an open one costs an op nothing.
    """

    __slots__ = ()

    @override
    def check_usable(self, op: str) -> Never:
        raise TapeClosedError(
            f"{op}: the tape was closed when {self.reason}; run the forward pass again from "
            "x.trace(), or take the plain value with detach()"
        )

    @override
    def noted(self, step: Step) -> Never:
        self.check_usable(op_name(step[1]))


@final
class _WithLines(OwnedTape):  # type: ignore[misc]  # final to users alone
    """A tape that remembers which line ran each op."""

    __slots__ = ()

    @override
    def noted(self, step: Step) -> Step:
        kernel: Kernel = step[1]
        step[1] = Located(kernel)
        step[1].place = users_place()
        return step


def recorded(history: History) -> list[Step]:
    """Return the steps that are recorded of a history, and have pullbacks still."""
    return [step for step in gathered(history)[0] if step[2] and not step[5]]


def _earlier_passes(steps: list[Step]) -> list[BackwardPass]:
    """Return the passes that have used up some of the steps."""
    return [step[4] for step in steps if step[4].__class__ is BackwardPass]


def _check_finite(origin: str, unique_id: int, gradient: Array) -> None:
    run_check(check_finite, values_of(gradient), origin, f"the tensor with id {unique_id}")


Tape: TypeAlias = NoneTape | OwnedTape
