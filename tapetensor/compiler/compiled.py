"""Compiled functions: their plans, of which one runs, and the calls that go through them."""

from __future__ import annotations

import copy
import os
import sys
import time
import types
import warnings
from collections.abc import Callable
from functools import update_wrapper
from threading import RLock, get_ident
from typing import Any
from weakref import WeakSet

from typing_extensions import override

from tapetensor.arrays.stand_ins import IS_TRACING
from tapetensor.compiler.emit.plan import MAX_PLANS, Plan
from tapetensor.compiler.emit.results import write_results
from tapetensor.compiler.emit.steps import planned
from tapetensor.compiler.trace.capture import Capture, capturing
from tapetensor.compiler.trace.guards import MISS
from tapetensor.compiler.trace.kinds import place_of
from tapetensor.compiler.trace.node import Backend
from tapetensor.compiler.trace.program import Program, errors_raise
from tapetensor.compiler.trace.refusals import NotTracedError, Untraced, placed, trace_error
from tapetensor.compiler.trace.watching import line_of_change
from tapetensor.errors import TapeTensorError, TraceError, cut_traceback

# After so many calls in a row that had no plan, all plans are tried for every eighth one only.
_MANY_MISSED, _EVERY = 16, 8

# So many calls are tried that cannot be captured.
_MOST_FAILED = 3

# While one function is captured, models hold tracers, which another capture must not see. Who
# holds this lock may take that of plans, so it comes first.
CAPTURES = RLock()


class PlanCache:
    """The plans of one compiled function.

    Attributes:
        plans: the last used one first.
        failed: how many calls could not be captured, though the function itself could run.
        varying: the names, in the user's program, of values that differed in an earlier call, the
            latest last.
        fixed: such names of values that every plan needs.
        lock: held while one of them runs.
        runner: the thread in which one of them runs.
    """

    def __init__(self) -> None:
        self.plans: list[Plan] = []
        self.failed = 0
        self.varying: list[str] = []
        self.fixed: list[str] = []
        # How many calls found no plan, and no room for another.
        self._left_over = 0
        # How many of them came last, in a row.
        self._missed = 0
        self.lock = RLock()
        _CACHES.add(self)
        self.runner: int | None = None

    def replay(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run the plan that fits a call; return MISS without such a plan."""
        with self.lock:
            try:
                self.runner = get_ident()
                is_rare = self._missed >= _MANY_MISSED and (self._missed + 1) % _EVERY
                for position, plan in enumerate(self.plans[:1] if is_rare else self.plans):
                    result = plan.run(args, kwargs)
                    if result is not MISS:
                        self._missed = 0
                        if position:
                            self.plans.insert(0, self.plans.pop(position))
                        return result
            finally:
                self.runner = None
        return MISS

    def begin(self, plan: Plan, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run a new plan, which may replace the plan that was not used for longest.

        If it does not fit the call that it was made for, it is not kept, and the result is MISS.
        """
        with self.lock:
            self.plans = [plan, *self.plans[: MAX_PLANS - 1]]
            result = self.replay(args, kwargs)
            if result is MISS:
                self.plans.remove(plan)
        return result

    def note_difference(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Note how a call differs from one with a plan, except in values that every plan needs."""
        places = (plan.difference(args, kwargs) for plan in self.plans)
        place = next((one for one in places if one and one not in self.fixed), "")
        if place and place not in self.varying:
            self.varying.append(place)

    def has_room(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Tell whether a call that has no plan gets one.

        Of those beyond the limit the 16th, the 32nd, the 64th and so on do. A program that comes
        late to the kinds that it stays with gets plans for them, and one that brings new kinds
        forever is as fast as the function, which a warning names once.
        """
        if self.failed >= _MOST_FAILED:
            # Trying again each time would take longer than the function.
            return False
        if len(self.plans) < MAX_PLANS:
            return True
        if not self._left_over:
            place = self.plans[0].difference(args, kwargs)
            where = place and f" (this call differs from the last one in {place})"
            warnings.warn(
                f"compile: {name} is called in more than {MAX_PLANS} kinds{where}; from now on one "
                "that has no plan runs as the plain function does. Sizes that change should be "
                "padded to a few, integers that change from call to call should be tensors, what "
                "the function decides by should take few values, and each optimizer makes a kind "
                "of its own: compile a function for each",
                stacklevel=3,
            )
        self._left_over += 1
        self._missed += 1
        times, rest = divmod(self._left_over, MAX_PLANS)
        return not rest and times & (times - 1) == 0


_CACHES: WeakSet[PlanCache] = WeakSet()
_HELD: list[Any] = []


def _acquire_all() -> None:
    """Wait until no plan runs, for a child process has none of the threads that would go on."""
    for lock in (CAPTURES, *[cache.lock for cache in _CACHES]):
        lock.acquire()
        _HELD.append(lock)


def _release_all() -> None:
    while _HELD:
        _HELD.pop().release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_acquire_all, after_in_parent=_release_all, after_in_child=_release_all
    )


# The attributes of a compiled function that are not those of the function.
_OWN = frozenset({"_function", "_backend", "_cache", "_trusts"})


class Compiled:
    """A function that its first call with new shapes plans, and later calls replay."""

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
                plan = self._planned(args, kwargs)
                if isinstance(plan, Untraced):
                    return self._as_it_is(plan, args, kwargs)
                result = cache.begin(plan, args, kwargs)
                if result is not MISS:
                    return result
                where = plan.difference(args, kwargs) or "something that the function reads"
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
        name: str = getattr(self._function, "__qualname__", "")
        found: Any = sys.modules.get(self._function.__module__)
        for part in name.split("."):
            found = getattr(found, part, None)
        if found is self:
            return name
        return Compiled, (self._function, self._backend, self._trusts)

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
        if call.raised:
            self._cache.failed += 1
            warnings.warn(
                f"compile: a {call.raised} was raised while {_name_of(self._function)} was "
                "captured, which it does not raise itself, or catches; calls of this kind run as "
                "the plain function does",
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
                change = inputs.change()
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
        planner = planned(program, inputs.expressions, writer.outputs)
        return Plan(
            planner.code,
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
        said = f"compile: {change} is changed, which a replay would not repeat; {cure}"
        return TraceError(f"{place}: {said}" if place else said)


def _name_of(function: Any) -> str:
    """Return the name of a function; a module or a partial function has none of its own."""
    return str(getattr(function, "__name__", type(function).__name__))
