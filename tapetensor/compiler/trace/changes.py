"""Changes that a function makes around itself in its capture, which a replay would not repeat."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import FrameType
from typing import Any

import numpy as np

from tapetensor.compiler.trace.structure import fields_of, is_users_module
from tapetensor.pictures import Place


@dataclass
class Watch:
    """A mutable object, and what it held when the capture began.

    Args:
        where: what the user calls it.
        read: returns what it holds now, by the text that leads from it to each part.
        before: what it held.
    """

    where: str
    read: Callable[[], Mapping[Any, Any]]
    before: Mapping[Any, Any]

    def change(self) -> str | None:
        """Return the name of the first part that is another object now; None if none is."""
        now = self.read()
        for part in (*self.before, *now):
            if now.get(part, _NOTHING) is not self.before.get(part, _NOTHING):
                return f"{self.where}{part}"
        return None


_NOTHING = object()


def parts(value: Any) -> dict[str, Any]:
    """Return what a container holds, by the text that leads to each item."""
    if isinstance(value, set):
        return {f" ({item!r})": item for item in value}
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    return {f"[{key!r}]": item for key, item in pairs}


def attributes(value: Any) -> dict[str, Any]:
    """Return the attributes of an object, by the text that leads to each."""
    return {f".{name}": item for name, item in fields_of(value).items()}


def global_randomness() -> dict[str, Any]:
    """Return the states of the generators that Python and numpy share among all callers."""
    kind, keys, *rest = np.random.get_state(legacy=True)  # noqa: NPY002  # it is looked for
    return {"random": random.getstate(), "np.random": (kind, np.asarray(keys).tobytes(), *rest)}


def line_of_change(run: Callable[[], object], change: Callable[[], str | None]) -> Place | None:
    """Run a function again and return the line of the user's program after which there is a change.

    Args:
        run: what is run; what it raises is ignored.
        change: tells whether something has changed.
    """
    found: list[Place] = []
    latest: list[Place] = []

    def on_event(frame: FrameType, event: str, argument: object) -> Any:
        if found:
            return None
        if not _is_users(frame):
            # A function of a library may call one of the user's.
            return on_call
        if latest and change() is not None:
            found.append(latest[-1])
            return None
        latest[:] = [Place(frame.f_code.co_filename, frame.f_lineno)]
        return on_event

    def on_call(frame: FrameType, event: str, argument: object) -> Any:
        return on_event if _is_users(frame) else None

    before = sys.gettrace()
    sys.settrace(on_call)
    try:
        run()
    except BaseException:  # it ran without an error before
        pass
    finally:
        sys.settrace(before)
    if not found and latest and change() is not None:
        found = latest
    return found[0] if found else None


def _is_users(frame: FrameType) -> bool:
    # Python writes some methods itself, those of a named tuple, say.
    is_written = frame.f_code.co_filename != "<string>"
    return is_written and is_users_module(frame.f_globals.get("__name__"))
