"""A plan: the generated function that replays a captured one, and information about it."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np

from tapetensor.compiler.emit.code import indented
from tapetensor.compiler.emit.picture import graph_of_plan
from tapetensor.compiler.emit.steps import Planner
from tapetensor.compiler.trace.guards import MISS, Guard, first_difference, recognizing
from tapetensor.errors import ArgumentValueError
from tapetensor.optim.group import Update
from tapetensor.pictures import Graph, notebook_cell, to_html, tree

# What an error is told that came too late for the function itself to be run.
_TOO_LATE = (
    "compile: this came after an optimizer's step had begun, so parameters may be updated, and the "
    "function was not run in place of its plan"
)


class Plan:
    """The steps of a compiled function for one kind of call.

    Where a step fails, all is put back, and the function itself is run: it may expect the error.

    Args:
        planner: the planner of the steps.
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
        planner: Planner,
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
        self.steps = planner.code.steps
        self.step_seconds: list[float] | None = None
        self.arena_bytes = planner.memory.arena.nbytes
        self._names = names = {**names, **planner.code.names}
        self._functions = planner.code.functions
        self._guards = guards
        self._after = after
        self._generators = generators
        self._stored = stored
        self._updates = planner.updates
        self._is_at_risk = planner.is_at_risk
        # The source counts as the library's own, so that an error names the user's line.
        names["__name__"] = __name__
        names["saved"] = partial(Update.saved, *[node.function for node in self._updates])
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
