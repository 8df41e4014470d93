"""Which frames run while a function is captured."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial, wraps
from types import FrameType
from typing import Any, ParamSpec

from typing_extensions import TypeVar

from tapetensor.compiler.trace.codes import UNREPEATABLE_NAMES, is_unrepeatable

P_ = ParamSpec("P_")
R_ = TypeVar("R_")

# What watches now and may be interrupted, for it is the only one in its thread.
_ALONE: set[Any] = set()


@contextmanager
def watched(
    enter: Callable[[FrameType, str], object],
    call: Callable[[FrameType, Any], object],
    passed: set[str],
) -> Iterator[None]:
    """See every frame that is entered meanwhile, and what is called that may differ every time.

    Args:
        enter: is given each frame that is not passed over, and its file.
        call: is given a frame, and the function of C that it calls.
        passed: the files whose frames are passed over.
    """
    before: Any = sys.gettrace()
    profiler: Any = sys.getprofile()

    def on_call(frame: FrameType, event: Any, argument: Any) -> Any:
        file = frame.f_code.co_filename
        if file not in passed:
            enter(frame, file)
        if before is None:
            return None
        local = before(frame, event, argument)
        if sys.gettrace() is not watch:
            # What measures coverage puts itself back into this place.
            sys.settrace(watch)
        return local

    def on_event(frame: FrameType, event: str, argument: Any) -> None:
        # Most are of another kind, or have another name.
        is_named_so = event == "c_call" and argument.__name__ in UNREPEATABLE_NAMES
        if is_named_so and is_unrepeatable(argument):
            call(frame, argument)

    watch: Any = on_call
    if before is None:
        _ALONE.add(watch)
    sys.settrace(watch)
    sys.setprofile(on_event)
    try:
        yield
    finally:
        sys.setprofile(None)
        sys.settrace(before)
        _ALONE.discard(watch)
        # It refers to itself.
        watch = None
        # Python's own profiler begins again only when it is told to.
        getattr(profiler, "enable", partial(sys.setprofile, profiler))()


def unseen(function: Callable[P_, R_]) -> Callable[P_, R_]:
    """Return a function whose frames nobody watches: no code of the user's runs in it.

    Python runs half as fast where frames are watched.
    """

    @wraps(function)
    def run(*args: P_.args, **options: P_.kwargs) -> R_:
        watch = sys.gettrace()
        if watch not in _ALONE:
            return function(*args, **options)
        profile = sys.getprofile()
        sys.settrace(None)
        sys.setprofile(None)
        try:
            return function(*args, **options)
        finally:
            sys.setprofile(profile)
            sys.settrace(watch)

    return run


def is_imported(frame: FrameType) -> bool:
    """Tell whether the module of a frame is being imported."""
    return getattr(frame.f_globals.get("__spec__"), "_initializing", False)
