"""The error for what cannot be captured, with the place in the user's program."""

from __future__ import annotations

from tapetensor.errors import TraceError
from tapetensor.pictures import users_place


class NotTracedError(Exception):
    """Raised where a call is not captured but run as it is, because recorded arrays come in."""


class NoAttributeError(TraceError, AttributeError):
    """Raised for an attribute that numpy's arrays have and tracers do not."""


def trace_error(what: str) -> TraceError:
    """Return the error for what cannot be captured, with the place in the user's program."""
    place = users_place()
    return TraceError(f"{place}: compile: {what}" if place else f"compile: {what}")
