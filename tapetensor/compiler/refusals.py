"""The error for what cannot be traced, with the place in the user's program."""

from __future__ import annotations

from tapetensor.errors import TraceError
from tapetensor.pictures import users_place


def trace_error(what: str) -> TraceError:
    """Return the error for what cannot be traced, with the place in the user's program."""
    place = users_place()
    return TraceError(f"{place}: compile: {what}" if place else f"compile: {what}")
