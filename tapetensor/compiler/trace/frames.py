"""Which frames run while a function is captured."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial, wraps
from types import FrameType, TracebackType
from typing import Any, ParamSpec

from typing_extensions import TypeVar

from tapetensor.compiler.trace.codes import UNREPEATABLE_NAMES, is_unrepeatable
from tapetensor.pictures.places import within

P_ = ParamSpec("P_")
R_ = TypeVar("R_")


class _Here(threading.local):
    """What watches in this thread now."""

    watch: Any = None


# To read it Python calls no function, which would be watched.
_HERE = _Here()


@contextmanager
def watched(
    enter: Callable[[FrameType, str], object],
    call: Callable[[FrameType, Any], object],
    catch: Callable[[FrameType, BaseException, TracebackType], object],
    passed: set[str],
) -> Iterator[None]:
    """See every frame that is entered meanwhile, and what is called that may differ every time.

    Args:
        enter: is given each frame that is not passed over, and its file.
        call: is given a frame, and the function of C that it calls.
        catch: is given such a frame whose code may catch an error, each error that reaches it, and
            where that comes from. Where a debugger traces frames, nothing is.
        passed: the files whose frames are passed over.
    """
    before: Any = sys.getprofile()

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        # What a generator returns has no origin, and is no error.
        if event == "exception" and argument[2] is not None:
            catch(frame, *argument[1:])
        return frame.f_trace

    def on_event(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call":
            file = frame.f_code.co_filename
            if file not in passed:
                enter(frame, file)
                if frame.f_code.co_exceptiontable and sys.gettrace() in (None, _pass_over):
                    sys.settrace(_pass_over)
                    frame.f_trace, frame.f_trace_lines = trace, False
        elif event == "c_call":
            # Most have another name.
            is_named_so = argument.__name__ in UNREPEATABLE_NAMES
            if is_named_so and is_unrepeatable(argument):
                call(frame, argument)

    outer = _HERE.watch
    try:
        _HERE.watch = on_event
        sys.setprofile(on_event)
        yield
    finally:
        sys.setprofile(None)
        if sys.gettrace() is _pass_over:
            sys.settrace(None)
        _HERE.watch = outer
        # Python's own profiler begins again only when it is told to.
        getattr(before, "enable", partial(sys.setprofile, before))()


def _pass_over(*_: object) -> None:
    """Trace no frame but those that are told to be."""


def unseen(function: Callable[P_, R_]) -> Callable[P_, R_]:
    """Return a function whose frames nobody watches: no code of the user's runs in it.

    Python runs half as fast where frames are watched.
    """

    @wraps(function)
    def run(*args: P_.args, **options: P_.kwargs) -> R_:
        watch = _HERE.watch
        if watch is None:
            return function(*args, **options)
        sys.setprofile(None)
        is_traced = sys.gettrace() is _pass_over
        if is_traced:
            sys.settrace(None)
        _HERE.watch, within.frame = None, sys._getframe(1)
        try:
            return function(*args, **options)
        finally:
            _HERE.watch, within.frame = watch, None
            sys.setprofile(watch)
            if is_traced:
                sys.settrace(_pass_over)

    return run


def is_imported(frame: FrameType) -> bool:
    """Tell whether the module of a frame is being imported."""
    return getattr(frame.f_globals.get("__spec__"), "_initializing", False)
