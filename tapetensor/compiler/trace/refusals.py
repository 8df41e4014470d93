"""The error for what cannot be captured, with the place in the user's program."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from tapetensor.errors import TraceError
from tapetensor.pictures import users_place


class NotTracedError(Exception):
    """Raised where a call is not captured but run as it is, because recorded arrays come in."""


class NoAttributeError(TraceError, AttributeError):
    """Raised for an attribute that numpy's arrays have and tracers do not."""


_REFUSED: ContextVar[list[TraceError] | None] = ContextVar("_REFUSED", default=None)


def trace_error(what: str) -> TraceError:
    """Return the error for what cannot be captured, with the place in the user's program."""
    place = users_place()
    error = TraceError(f"{place}: compile: {what}" if place else f"compile: {what}")
    refused = _REFUSED.get()
    # numpy itself asks whether an object has attributes like ``__array_interface__``.
    if refused is not None and not what.startswith("__"):
        refused.append(error)
    return error


@contextmanager
def refusals() -> Iterator[list[TraceError]]:
    """Collect what is refused meanwhile: the function may catch it, and go on as if it was not."""
    refused: list[TraceError] = []
    token = _REFUSED.set(refused)
    try:
        yield refused
    finally:
        _REFUSED.reset(token)
