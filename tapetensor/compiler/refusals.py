"""The error for what cannot be traced, with the place in the user's program."""

from __future__ import annotations

from tapetensor.errors import TraceError
from tapetensor.pictures import users_place


class NotTracedError(Exception):
    """Raised where a call cannot be traced, but run as it is: it is part of a larger record."""


class NoAttributeError(TraceError, AttributeError):
    """Raised for what arrays have and captured arrays have not."""


def trace_error(what: str) -> TraceError:
    """Return the error for what cannot be traced, with the place in the user's program."""
    place = users_place()
    return TraceError(f"{place}: compile: {what}" if place else f"compile: {what}")
