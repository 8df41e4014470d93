"""The error for what cannot be traced, with the place in the user's program."""

from __future__ import annotations

import sys
from types import FrameType

from tapetensor.errors import TraceError

_PACKAGE = __name__.split(".", maxsplit=1)[0]


def trace_error(what: str) -> TraceError:
    """Return the error for what cannot be traced, with the place in the user's program."""
    frame: FrameType | None = sys._getframe(1)
    place = ""
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        if module.split(".", maxsplit=1)[0] not in (_PACKAGE, "numpy"):
            place = f"{frame.f_code.co_filename}:{frame.f_lineno}: "
            break
        frame = frame.f_back
    return TraceError(f"{place}compile: {what}")
