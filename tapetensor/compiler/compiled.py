"""Compiled functions: a cache of plans and the calls that go through it."""

from __future__ import annotations

import threading
import time
import types
import warnings
from collections.abc import Callable
from functools import update_wrapper
from typing import Any

from typing_extensions import TypeVar

from tapetensor.compiler.binding import MISS, Binding
from tapetensor.compiler.plan import Planner
from tapetensor.compiler.program import Program
from tapetensor.compiler.replay import Plan
from tapetensor.errors import ArgumentTypeError, TraceError

F_ = TypeVar("F_", bound=Callable[..., Any])

# So many plans are kept to a function; the one that was not used for longest goes first.
MAX_PLANS = 16


class Compiled:
    """A function that is traced and planned at the first call of a kind, and replayed after it.

    Args:
        function: what to compile.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.plans: list[Plan] = []
        self.traces = 0
        self._lock = threading.RLock()
        update_wrapper(self, function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the function."""
        with self._lock:
            for position, plan in enumerate(self.plans):
                result = plan.run(args, kwargs)
                if result is not MISS:
                    if position:
                        self.plans.insert(0, self.plans.pop(position))
                    return result
            plan = self._trace(args, kwargs)
            self.plans.insert(0, plan)
            self._forget()
            result = plan.run(args, kwargs)
            if result is MISS:
                self.plans.remove(plan)
                raise TraceError(
                    "compile: a call does not fit the plan that was made for it; an argument "
                    "compares unequal to itself"
                )
            return result

    def _repr_html_(self) -> str | None:
        """Return the picture of the last used plan for a notebook; None before the first call."""
        return self.plans[0]._repr_html_() if self.plans else None

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """Bind to an object, as functions in a class do."""
        return self if instance is None else types.MethodType(self, instance)

    def _forget(self) -> None:
        self.traces += 1
        if len(self.plans) > MAX_PLANS:
            self.plans.pop()
            warnings.warn(
                f"compile: {self.function.__name__} was traced {self.traces} times and more than "
                f"{MAX_PLANS} kinds of calls are in use; arguments that change from call to call "
                "(a Python number, say) should be tensors",
                stacklevel=4,
            )

    def _trace(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Plan:
        started = time.perf_counter()
        program = Program()
        binding = Binding(program)
        try:
            binding.walk_function(self.function)
            binding.guards.append(f"if len(args) != {len(args)}: return MISS")
            keys = binding.bind(tuple(kwargs))
            binding.guards.append(f"if tuple(kwargs) != {keys}: return MISS")
            lazy_args = [
                binding.walk(value, f"args[{position}]", f"argument {position}")
                for position, value in enumerate(args)
            ]
            lazy_kwargs = {
                name: binding.walk(value, f"kwargs[{name!r}]", f"argument {name}")
                for name, value in kwargs.items()
            }
            result = self.function(*lazy_args, **lazy_kwargs)
            leaving, stores, returned, made = binding.finish(result)
        finally:
            binding.restore()
        planner = Planner(program, binding.expressions, leaving)
        layout = planner.run()
        arrays = planner.leaving_expressions()
        after = [line.format(*arrays) for line in (*made, *stores)]
        return Plan(
            names={**binding.names, **layout.names},
            functions=layout.functions,
            guards=binding.guards,
            steps=layout.steps,
            after=[*after, f"return {returned.format(*arrays)}"],
            generators=binding.generators,
            arena_bytes=planner.arena.nbytes,
            started=started,
        )


def compile(function: F_) -> F_:
    """Return `function` planned: traced at the first call, replayed without Python afterwards."""
    if not callable(function):
        raise ArgumentTypeError(f"compile: expected a function, got {type(function).__name__}")
    compiled: Any = Compiled(function)
    result: F_ = compiled
    return result


def plans(function: Callable[..., Any]) -> tuple[Plan, ...]:
    """Return the plans that a compiled function holds, the last used one first.

    Raises:
        ArgumentTypeError: if the function is not compiled.
    """
    if isinstance(function, types.MethodType):
        function = function.__func__
    if not isinstance(function, Compiled):
        raise ArgumentTypeError("plans: expected a function that tt.compile returned")
    return tuple(function.plans)
