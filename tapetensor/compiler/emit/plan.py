"""A plan: the generated function that replays what was captured, and what is known about it."""

from __future__ import annotations

import itertools
import time
from functools import partial
from textwrap import indent
from typing import Any

from tapetensor.compiler.emit.picture import graph_of_plan
from tapetensor.compiler.emit.steps import Planner
from tapetensor.compiler.trace.guards import MISS
from tapetensor.errors import ArgumentValueError
from tapetensor.optim.group import Update
from tapetensor.pictures import Graph, notebook_cell, to_html, tree


class Plan:
    """What a compiled function does for one kind of call.

    Attributes:
        steps: what it does, in order.
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
        guards: list[str],
        after: list[str],
        generators: list[str],
        started: float,
    ) -> None:
        self.steps = planner.code.steps
        self.step_seconds: list[float] | None = None
        self.arena_bytes = planner.memory.arena.nbytes
        self._names = names = {**names, **planner.code.names}
        self._functions = planner.code.functions
        self._guards = guards
        self._after = after
        self._generators = generators
        # Optimizers' steps are taken back if a later step of the plan fails.
        self._has_saved = bool(planner.at_risk)
        updates = [node.function for node in planner.at_risk]
        # The source counts as the library's own, so that an error names the user's line.
        names["__name__"] = __name__
        names["saved"] = partial(Update.saved, *updates)
        self.source = self._source([step.line for step in self.steps])
        # It takes the arguments of a call; the result is MISS if the plan is for another kind.
        self.run: Any = _made(self.source, names)
        self.seconds = time.perf_counter() - started

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
            ArgumentValueError: if the plan is for calls of another kind.
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
        if (self._generators or self._has_saved) and lines:
            # If a step fails, the generators are put back, as everything else is.
            saved = [f"{rng}_state = {rng}.bit_generator.state" for rng in self._generators]
            put_back = [f"    {rng}.bit_generator.state = {rng}_state" for rng in self._generators]
            if self._has_saved:
                saved.append("put_back = saved()")
                put_back.append("    put_back()")
            tried = [f"    {line}" for line in lines]
            lines = [*saved, "try:", *tried, "except BaseException:", *put_back, "    raise"]
        body = [f"    {line}" for line in (*self._guards, *lines, *self._after)]
        functions = "\n".join([*self._functions, "def run(args, kwargs):", *body])
        return f"def plan():\n{indent(functions, '    ')}\n    return run\n"


def _made(source: str, names: dict[str, Any]) -> Any:
    """Return the function of a source, whose globals are the names."""
    exec(compile(source, "<plan>", "exec"), names)
    # Its globals hold none of the functions that look things up in them. Such a circle would keep
    # the memory of a plan that nobody uses until the garbage collector comes by.
    return names.pop("plan")()
