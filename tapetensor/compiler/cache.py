"""The plans of one compiled function: how many there are, and which of them runs."""

from __future__ import annotations

import os
import warnings
from threading import RLock, get_ident
from typing import Any
from weakref import WeakSet

from tapetensor.compiler.emit.plan import Plan
from tapetensor.compiler.trace.guards import MISS

# A function keeps so many plans.
MAX_PLANS = 16

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
        forever is as fast as the function.

        Args:
            name: that of the function, which a warning names once.
            args: the arguments of the call, of which the warning names the new ones.
            kwargs: those by name.
        """
        if self.failed >= _MOST_FAILED:
            # Trying again each time would take longer than the function.
            return False
        if len(self.plans) < MAX_PLANS:
            return True
        if not self._left_over:
            place = self.plans[0].difference(args, kwargs)
            told = place and f" (this call differs from the last one in {place})"
            warnings.warn(
                f"compile: {name} is called in more than {MAX_PLANS} kinds{told}; from now on one "
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
