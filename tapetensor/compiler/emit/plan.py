"""A plan: the generated function that replays a captured one, and information about it."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np

from tapetensor.compiler.emit.code import Code, Step, indented
from tapetensor.compiler.trace.guards import MISS, Guard, first_difference, recognizing
from tapetensor.compiler.trace.node import Kind, Node
from tapetensor.errors import ArgumentValueError
from tapetensor.optim.group import Update
from tapetensor.pictures import Graph, Op, notebook_cell, to_html, tree

# What an error is told that came too late for the function itself to be run.
_TOO_LATE = (
    "compile: this came after an optimizer's step had begun, so parameters may be updated, and the "
    "function was not run in place of its plan"
)


# A function keeps so many plans.
MAX_PLANS = 16


class Plan:
    """The steps of a compiled function for one kind of call.

    Where a step fails, all is put back, and the function itself is run: it may expect the error.

    Args:
        code: the steps that were planned.
        names: the objects that the other lines refer to by name.
        guards: how a call is recognized, and where its arrays are.
        after: the lines behind them.
        started: when planning began.
        generators: the variables of the generators that the steps draw from.
        stored: the targets of the assignments after the steps.
        function: the planned function; None if it cannot be run in place of the plan.
        ignored: the errors of floating-point numbers that numpy does not warn of meanwhile.

    Attributes:
        steps: the steps of the plan, in order.
        source: the Python source of it.
        arena_bytes: the memory that it keeps between calls.
        seconds: how long capturing and planning took.
        step_seconds: how long each step took when `profile` measured it last; None before.
    """

    def __init__(
        self,
        code: Code,
        *,
        names: dict[str, Any],
        guards: list[str | Guard],
        after: list[str],
        started: float,
        generators: Sequence[str] = (),
        stored: Collection[str] = (),
        function: Callable[..., Any] | None = None,
        ignored: Collection[str] = (),
    ) -> None:
        self.steps = code.steps
        self.step_seconds: list[float] | None = None
        self.arena_bytes = code.memory.arena.nbytes
        self._names = names = {**names, **code.names}
        self._functions = code.functions
        self._guards = guards
        self._after = after
        self._generators = generators
        self._stored = stored
        self._updates = code.updates
        self._is_at_risk = code.is_at_risk
        # The source counts as the library's own, so that an error names the user's line.
        names["__name__"] = __name__
        names["saved"] = partial(Update.saved, *[node.function for node in code.updates])
        names["function"], names["too_late"] = function, _TOO_LATE
        self._ignored = ignored
        answers: dict[str, Any] = dict.fromkeys(ignored, "ignore")
        names["ignoring"] = partial(np.errstate, **answers)
        self.source = self._source([step.line for step in self.steps])
        # It takes the arguments of a call; the result is MISS if the plan is for another kind.
        self.run: Any = _made(self.source, names)
        self.seconds = time.perf_counter() - started

    def difference(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        """Return the first difference of a call that does not fit, in the user's names."""
        run = _made(_function(first_difference(self._guards)), {**self._names})
        with suppress(Exception):
            found: Any = self._guards[run(args, kwargs)]
            return str(found.where)
        return ""

    def explain(self) -> str:
        """Return the steps as text, each with the shape, dtype and bytes of its result.

        In planned memory the same bytes serve many steps. The optimizer's memory holds gradients,
        then new values. A view has no memory of its own.
        """
        lines = [
            f"{len(self.steps)} steps, {self.arena_bytes:,} bytes of planned memory, "
            f"planned in {self.seconds * 1e3:.1f} ms",
            f"{'value':<8}{'shape':<20}{'dtype':<9}{'bytes':>12}  memory    step",
        ]
        for step in self.steps:
            node = step.node
            lines.append(
                f"%{node.index:<7}{node.shape!s:<20}{node.dtype!s:<9}{node.nbytes:>12,}  "
                f"{step.memory:<9} {step.title}"
            )
        return "\n".join(lines)

    def profile(self, *args: Any, repeats: int = 20, **kwargs: Any) -> str:
        """Call the function and return the steps with the time that each took, the longest first.

        The calls are real ones: a training step trains.

        Args:
            args: arguments of the kind that the plan is for.
            repeats: how many calls, > 0; the shortest time of each step counts.
            kwargs: arguments by name.

        Raises:
            ArgumentValueError: if the plan is for calls of another kind, or a step of it failed.
        """
        best = [float("inf")] * len(self.steps)
        names = {**self._names, "clock": time.perf_counter, "times": (times := [0.0])}
        lines = ["times[:] = [clock()]"]
        for step in self.steps:
            lines += [step.line, "times.append(clock())"]
        run = _made(self._source(lines), names)
        for _ in range(repeats):
            if run(args, kwargs) is MISS:
                raise ArgumentValueError("profile: the plan is for calls of another kind")
            if len(times) <= len(self.steps):
                raise ArgumentValueError("profile: a step failed, so the function itself has run")
            spent = [stop - start for start, stop in itertools.pairwise(times)]
            best = [min(pair) for pair in zip(best, spent, strict=True)]
        self.step_seconds = best
        total = sum(best)
        ranked = sorted(zip(best, self.steps, strict=True), key=lambda pair: -pair[0])
        lines = [f"{total * 1e6:10.1f} us in {len(self.steps)} steps"]
        for seconds, step in ranked:
            node = step.node
            lines.append(
                f"{seconds * 1e6:10.1f} us {seconds / total:6.1%}  %{node.index:<6}"
                f"{node.shape!s:<20} {step.title}"
            )
        return "\n".join(lines)

    def to_html(self) -> str:
        """Return an HTML page that draws the steps as a graph; it needs no network.

        After `profile` it shows the times.
        """
        return to_html(self._graph())

    def tree(self, *, ascii: bool | None = None) -> str:
        """Return the steps as a graph in text, the latest first.

        Args:
            ascii: whether to draw with plain characters; None means only if the terminal needs it.
        """
        return tree(self._graph(), ascii)

    def _repr_html_(self) -> str:
        """Return the picture for a notebook."""
        return notebook_cell(self._graph())

    def _graph(self) -> Graph:
        title = f"plan of {len(self.steps)} steps, {self.arena_bytes:,} bytes of planned memory"
        return graph_of_plan(title, self.steps, self.step_seconds)

    def _source(self, lines: list[str]) -> str:
        if self._ignored and lines:
            lines = ["with ignoring():", *indented(lines)]
        steps = [*lines, *self._after]
        if self._names["function"] is not None and lines:
            steps = self._recovering(lines)
        return _function([*recognizing(self._guards), *steps], self._functions)

    def _recovering(self, lines: list[str]) -> list[str]:
        """Return lines that put all back where a step fails, and then run the function itself.

        What fails then, too, leaves all as it was before the call.
        """
        states = [f"{rng}.bit_generator.state" for rng in self._generators]
        kept = [*enumerate([*states, *self._stored])]
        save = [f"before{place} = {target}" for place, target in kept]
        put_back = [f"{target} = before{place}" for place, target in kept]
        drawn = len(states)
        save_updates = ["put_back = saved()"] if self._updates else []
        put_back_updates = ["put_back()"] if self._updates else []
        at_once = slice(None if self._is_at_risk else 0)
        own = ["return function(*args, **kwargs)"]
        if put_back or self._updates:
            own = [
                *save[drawn:], *save_updates,
                "try:", *indented(own),
                "except BaseException:", *indented([*put_back, *put_back_updates, "raise"]),
            ]  # fmt: skip
        return [
            *save[:drawn], *save_updates[at_once], "is_late = False",
            "try:", *indented(lines),
            "except BaseException as error:",
            *indented([
                *put_back[:drawn], *put_back_updates[at_once],
                "if is_late: error.add_note(too_late)",
                "if is_late or not isinstance(error, Exception): raise",
            ]),
            "else:", *indented(self._after),
            *own,
        ]  # fmt: skip


