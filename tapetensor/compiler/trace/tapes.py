"""Tapes that come into a compiled function, and those that leave it.

To the tape of a caller a compiled function is one op: its record names the tensors that came in,
and its pullbacks are a plan of their own, on what the forward pass keeps for them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Never

import numpy as np
from typing_extensions import override

from tapetensor.compiler.emit.backward import BackwardPlan
from tapetensor.compiler.trace.node import DType, Kind, Node, Shape
from tapetensor.compiler.trace.refusals import trace_error
from tapetensor.compiler.trace.tracer import ArrayTracer
from tapetensor.tape import OwnedTape
from tapetensor.tape.gaps import Gap, seen_from_outside
from tapetensor.tape.gradients import Gradients
from tapetensor.tape.origins import Origins, ids_since, origins_of
from tapetensor.tape.recorder import Recorder

if TYPE_CHECKING:
    from tapetensor.compiler.trace.binding import Binding
    from tapetensor.compiler.trace.program import Program
    from tapetensor.compiler.trace.results import ResultWriter


class Tapes:
    """Follows tapes through a function that is captured.

    Meanwhile a tensor that owns a tape owns an empty one instead, which carries a marker. The
    result in which the marker ends up says where the caller's tape goes.

    Args:
        binding: the inputs of the plan.
        op: the function that the record names.
    """

    def __init__(self, binding: Binding, op: Any) -> None:
        self._binding = binding
        self._op = op
        # Each marker by its id, with the variable of the tensor whose tape it stands for.
        self._markers: dict[int, tuple[Gradients, str]] = {}
        # The source of the origins of each of these tensors, by their address in the capture.
        self.histories: dict[int, str] = {}
        self._led_on: set[str] = set()
        # The origins of those of which the function has made a handle, with their sources.
        self.lent: list[tuple[Origins, str]] = []
        self._leaving: list[OwnedTape] = []
        # The tensors that leave.
        self.results: list[Any] = []
        # The lines that make the tapes that leave.
        self.lines: list[str] = []

    def bring(self, tape: OwnedTape, tensor: Any, local: str) -> OwnedTape:
        """Return the tape that takes the place of that of the tensor in a local variable."""
        name = self._op.__name__
        tape.check_usable(name)
        binding = self._binding
        # Read once, for another thread may spend the tensor.
        held = f"{local}_tape"
        binding.guards.append(f"{held} = {local}.tape")
        binding.guard(f"{held}.__class__ is not OwnedTape")
        binding.guards.append(f"{held}.check_usable({binding.bind(name)})")
        is_empty = tape.is_empty
        binding.guard(f"{held}.is_empty is not {is_empty}")
        marker = Gradients()
        if not is_empty:
            marker.arrays = _Outside()
        self._markers[id(marker)] = marker, local
        brought = OwnedTape(marker)
        leads_on = tape.leads_on(tensor.id)
        binding.guard(f"{held}.leads_on({local}._id) is not {leads_on}")
        if leads_on:
            # A handle that is lent inside knows what it would lose.
            history = tape.history(tensor.id)
            origins = origins_of((tensor.id, history))
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
        if not any(tape is one for one in self._leaving):
            self._leaving.append(tape)
        return f"t{[one is tape for one in self._leaving].index(True)}"

    def write(self, writer: ResultWriter) -> None:
        """Write the lines that make the tapes that leave."""
        program = self._binding.program
        forward = len(program.nodes)
        for tape in self._leaving:
            tape.recorded()
        records = self._records(writer)
        del program.nodes[forward:]
        users: dict[str, int] = {}
        for tape in self._leaving:
            sources, carried = [], []
            for key, store in tape.stores.items():
                if key not in self._markers:
                    carried.append(writer.write(store))
                    continue
                local = self._markers[key][1]
                # A tape that goes into several results is whole in each of them.
                is_first = users.setdefault(local, id(tape)) == id(tape)
                sources.append(f"{local}_tape" + ("" if is_first else ".fork()"))
            taken, kept = [
                f"({''.join([f'{one}, ' for one in many])})" for many in (sources, carried)
            ]
            self.lines.append(f"s{self.local(tape)} = {taken}, {kept}")
        op = self._binding.bind(self._op)
        for tape in self._leaving:
            filed, gaps = [], []
            joined = {self._markers[key][1] for key in tape.stores if key in self._markers}
            for unique_id, gap in seen_from_outside(tape.gaps, tape.records, {}).items():
                ids = ids_since(0, gap.origins or ())
                origins = writer.origins(tape.gaps[unique_id].origins, ids)
                if origins and writer.ids.get(unique_id, "").removesuffix("._id") not in joined:
                    known = self._binding.bind(gap)
                    gaps.append(f"({writer.id_of(unique_id)}, {known}, {origins}), ")
            for owner, unique_id, cotangent, gradients in records:
                if owner is not tape:
                    continue
                plan = BackwardPlan(cotangent, list(gradients.values()), forward)
                kept = "".join([f"{writer.node(node)}, " for node in plan.residuals])
                parents = "".join([f"{writer.id_of(one)}, " for one in gradients])
                make = self._binding.bind(plan.pullbacks)
                filed.append(f"({writer.id_of(unique_id)}, {make}({kept}), ({parents})), ")
            local = self.local(tape)
            told = f"({''.join(filed)}), ({''.join(gaps)})"
            self.lines.append(f"{local} = give_tape({op}, *s{local}, {told})")

    def _records(self, writer: ResultWriter) -> list[tuple[OwnedTape, int, Node, dict[int, Node]]]:
        """Run the tapes that leave backwards; return what leads to each result.

        That is the tape, the id of the result, its cotangent, and the gradients of what came in.
        """
        program = self._binding.program
        waiting: list[tuple[OwnedTape, int, Shape, DType]] = [
            (tape, one.id, one.array.shape, one.array.dtype)
            for one in self.results
            for tape in self._leaving
            if one.id in tape.records and one.array.dtype.kind == "f"
        ]
        leafs = frozenset(writer.ids).union(*[tape.records for tape in self._leaving])
        found: list[tuple[OwnedTape, int, Node, dict[int, Node]]] = []
        done: set[tuple[int, int]] = set()
        while waiting:
            tape, unique_id, shape, dtype = waiting.pop()
            if (id(tape), unique_id) in done:
                continue
            done.add((id(tape), unique_id))
            node = program.add(Kind.INPUT, None, (), shape, dtype, label="cotangent")
            started: dict[int, Any] = {unique_id: ArrayTracer(program, node)}
            arrays = Recorder(tape.records).replay(started, leafs - tape.records.keys())
            gradients = {key: _node_of(program, array) for key, array in arrays.items()}
            found.append((tape, unique_id, node, gradients))
            # Another tape that leaves may have recorded how one of these was computed.
            waiting += [
                (other, key, one.shape, one.dtype)
                for key, one in gradients.items()
                for other in self._leaving
                if key in other.records
            ]
        return found


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

    @override
    def get(self, unique_id: int, default: Any = None) -> Any:
        self._lend()
        return super().get(unique_id, default)


class _Outside(dict[int, Any]):
    """The gradients that a tape holds from before the call, which cannot be captured."""

    @override
    def items(self) -> Never:
        """Refuse to be read: a backward pass inside would leave it out."""
        raise trace_error(
            "backward runs inside on a tape with records or gradients from outside; call it "
            "outside, or pass the plain tensor and write x.trace() inside"
        )


def _node_of(program: Program, array: Any) -> Node:
    return array.node if isinstance(array, ArrayTracer) else program.constant(np.asarray(array))
