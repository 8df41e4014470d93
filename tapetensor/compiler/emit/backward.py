"""The plan of the backward pass of a compiled function, made when it is first asked for."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from typing_extensions import override

from tapetensor.arrays.array import Array, is_numpys
from tapetensor.checkpointing.fingerprints import Fingerprinted
from tapetensor.compiler.emit.plan import Plan
from tapetensor.compiler.emit.steps import planned
from tapetensor.compiler.plan.storage import made_of
from tapetensor.compiler.trace.node import Backend, Kind, Node, replaced
from tapetensor.compiler.trace.program import Program
from tapetensor.compiler.trace.tracer import ArrayTracer
from tapetensor.errors import HigherOrderError
from tapetensor.tape.pullbacks import JointPullbacks, Needed


class BackwardPlan(Fingerprinted):
    """A plan that leads from the cotangent of a result to the gradients of the inputs.

    What the nodes of the forward pass have computed is kept for it, the residuals, and is not
    computed again, but for the values of checkpoints.
    """

    def __init__(
        self,
        cotangent: Node,
        gradients: Sequence[Node | None],
        forward: int,
        backend: Backend,
        again: Collection[Node] = (),
    ) -> None:
        self._backend = backend
        copies = _copies(
            [cotangent, *filter(None, gradients)],
            lambda node: (
                node.index >= forward or node.kind in (Kind.CONSTANT, Kind.VIEW) or node in again
            ),
        )
        self._gradients = [None if node is None else copies[node] for node in gradients]
        self.residuals = [
            node for node, mine in copies.items()
            if mine.kind is Kind.INPUT and node is not cotangent
        ]  # fmt: skip
        self._inputs = [copies[node] for node in (cotangent, *self.residuals)]
        # The plans that do not run now. Each runs once at a time, so another thread, or a handler
        # of signals, may need one more.
        self._free: dict[Needed, list[Plan]] = {}

    @property
    @override
    def fingerprint(self) -> object:
        """Itself: it goes on computing the same."""
        return id(self)

    def pullbacks(self, *residuals: Array) -> JointPullbacks:
        """Return the pullbacks of one call, given what its forward pass has kept."""
        return JointPullbacks((True,) * len(self._gradients), partial(self.run, residuals))

    def run(self, residuals: tuple[Array, ...], needed: Needed, g: Array) -> list[Any]:
        """Return the gradients that are needed, and None for the others."""
        if not is_numpys(g):
            raise HigherOrderError(
                "compile: no derivative of higher order through a compiled function; "
                "call the function without compile"
            )
        free = self._free.setdefault(needed, [])
        try:
            plan = free.pop()
        except IndexError:
            plan = self._planned(needed)
        gradients: list[Any] = plan.run((g, *residuals), {})
        free.append(plan)
        return gradients

    def _planned(self, needed: Needed) -> Plan:
        started = time.perf_counter()
        # Planning rewrites nodes, so it gets copies.
        chosen = zip(self._gradients, needed, strict=True)
        wanted = [node if is_needed else None for node, is_needed in chosen]
        gradients = [node for node in wanted if node is not None]
        copies = _copies([*gradients, *self._inputs], lambda node: True)
        program = Program(self._backend)
        program.nodes = [*copies.values()]
        names = [f"x{position}" for position in range(len(self._inputs))]
        inputs = {copies[node]: name for node, name in zip(self._inputs, names, strict=True)}
        planner = planned(program, inputs, [copies[node] for node in gradients])
        arrays = iter(planner.leaving_expressions())
        returned = "".join([f"{next(arrays) if node else None}, " for node in wanted])
        return Plan(
            planner.code,
            names={},
            guards=[f"{''.join([f'{name}, ' for name in names])} = args"],
            after=[f"return [{returned}]"],
            started=started,
        )


def node_of(program: Program, array: Any) -> Node:
    """Return the node of what a program has computed, or of an array that is known."""
    if isinstance(array, ArrayTracer):
        return array.node
    return program.constant(np.asarray(array))


def _copies(nodes: list[Node], is_made_here: Callable[[Node], bool]) -> dict[Node, Node]:
    """Return copies of nodes and of what they are made of, in order; each by its original.

    What is not made here becomes an input.
    """
    copies: dict[Node, Node] = {}
    for node in sorted(made_of(nodes, is_made_here), key=lambda node: node.index):
        if is_made_here(node):
            args = replaced(node.args, lambda one: copies[one] if isinstance(one, Node) else one)
            copies[node] = replace(node, args=args)
            copies[node].checkpoint = node.checkpoint
        else:
            copies[node] = replace(node, kind=Kind.INPUT, function=None, args=(), detail=None)
    return copies
