"""Which code runs while a function is captured."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from threading import get_ident
from types import CodeType, FrameType
from typing import Any

# What `sys.monitoring` calls who asks; the lowest numbers are those of debuggers and of coverage.
_NAME, _NUMBERS = "tapetensor", (4, 3, 1, 2, 0)


@contextmanager
def watched(enter: Callable[[FrameType], object]) -> Iterator[None]:
    """See every frame of this thread that is entered meanwhile, or the first of each code.

    Debuggers, profilers and what measures coverage go on as before.

    Args:
        enter: is given each of them, and tells whether it is to be given the next of its code.
    """
    before: Any = sys.getprofile()

    def on_event(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call":
            enter(frame)

    is_monitored = False
    try:
        is_monitored = _is_monitored(enter)
        if not is_monitored:
            sys.setprofile(on_event)
        yield
    finally:
        _stop_monitoring()
        if not is_monitored:
            sys.setprofile(None)
            # Python's own profiler begins again only when it is told to.
            getattr(before, "enable", partial(sys.setprofile, before))()


if sys.version_info >= (3, 12):
    _monitoring = sys.monitoring
    _taken: list[int] = []

    def _is_monitored(enter: Callable[[FrameType], object]) -> bool:
        """Begin to watch by `sys.monitoring`; tell whether there was a number left for that."""
        free = [one for one in _NUMBERS if _monitoring.get_tool(one) is None]
        if not free:
            return False
        thread, started = get_ident(), _monitoring.events.PY_START

        def on_start(code: CodeType, offset: int) -> Any:
            if get_ident() != thread:
                return None
            is_asked_again = enter(sys._getframe(1))
            # Once is enough: what belongs to code that was entered is walked when it is found.
            return None if is_asked_again else _monitoring.DISABLE

        _monitoring.use_tool_id(free[0], _NAME)
        _taken.append(free[0])
        _monitoring.register_callback(free[0], started, on_start)
        # What an earlier capture has seen enough of, this one has not.
        _monitoring.restart_events()
        _monitoring.set_events(free[0], started)
        return True

    def _stop_monitoring() -> None:
        while _taken:
            _monitoring.set_events(_taken[-1], 0)
            _monitoring.register_callback(_taken[-1], _monitoring.events.PY_START, None)
            _monitoring.free_tool_id(_taken.pop())

else:

    def _is_monitored(enter: Callable[[FrameType], object]) -> bool:
        """Tell that this version of Python has no `sys.monitoring`."""
        return False

    def _stop_monitoring() -> None:
        """Do nothing."""


def is_imported(frame: FrameType) -> bool:
    """Tell whether the module of a frame is being imported."""
    return getattr(frame.f_globals.get("__spec__"), "_initializing", False)