def _function(lines: list[str], others: Sequence[str] = ()) -> str:
    """Return the source of what makes the function of some lines, which may call others."""
    body = "\n".join(["def run(args, kwargs):", *lines]).replace("\n", "\n    ")
    functions = "\n".join(["def plan():", *others, body, "return run"])
    return functions.replace("\n", "\n    ") + "\n"


def _made(source: str, names: dict[str, Any]) -> Any:
    """Return the function of a source, whose globals are the names."""
    exec(compile(source, "<plan>", "exec"), names)
    # Its globals hold none of the functions that look things up in them. Such a circle would keep
    # the memory of a plan that nobody uses until the garbage collector comes by.
    return names.pop("plan")()


_UNMEASURED = "Times are shown after plan.profile(...), which measures them."
_MEMORY = {
    "planned": "planned",
    "optimizer": "the optimizer's",
    "fresh": "fresh, or as the function returns it",
    "view": "a view of another's",
}


def graph_of_plan(title: str, steps: Sequence[Step], seconds: Sequence[float] | None) -> Graph:
    """Return the graph of a plan, with the time of each step if that was measured."""
    owner = {node: step.node for step in steps for node in step.group}
    # Steps that work on one node, or on those of one group, are drawn as one box.
    boxes: dict[Node, list[int]] = {}
    for position, step in enumerate(steps):
        boxes.setdefault(owner.get(step.node, step.node), []).append(position)
    owner.update(zip(boxes, boxes, strict=True))
    # A step that returns nothing, or several arrays, has no shape of its own.
    formless = {node.args[0] for node in owner if node.kind is Kind.PART}
    formless |= {node for node in owner if node.kind in (Kind.UPDATE, Kind.EFFECT)}
    ops: dict[Node, Op] = {}
    for node, positions in boxes.items():
        own = [steps[position] for position in positions]
        nodes = [one for step in own for one in step.group] or [node]
        operands: dict[Node, None] = {}
        for one in nodes:
            for parent in one.parents():
                operands.update(dict.fromkeys(_origins(parent, owner)))
        operands.pop(node, None)
        for operand in operands:
            if operand.kind is Kind.INPUT and operand not in ops:
                ops[operand] = Op(
                    operand.index, operand.label or "input", shape=operand.shape,
                    dtype=operand.dtype, is_input=True,
                )  # fmt: skip
        ops[node] = Op(
            node.index,
            next((step.title for step in own if step.group), own[0].node.name),
            tuple([operand.index for operand in operands]),
            None if node in formless else node.shape,
            None if node in formless else node.dtype,
            None if seconds is None else sum([seconds[position] for position in positions]),
            node.place,
            tuple(_facts(own, nodes)),
        )
    return Graph(title, list(ops.values()), note=_UNMEASURED if seconds is None else "")


def _origins(node: Node, owner: dict[Node, Node]) -> list[Node]:
    """Return the boxes in which the memory of a value was computed, constants left out."""
    found = []
    waiting = [node]
    while waiting:
        one = waiting.pop()
        if one in owner:
            found.append(owner[one])
        elif one.kind is Kind.INPUT:
            found.append(one)
        else:
            # A view of planned memory is no step, nor is a copy that takes over what it copies.
            waiting.extend(one.parents())
    return found


def _facts(steps: list[Step], nodes: list[Node]) -> list[tuple[str, str]]:
    facts = [("memory", _MEMORY[steps[0].memory])]
    if len(nodes) > 1:
        facts.append(("group", "\n".join([repr(node) for node in nodes])))
    facts += [
        ("constant", str(parent.detail))
        for node in nodes
        for parent in node.parents()
        if parent.kind is Kind.CONSTANT and parent.shape == ()
    ]
    facts.append(("code", "\n".join([step.line for step in steps])))
    return facts
