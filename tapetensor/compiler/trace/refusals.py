"""The error for code that cannot be captured, with the place in the user's program."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from types import FrameType
from typing import Any, NamedTuple

from typing_extensions import TypeVar

from tapetensor.errors import TraceError
from tapetensor.pictures.places import Place, users_place

X_ = TypeVar("X_")

_COMPILER = __name__.removesuffix(".trace.refusals")
_LIBRARY = __name__.split(".", maxsplit=1)[0] + "."


WRITTEN = (
    "an array is written into (by a[i] = ..., +=, out= or a function that does so), which a plan "
    "does not repeat; write a = a + b, np.where(mask, a, b) or np.concatenate([...]), which make "
    "new arrays, or do it outside"
)


class Untraced(NamedTuple):
    """A call that is not captured but run as it is.

    Attributes:
        told: the name of the error that its capture raised; empty if there was none.
        held: the objects that the function may change before it raises an error again.
        groups: the groups of parameters of the optimizers that came in.
    """

    told: str = ""
    held: Sequence[Any] = ()
    groups: Sequence[Any] = ()


class NotTracedError(Exception):
    """Raised to run a call without a plan.

    This happens if recorded arrays come in, or if the function raises an error, because only errors
    for arrays count, and not those for tracers.

    Args:
        call: the facts about the call.
    """

    def __init__(self, call: Untraced) -> None:
        super().__init__()
        self.call = call


class NoAttributeError(TraceError, AttributeError):
    """Raised for an attribute that numpy's arrays have and tracers do not."""


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
    """Let errors name a place, for code that is refused without being run."""
    return meanwhile(_PLACE, place)


def trace_error(what: str, kind: type[TraceError] = TraceError) -> TraceError:
    """Return the error for code that cannot be captured, with the place in the user's program."""
    place = _PLACE.get() or users_place()
    error = kind(f"{place}: compile: {what}" if place else f"compile: {what}")
    refused = _REFUSED.get()
    # numpy itself asks whether an object has attributes like ``__array_interface__``.
    if refused is not None and not what.startswith("__"):
        refused.append(error)
    return error


def is_users_call() -> bool:
    """Tell whether it is code of the user's that asks something of an array, not the library's."""
    frame: FrameType | None = sys._getframe(1)
    module = ""
    while frame is not None:
        module = frame.f_globals.get("__name__") or ""
        if not module.startswith((_COMPILER, "numpy")):
            break
        frame = frame.f_back
    return frame is not None and not module.startswith(_LIBRARY)


def check_writer() -> None:
    """Refuse that code of the user's writes into an array; the library's kernels may.

    Raises:
        TraceError: if it does.
    """
    if is_users_call():
        raise trace_error(WRITTEN)


def refusals(refused: list[BaseException]) -> AbstractContextManager[None]:
    """Collect the errors of meanwhile, because the function may catch them and go on."""
    return meanwhile(_REFUSED, refused)


def first_of(errors: list[BaseException]) -> BaseException:
    """Return the first of some errors, and forget all of them."""
    first = errors[0]
    errors.clear()
    return first
