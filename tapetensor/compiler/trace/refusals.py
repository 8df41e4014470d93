"""The error for what cannot be captured, with the place in the user's program."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

from typing_extensions import TypeVar

from tapetensor.errors import TraceError
from tapetensor.pictures.places import (
    Place,
    is_installed,
    is_users_module,
    place_in,
    users_frame,
)

X_ = TypeVar("X_")

_COMPILER = __name__.removesuffix(".trace.refusals")


class Untraced(NamedTuple):
    """A call that is not captured but run as it is.

    Attributes:
        told: the name of the error that its capture raised; empty if there was none.
        held: what the function may change before it raises an error again.
        groups: the groups of parameters of the optimizers that came in.
    """

    told: str = ""
    held: Sequence[Any] = ()
    groups: Sequence[Any] = ()


class NotTracedError(Exception):
    """Raised where a call is run as it is.

    That is so where recorded arrays come in, and where the function raises an error: what it raises
    for arrays counts, and not what it raises for what stands for them.

    Args:
        call: what is known of it.
    """

    def __init__(self, call: Untraced) -> None:
        super().__init__()
        self.call = call


class NoAttributeError(TraceError, AttributeError):
    """Raised for an attribute that numpy's arrays have and tracers do not."""


class NoPlaceError(TraceError):
    """Raised where values are read that are not known, to be written into numpy's memory, say."""


_REFUSED: ContextVar[list[BaseException] | None] = ContextVar("_REFUSED", default=None)
# The place of what is refused before the function runs.
_PLACE: ContextVar[Place | None] = ContextVar("_PLACE", default=None)


@contextmanager
def meanwhile(variable: ContextVar[X_], value: X_) -> Iterator[None]:
    """Let a variable have a value, and after that the one that it had."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


def placed(place: Place | None) -> AbstractContextManager[None]:
    """Let errors name a place, for what is refused in it without being run."""
    return meanwhile(_PLACE, place)


def trace_error(what: str, kind: type[TraceError] = TraceError) -> TraceError:
    """Return the error for what cannot be captured, with the place in the user's program."""
    place = _PLACE.get()
    if place is None:
        place, inside = _places()
        if inside is not None:
            what += f"; that is at {inside}: call the package outside, and pass what it gives"
    error = kind(f"{place}: compile: {what}" if place else f"compile: {what}")
    refused = _REFUSED.get()
    # numpy itself asks whether an object has attributes like ``__array_interface__``.
    if refused is not None and not what.startswith("__"):
        refused.append(error)
    return error


def _places() -> tuple[Place | None, Place | None]:
    """Return the line of the user's that runs now, and where in an installed package that leads.

    A function of a package may be what is compiled: then its line is the user's.
    """
    inner = frame = users_frame()
    while frame is not None:
        module = frame.f_globals.get("__name__")
        if is_users_module(module) and not is_installed(frame.f_code.co_filename):
            break
        frame = None if (module or "").startswith(_COMPILER) else frame.f_back
    inside = None if inner is None else place_in(inner)
    return (inside, None) if frame is None or frame is inner else (place_in(frame), inside)


def refusals(refused: list[BaseException]) -> AbstractContextManager[None]:
    """Collect what is refused meanwhile: the function may catch it, and go on as if it was not."""
    return meanwhile(_REFUSED, refused)


def first_of(errors: list[BaseException]) -> BaseException:
    """Return the first of some errors, and forget all of them."""
    first = errors[0]
    errors.clear()
    return first
