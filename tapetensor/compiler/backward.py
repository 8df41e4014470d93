"""The backward pass of a compiled function, which is planned when it is first asked for."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np

from tapetensor.arrays.array import Array
from tapetensor.compiler.node import Kind, Node, replaced
from tapetensor.compiler.operations import Keywords
from tapetensor.compiler.plan import planned
from tapetensor.compiler.program import Program
from tapetensor.compiler.replay import Plan
from tapetensor.errors import HigherOrderError
from tapetensor.tape.pullbacks import JointPullbacks, Pullbacks


class BackwardPlan:
    """From the cotangent of a result to the gradients of what came in.

    Args:
        cotangent: the node of the cotangent.
        gradients: the nodes of the gradients, one per parent.
        forward: how many nodes the forward pass has; what it computed is not computed again.
        nodes: those that the backward passes are made of.

    Attributes:
        residuals: the nodes of the forward pass that have to be kept.
    """

    def __init__(
        self, cotangent: Node, gradients: list[Node], forward: int, nodes: list[Node]
    ) -> None:
        copy = _Copy(lambda node: node.index >= forward or node.kind in (Kind.CONSTANT, Kind.VIEW))
        self._cotangent = copy.of(cotangent)
        self._gradients = [copy.of(node) for node in gradients]
        self._residuals = [
            mine for mine in copy.nodes.values()
            if mine.kind is Kind.INPUT and mine is not self._cotangent
        ]  # fmt: skip
        originals = {mine: node for node, mine in copy.nodes.items()}
        self.residuals = [originals[mine] for mine in self._residuals]
        self._plans: dict[tuple[bool, ...], Plan] = {}
        self._lock = threading.RLock()

    def pullbacks(self, *residuals: Array) -> JointPullbacks:
        """Return the pullbacks of one call, given what its forward pass has kept."""
        narrow = partial(self._narrow, residuals)
        return JointPullbacks(narrow([True] * len(self._gradients)), narrow)

    def run(self, needed: tuple[bool, ...], g: Array, residuals: tuple[Array, ...]) -> list[Any]:
        """Return the gradients that are needed, and None for the others."""
        if not isinstance(g, np.ndarray | np.generic):
            raise HigherOrderError(
                "compile: no derivative of higher order through a compiled function; "
                "call the function without compile"
            )
        with self._lock:
            plan = self._plans.get(needed)
            if plan is None:
                plan = self._plans[needed] = self._planned(needed)
            gradients: list[Any] = plan.run((g, *residuals), {})
        return gradients

    def _narrow(self, residuals: tuple[Array, ...], needed: list[bool]) -> Pullbacks:
        run = _Run(partial(self.run, tuple(needed)), residuals)
        return tuple(
            [
                partial(run.pull_back, position) if is_needed else None
                for position, is_needed in enumerate(needed)
            ]
        )

    def _planned(self, needed: tuple[bool, ...]) -> Plan:
        started = time.perf_counter()
        # Planning rewrites nodes.
        copy = _Copy(lambda node: True)
        gradients = [copy.of(node) for node in self._chosen(needed)]
        inputs = [copy.of(node) for node in (self._cotangent, *self._residuals)]
        names = [f"x{position}" for position in range(len(inputs))]
        planner = planned(copy.program(), dict(zip(inputs, names, strict=True)), gradients)
        layout = planner.layout
        arrays = iter(planner.leaving_expressions())
        returned = "".join([f"{next(arrays) if one else None}, " for one in needed])
        return Plan(
            names=layout.names,
            functions=layout.functions,
            guards=[f"{''.join([f'{name}, ' for name in names])} = args"],
            steps=layout.steps,
            after=[f"return [{returned}]"],
            generators=[],
            updates=[],
            arena_bytes=planner.memory.arena.nbytes,
            started=started,
        )

    def _chosen(self, needed: Iterable[bool]) -> list[Node]:
        return [one for one, is_needed in zip(self._gradients, needed, strict=True) if is_needed]


class _Run:
    """One backward pass: run once for a cotangent, read once for each parent."""

    __slots__ = ("_latest", "_residuals", "_run")

    def __init__(
        self, run: Callable[[Array, tuple[Array, ...]], list[Any]], residuals: tuple[Array, ...]
    ) -> None:
        self._run = run
        self._residuals = residuals
        self._latest: tuple[Array, list[Any]] | None = None

    def pull_back(self, position: int, g: Array) -> Array:
        """Return the gradient of one parent."""
        if self._latest is None or self._latest[0] is not g:
            self._latest = g, self._run(g, self._residuals)
        gradient: Array = self._latest[1][position]
        return gradient


class _Copy:
    """Copies of nodes and of what they are made of.

    Args:
        follows: tells whether a node is made again; any other becomes an input.
    """

    def __init__(self, follows: Callable[[Node], bool]) -> None:
        self._follows = follows
        self.nodes: dict[Node, Node] = {}

    def of(self, node: Node) -> Node:
        """Return the copy of a node."""
        known = self.nodes.get(node)
        if known is not None:
            return known
        # Not by recursion into the operands, of which there may be long chains.
        waiting = [node]
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

    def program(self) -> Program:
        """Return a program of all copies."""
        program = Program()
        program.nodes = sorted(self.nodes.values(), key=lambda node: node.index)
        return program

    def _copied(self, node: Node) -> Node:
        if not self._follows(node):
            return _like(node, Kind.INPUT, None, (), None)
        return _like(
            node, node.kind, node.function, replaced(node.args, self._replace), node.detail
        )

    def _replace(self, value: Any) -> Any:
        if isinstance(value, Keywords):
            return Keywords({key: replaced(one, self._replace) for key, one in value.items()})
        return self.nodes[value] if isinstance(value, Node) else value


def _like(node: Node, kind: Kind, function: Any, args: tuple[Any, ...], detail: Any) -> Node:
    twin = Node(kind, function, args, node.shape, node.dtype, detail, node.index, node.label)
    twin.place = node.place
    return twin
