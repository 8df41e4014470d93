"""The backward pass of a compiled function, which is planned when it is first asked for."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from tapetensor.arrays.array import Array, is_numpys
from tapetensor.compiler.emit.plan import Plan
from tapetensor.compiler.emit.steps import planned
from tapetensor.compiler.trace.node import Kind, Node, replaced
from tapetensor.compiler.trace.program import Backend, Program
from tapetensor.compiler.trace.tracer import ArrayTracer
from tapetensor.errors import HigherOrderError
from tapetensor.tape.pullbacks import JointPullbacks, Needed


class BackwardPlan:
    """A plan that leads from the cotangent of a result to the gradients of the inputs.

    Args:
        cotangent: the node of the cotangent.
        gradients: the nodes of the gradients, one per parent.
        forward: how many nodes the forward pass has; what it computed is not computed again.
        backend: what runs groups of nodes.

    Attributes:
        residuals: the nodes of the forward pass that have to be kept.
    """

    def __init__(
        self, cotangent: Node, gradients: list[Node], forward: int, backend: Backend
    ) -> None:
        self._backend = backend
        copy = _Copy(lambda node: node.index >= forward or node.kind in (Kind.CONSTANT, Kind.VIEW))
        self._cotangent = copy.of(cotangent)
        self._gradients = [copy.of(node) for node in gradients]
        self._residuals = [
            mine for mine in copy.nodes.values()
            if mine.kind is Kind.INPUT and mine is not self._cotangent
        ]  # fmt: skip
        originals = {mine: node for node, mine in copy.nodes.items()}
        self.residuals = [originals[mine] for mine in self._residuals]
        # The plans that do not run now. Each runs once at a time, so another thread, or a handler
        # of signals, may need one more.
        self._free: dict[Needed, list[Plan]] = {}

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
        copy = _Copy(lambda node: True)
        chosen = zip(self._gradients, needed, strict=True)
        gradients = [copy.of(node) for node, is_needed in chosen if is_needed]
        inputs = [copy.of(node) for node in (self._cotangent, *self._residuals)]
        names = [f"x{position}" for position in range(len(inputs))]
        planner = planned(
            copy.program(self._backend), dict(zip(inputs, names, strict=True)), gradients
        )
        arrays = iter(planner.leaving_expressions())
        returned = "".join([f"{next(arrays) if one else None}, " for one in needed])
        return Plan(
            planner,
            names={},
            guards=[f"{''.join([f'{name}, ' for name in names])} = args"],
            after=[f"return [{returned}]"],
            started=started,
        )


def node_of(program: Program, array: Any) -> Node:
    """Return the node of what a program has computed, or of an array that is known."""
    return array.node if isinstance(array, ArrayTracer) else program.constant(np.asarray(array))


class _Copy:
    """Copies of nodes and of the nodes that they are made of.

    Args:
        follows: tells whether a node is made again; any other becomes an input.
    """

    def __init__(self, follows: Callable[[Node], bool]) -> None:
        self._follows = follows
        self.nodes: dict[Node, Node] = {}

    def of(self, node: Node) -> Node:
        """Return the copy of a node."""
        # Chains of operands may be too long for a recursion.
        waiting = [] if node in self.nodes else [node]
        while waiting:
            one = waiting[-1]
            missing = [] if not self._follows(one) else [
                parent for parent in one.parents() if parent not in self.nodes
            ]  # fmt: skip
            if missing:
                waiting += missing
            else:
                waiting.pop()
                self.nodes.setdefault(one, self._copied(one))
        return self.nodes[node]

    def program(self, backend: Backend) -> Program:
        """Return a program of all copies."""
        program = Program(backend)
        program.nodes = sorted(self.nodes.values(), key=lambda node: node.index)
        return program

    def _copied(self, node: Node) -> Node:
        if not self._follows(node):
            return replace(node, kind=Kind.INPUT, function=None, args=(), detail=None)
        return replace(node, args=replaced(node.args, self._replace))

    def _replace(self, value: Any) -> Any:
        return self.nodes[value] if isinstance(value, Node) else value
