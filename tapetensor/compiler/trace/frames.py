"""Which frames run while a function is captured."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from types import FrameType
from typing import Any, ParamSpec

from typing_extensions import TypeVar

P_ = ParamSpec("P_")
R_ = TypeVar("R_")


# What watches now and may be interrupted, for it is the only one in its thread.
_ALONE: set[Any] = set()


@contextmanager
def watched(enter: Callable[[FrameType, str], Any], passed: set[str]) -> Iterator[None]:
    """See every frame that is entered meanwhile.

    Args:
        enter: is given each frame that is not passed over, and its file; it returns what watches
            the lines of the frame, or None.
        passed: the files whose frames are passed over.
    """
    before: Any = sys.gettrace()

    def on_call(frame: FrameType, event: Any, argument: Any) -> Any:
        file = frame.f_code.co_filename
        return None if file in passed else enter(frame, file)

    def on_call_as_before(frame: FrameType, event: Any, argument: Any) -> Any:
        local, other = on_call(frame, event, argument), before(frame, event, argument)
        if sys.gettrace() is not watch:
            # What measures coverage puts itself back into this place.
            sys.settrace(watch)
        return other if local is None else local

    watch: Any = on_call if before is None else on_call_as_before
    if before is None:
        _ALONE.add(watch)
    sys.settrace(watch)
    try:
        yield
    finally:
        sys.settrace(before)
        _ALONE.discard(watch)


def unseen(function: Callable[P_, R_]) -> Callable[P_, R_]:
    """Return a function whose frames nobody watches: no code of the user's runs in it.

    Python runs half as fast where frames are watched.
    """

    @wraps(function)
    def run(*args: P_.args, **options: P_.kwargs) -> R_:
        watch = sys.gettrace()
        if watch not in _ALONE:
            return function(*args, **options)
        sys.settrace(None)
        try:
            return function(*args, **options)
        finally:
            sys.settrace(watch)

    return run
