"""Compiled functions: a cache of plans and the calls that go through it."""

from __future__ import annotations

import copy
import sys
import time
import types
import warnings
from collections.abc import Callable
from functools import partial, update_wrapper
from threading import get_ident
from typing import Any

from typing_extensions import override

from tapetensor.arrays.stand_ins import IS_TRACING
from tapetensor.compiler.cache import CAPTURES, PlanCache
from tapetensor.compiler.capture import capturing
from tapetensor.compiler.emit.plan import Plan
from tapetensor.compiler.emit.results import write_results
from tapetensor.compiler.emit.steps import planned
from tapetensor.compiler.trace.capture import Capture
from tapetensor.compiler.trace.changes import line_of_change
from tapetensor.compiler.trace.guards import MISS
from tapetensor.compiler.trace.kinds import place_of
from tapetensor.compiler.trace.node import Backend
from tapetensor.compiler.trace.program import Program, errors_raise
from tapetensor.compiler.trace.refusals import (
    NotTracedError,
    Untraced,
    placed,
    trace_error,
)
from tapetensor.errors import TapeTensorError, TraceError, cut_traceback

# The attributes of a compiled function that are not those of the function.
_OWN = frozenset({"_function", "_backend", "_cache", "_trusts"})


class Compiled:
    """A function that its first call with new shapes plans, and later calls replay.

    Args:
        function: the function to compile.
        backend: "numpy" or "numba", which runs groups of steps.
        trusts: the names of modules that run unwatched beside those of the closed list.
    """

    def __init__(
        self, function: Callable[..., Any], backend: Backend = "numpy", trusts: tuple[str, ...] = ()
    ) -> None:
        # Its attributes are read, and set, where they are.
        update_wrapper(self, function, updated=())
        self._function = function
        self._backend = backend
        self._trusts = trusts
        self._cache = PlanCache()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the function."""
        cache = self._cache
        if IS_TRACING.get() or cache.runner == get_ident() or errors_raise():
            # This call is a part of a larger program, or a handler of signals, say, makes it in the
            # midst of a plan, whose memory is in use. Or np.errstate has errors raised, also those
            # of steps that a plan leaves out.
            return self._function(*args, **kwargs)
        result = cache.replay(args, kwargs)
        if result is not MISS:
            return result
        try:
            with CAPTURES:
                # Another thread may have planned such a call, or have had tracers in a model.
                result = cache.replay(args, kwargs)
                if result is not MISS:
                    return result
                if not cache.has_room(_name_of(self._function), args, kwargs):
                    return self._function(*args, **kwargs)
                cache.note_difference(args, kwargs)
                where = "something that the function reads"
                # Between a trace and its plan the garbage collector may have emptied a weak
                # reference.
                for _ in range(2):
                    plan = self._planned(args, kwargs)
                    if isinstance(plan, Untraced):
                        return self._as_it_is(plan, args, kwargs)
                    result = cache.begin(plan, args, kwargs)
                    if result is not MISS:
                        return result
                    where = plan.difference(args, kwargs) or where
                with placed(place_of(self._function)):
                    raise trace_error(
                        f"a call does not fit the plan that was made for it; {where} compares "
                        "unequal to itself, or changes by itself"
                    )
        except TapeTensorError as error:
            cut_traceback(error)
            raise

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of what was compiled: a module has parameters, say."""
        if name in _OWN:
            raise AttributeError(name)
        return getattr(self._function, name)

    @override
    def __setattr__(self, name: str, value: Any) -> None:
        """Set an attribute of what was compiled."""
        if name in _OWN or name.startswith("__"):
            super().__setattr__(name, value)
        else:
            setattr(self._function, name, value)

    @override
    def __delattr__(self, name: str) -> None:
        """Delete an attribute of what was compiled."""
        delattr(self._function, name)

    def __deepcopy__(self, memo: dict[int, Any]) -> Compiled:
        """Return a function that has no plans yet; a method belongs to the copy of its object."""
        function = copy.deepcopy(self._function, memo)
        if function is self._function:
            return self
        return Compiled(function, self._backend, self._trusts)

    @override
    def __reduce__(self) -> Any:
        """Pickle by name, as functions are; what the name does not lead to is compiled anew."""
        from tapetensor.compiler.entrance import compile

        name: str = getattr(self._function, "__qualname__", "")
        found: Any = sys.modules.get(self._function.__module__)
        for part in name.split("."):
            found = getattr(found, part, None)
        if found is self:
            return name
        return partial(compile, backend=self._backend, trusts=self._trusts), (self._function,)

    def _repr_html_(self) -> str | None:
        """Return the picture of the last used plan for a notebook; None before the first call."""
        plans = self._cache.plans
        return plans[0]._repr_html_() if plans else None

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """Bind to an object, as functions in a class do."""
        return self if instance is None else types.MethodType(self, instance)

    def _as_it_is(self, call: Untraced, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run the function itself; what it raises leaves all as it was, as in a plan."""
        saved = [group.saved() for group in call.groups]
        try:
            result = self._function(*args, **kwargs)
        except BaseException:
            for one in call.held:
                one.put_back()
            for put_back in saved:
                put_back()
            raise
        if call.told:
            self._cache.failed += 1
            warnings.warn(
                f"compile: a {call.told} was raised while {_name_of(self._function)} was captured, "
                "which it does not raise itself, or catches; calls of this kind run as the plain "
                "function does",
                stacklevel=3,
            )
        return result

    def _planned(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Plan | Untraced:
        """Return the plan for a call; what varies is a constant where it cannot be an input."""
        varying = self._cache.varying
        try:
            plan = self._trace(args, kwargs)
            if isinstance(plan, Plan) or not varying:
                return plan
        except TraceError:
            if not varying:
                raise
        last = varying.pop()
        try:
            plan = self._planned(args, kwargs)
        except TraceError:
            varying.append(last)
            raise
        (self._cache.fixed if isinstance(plan, Plan) else varying).append(last)
        return plan

    def _trace(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Plan | Untraced:
        """Return the plan for a call, or what is known of one that gets none."""
        started = time.perf_counter()
        program = Program(self._backend)
        captured = capturing(
            self._function, program, args, kwargs, self._cache.varying, self._trusts
        )
        try:
            with captured as (capture, run):
                result = run()
                inputs = capture.inputs
                change = capture.change()
                with placed(inputs.place):
                    writer = write_results(inputs, result) if change is None else None
        except NotTracedError as error:
            return error.call
        except RecursionError as error:
            with placed(place_of(self._function)):
                raise trace_error(
                    "calls within calls, or views of views, are too deep to be followed; where it "
                    "is views, copy() the array once in between"
                ) from error
        if capture.has_imported:
            return self._trace(args, kwargs)
        if change is not None or writer is None:
            raise self._side_effect(str(change), capture)
        planner = planned(program, inputs.expressions, writer.leaving)
        return Plan(
            planner.code,
            updates=planner.updates,
            is_at_risk=planner.is_at_risk,
            names=inputs.guards.names,
            guards=inputs.guards.guards,
            after=writer.lines(planner.leaving_expressions(writer.owned)),
            started=started,
            generators=inputs.generators,
            stored=writer.stored,
            function=self._function,
            ignored=program.ignored,
        )

    def _side_effect(self, change: str, capture: Capture) -> TraceError:
        """Return the error for what the function changes, with the line that does it."""
        place = line_of_change(change, capture.codes) or place_of(self._function)
        cure = (
            "draw from an np.random.Generator that is an argument"
            if change.startswith("the state of ")
            else "return the value and store it outside; what is filled once may be so before"
        )
        told = f"compile: {change} is changed, which a replay would not repeat; {cure}"
        return TraceError(f"{place}: {told}" if place else told)


def _name_of(function: Any) -> str:
    """Return the name of a function; a module or a partial function has none of its own."""
    name: str = getattr(function, "__name__", type(function).__name__)
    return name
