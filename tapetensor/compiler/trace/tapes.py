"""Tapes and histories that come into a compiled function.

In the history of a caller a compiled function is one step.
"""

from __future__ import annotations

import weakref
from typing import Any, Never

from typing_extensions import override

from tapetensor.arrays.array import Array
from tapetensor.compiler.trace.guards import GuardWriter
from tapetensor.compiler.trace.program import Program
from tapetensor.compiler.trace.refusals import trace_error
from tapetensor.tape import OwnedTape
from tapetensor.tape.gaps import Gap, computed_outside
from tapetensor.tape.gradients import Gradients
from tapetensor.tape.history import OWN, History, Step, detached_step, ids_before, is_detached


class Tapes:
    """Follows tapes and histories through a function that is captured.

    During the capture a tensor with a tape has another tape, which carries a marker. The markers in
    the tape of a result say which tapes of the caller it has. The history of a tensor is one step
    meanwhile, through which no gradient can flow.

    Args:
        guards: where it writes the conditions on tapes.
        program: the captured program.
        op: the function that the steps of the results name.
    """

    def __init__(self, guards: GuardWriter, program: Program, op: Any) -> None:
        # They refer to this, too.
        self._guards = weakref.proxy(guards)
        self.program = program
        self.op = op
        # Each marker by its id, with the variable of the tensor whose tape it is for.
        self.markers: dict[int, tuple[Gradients, str]] = {}
        # The source of each history that came in, by the address of what it is in the capture.
        self.histories: dict[int, tuple[History, str]] = {}
        # Whether a backward pass has run inside.
        self.has_replayed = False
        self.leaving: list[OwnedTape] = []
        # The tensors that leave, whose histories lead to what came in.
        self.results: list[tuple[Any, str]] = []

    def bring(self, tape: OwnedTape, local: str) -> OwnedTape:
        """Return the tape that takes the place of that of the tensor in a local variable."""
        name = self.op.__name__
        tape.check_usable(name)
        guards = self._guards
        guards.guards.append(f"{local}_tape = {local}.tape")
        guards.guard(f"{local}_tape.__class__ is not {guards.bind(tape.__class__)}")
        guards.guard(f"bool({local}_tape.stores) is not {bool(tape.stores)}")
        marker = Gradients()
        if tape.stores:
            marker.arrays = _Outside()
        self.markers[id(marker)] = marker, local
        # Not in the context that is entered where it is found.
        return tape.beside(marker)

    def enter(self, history: History, tensor: Any, local: str) -> History:
        """Return the stand-in for the history of a tensor that comes in."""
        if history is None or history is OWN:
            return history
        entered = history
        if is_detached(history):
            entered = detached_step(tensor.id)
        elif history[2] is not None:
            found = ids_before(history)
            ids = tuple(sorted({*found, *[one for each in found.ranges for one in each]}))
            # Gradients stop at what was computed; of what is recorded that would be unexpected.
            entered = [tensor.id, computed_outside, None, ids, None, history[5]]
            if not history[5]:
                entered[2] = (_no_way_out,) * len(ids)
        self.histories[id(entered)] = entered, f"{local}.history"
        return entered

    def is_outside(self, step: Step) -> bool:
        """Tell whether a step stands for the history of a tensor that came in."""
        return id(step) in self.histories

    def local(self, tape: OwnedTape) -> str:
        """Return the variable of a tape that leaves."""
        if tape.is_closed:
            raise trace_error(
                "a result has a tape of a context that is left inside; return x.detach()"
            )
        if not any(tape is one for one in self.leaving):
            self.leaving.append(tape)
        return f"t{[one is tape for one in self.leaving].index(True)}"


def kind_of(history: History) -> tuple[bool, ...]:
    """Return the facts of a history on which ops and a backward pass of a plan depend."""
    if history is None:
        return ()
    return history is OWN, history[2] is None, is_detached(history), history[5] > 0


def overlap(
    history: Step, fixed: frozenset[int], others: tuple[int, ...]
) -> tuple[frozenset[int], tuple[bool, ...]]:
    """Return which of the fixed ids are before a value, and of the others whether they are."""
    found = ids_before(history, min(fixed.union(others), default=0))
    return frozenset(found.among(fixed)), tuple([one in found for one in others])


def lacking(
    gaps: tuple[Gap, ...], fixed: frozenset[int], others: tuple[int, ...]
) -> tuple[frozenset[int], tuple[bool, ...]]:
    """Return of which of the fixed ids the gradients lack a part, and whether of the others."""
    if not gaps:
        return frozenset(), (False,) * len(others)
    found = {key for key in (*fixed, *others) for one in gaps if one.concerns(key)}
    return fixed & found, tuple([one in found for one in others])


def _no_way_out(_: Array) -> Never:
    raise trace_error(
        "backward runs inside, through what was recorded outside; call it outside, or compute all "
        "of it inside, from the plain tensor and x.trace()"
    )


class _Outside(dict[int, Any]):
    """The gradients that a tape holds from before the call, which cannot be captured."""

    @override
    def items(self) -> Never:
        """Refuse to be read: a backward pass inside would leave it out."""
        raise trace_error(
            "backward runs inside on a tape with gradients from outside; call it outside, or pass "
            "the plain tensor and write x.trace() inside"
        )
