"""Tapes that come into a compiled function.

To the tape of a caller a compiled function is one op.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from functools import partial
from typing import Any, Never

from typing_extensions import override

from tapetensor.compiler.trace.guards import GuardWriter
from tapetensor.compiler.trace.program import Program
from tapetensor.compiler.trace.refusals import trace_error
from tapetensor.tape import OwnedTape
from tapetensor.tape.gaps import Gap
from tapetensor.tape.gradients import Gradients
from tapetensor.tape.origins import Origins, origins_of


class Tapes:
    """Follows tapes through a function that is captured.

    Meanwhile a tensor that owns a tape owns an empty one instead, which carries a marker. The
    result in which the marker ends up says where the caller's tape goes.

    Args:
        guards: where it writes what has to be true of a tape.
        program: what the function captures.
        op: the function that the record names.
    """

    def __init__(self, guards: GuardWriter, program: Program, op: Any) -> None:
        # They refer to this, too.
        self._guards = weakref.proxy(guards)
        self.program = program
        self.op = op
        # Each marker by its id, with the variable and the id of the tensor whose tape it is for.
        self.markers: dict[int, tuple[Gradients, str, int]] = {}
        # The source of the origins of each of these tensors, by their address in the capture.
        self.histories: dict[int, str] = {}
        self._led_on: set[str] = set()
        # The origins of those of which the function has made a handle, with their sources.
        self.lent: list[tuple[Origins, str]] = []
        self.leaving: list[OwnedTape] = []
        # The tensors that leave.
        self.results: list[Any] = []

    def bring(self, tape: OwnedTape, tensor: Any, local: str) -> OwnedTape:
        """Return the tape that takes the place of that of the tensor in a local variable."""
        name = self.op.__name__
        tape.check_usable(name)
        guards = self._guards
        # Read once, for another thread may spend the tensor.
        held = f"{local}_tape"
        guards.guards.append(f"{held} = {local}.tape")
        guards.guard(f"{held}.__class__ is not OwnedTape")
        guards.guards.append(f"{held}.check_usable({guards.bind(name)})")
        is_empty = tape.is_empty
        guards.guard(f"{held}.is_empty is not {is_empty}")
        marker = Gradients()
        if not is_empty:
            marker.arrays = _Outside()
        self.markers[id(marker)] = marker, local, tensor.id
        # Not in the context that is entered where it is found.
        brought = tape.beside(marker)
        leads_on = tape.leads_on(tensor.id)
        guards.guard(f"{held}.leads_on({local}._id) is not {leads_on}")
        if leads_on:
            # A handle that is lent inside knows what it would lose.
            history = tape.history(tensor.id)
            origins = origins_of(tensor.id, history)
            self.histories[id(origins)] = f"{held}.history({local}._id)"
            self._led_on.add(local)
            gap = Gap(tensor.array.shape, name, None, origins, is_lent=True)
            lend = partial(self.lent.append, (history, self.histories[id(origins)]))
            brought.gaps = _Lending({tensor.id: gap}, lend)
        return brought

    def history(self, local: str) -> str:
        """Return the source of the origins of a tensor that came in."""
        led_on = local in self._led_on
        return f"{local}_tape.history({local}._id)" if led_on else f"{local}.origins"

    def local(self, tape: OwnedTape) -> str:
        """Return the variable of a tape that leaves."""
        if not any(tape is one for one in self.leaving):
            self.leaving.append(tape)
        return f"t{[one is tape for one in self.leaving].index(True)}"


class _Lending(dict[int, Gap]):
    """What a tape from outside leads on to, which tells when a handle of its tensor is made.

    Args:
        gaps: by id.
        lend: called then.
    """

    def __init__(self, gaps: dict[int, Gap], lend: Callable[[], None]) -> None:
        super().__init__(gaps)
        self._lend = lend

    @override
    def __getitem__(self, unique_id: int) -> Gap:
        self._lend()
        return super().__getitem__(unique_id)


class _Outside(dict[int, Any]):
    """The gradients that a tape holds from before the call, which cannot be captured."""

    @override
    def items(self) -> Never:
        """Refuse to be read: a backward pass inside would leave it out."""
        raise trace_error(
            "backward runs inside on a tape with records or gradients from outside; call it "
            "outside, or pass the plain tensor and write x.trace() inside"
        )
