"""Locks of plans, each of which runs once at a time: a fork waits until no plan runs."""

from __future__ import annotations

import os
import threading
from typing import Any
from weakref import WeakSet

# The stubs of Python do not name the type of these locks in one way in all versions.
_LOCKS: WeakSet[Any] = WeakSet()
_HELD: list[Any] = []

# While one function is captured, models hold tracers, which another capture must not see. Who
# holds this lock may take that of a plan, so it always comes first.
CAPTURES = threading.RLock()


def plan_lock() -> Any:
    """Return a new lock, which is free in a child process."""
    lock = threading.RLock()
    _LOCKS.add(lock)
    return lock


def _acquire_all() -> None:
    for lock in (CAPTURES, *_LOCKS):
        lock.acquire()
        _HELD.append(lock)


def _release_all() -> None:
    while _HELD:
        _HELD.pop().release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_acquire_all, after_in_parent=_release_all, after_in_child=_release_all
    )
