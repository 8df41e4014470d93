"""Changes that a function makes around itself in its capture, which a replay would not repeat."""

from __future__ import annotations

import gc
import operator
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, NamedTuple

from tapetensor.compiler.trace.kinds import is_plain
from tapetensor.pictures.places import Place, is_users_module, place_in
from tapetensor.surroundings import places


class Accessors(NamedTuple):
    """A place that two functions read and write."""

    read: Callable[[], Any]
    write: Callable[[Any], object]


@dataclass
class Held:
    """A changeable object around the function, and its contents when it was found.

    Args:
        where: its name in the user's program.
        place: reads its contents, and restores them.
        told: returns the parts of its contents, by the text that leads to each of them.
        same: tells whether a part has not changed.

    Attributes:
        before: its contents before.
        expected: the parts of its expected contents, with tracers in the place of arrays.
    """

    where: str
    place: places.Place
    told: Callable[[Any], dict[str, Any]]
    same: Callable[[Any, Any], object]
    before: Any = field(init=False)
    expected: dict[str, Any] = field(init=False)
    _is_as_before: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        self.before = self.place.read()
        self.expected = self.told(self.before)

    def settle(self) -> None:
        """Expect its present contents."""
        self.expected = self.told(self.place.read())

    def change(self) -> str | None:
        """Return the name of the first part that is another one now; None if none is."""
        now = self.told(self.place.read())
        has_same = [*now] == [*self.expected]
        if has_same and all(map(self.same, now.values(), self.expected.values())):
            # Of what is compared by value nothing is replaced.
            self._is_as_before = self.same is operator.eq
            return None
        self._is_as_before = False
        for part in (*self.expected, *now):
            if not self.same(now.get(part, _NOTHING), self.expected.get(part, _NOTHING)):
                return f"{self.where}{part}"
        return None if has_same else f"the order of {self.where.rstrip('.')}"

    def put_back(self) -> None:
        """Restore its contents from before."""
        if not self._is_as_before:
            self.place.write(self.before)


_NOTHING = object()


def shown(key: Any) -> str:
    """Return a key as text; of an object its address, for its own text may need its values."""
    if isinstance(key, tuple):
        return f"({', '.join(map(shown, key))})"
    return repr(key) if is_plain(key) else f"<{type(key).__name__} at {id(key):#x}>"


def parts(value: Any) -> dict[str, Any]:
    """Return the items of a container, by the text that leads to each item."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    return {f"[{shown(key)}]": item for key, item in pairs}


def members(value: Any) -> dict[str, Any]:
    """Return the items of a set, by the text that describes each."""
    return {f" ({shown(item)})": item for item in value}


def nothing(_: object = None) -> None:
    """Read nothing, or put nothing back."""


def whole(value: Any) -> dict[str, Any]:
    """Return a value with a single part: all of it."""
    return {"": value}


def line_of_change(run: Callable[[], object], change: Callable[[], str | None]) -> Place | None:
    """Run a function again and return the line of the user's program after which there is a change.

    Args:
        run: the function to run; its errors are ignored.
        change: tells whether something has changed.
    """
    lines = _Lines(change)
    before = sys.gettrace()
    sys.settrace(lines.on_call)
    try:
        run()
    except BaseException:  # it ran without an error before
        pass
    finally:
        sys.settrace(before)
    return lines.latest if lines.is_found or change() is not None else None


class _Lines:
    """Watches the lines that run, until there is a change.

    Args:
        change: tells whether there is one.

    Attributes:
        is_found: whether there is.
        latest: the line that ran last until then.
    """

    def __init__(self, change: Callable[[], str | None]) -> None:
        self._change = change
        self.is_found = False
        self.latest: Place | None = None
        # What Python calls when it collects garbage, in any line, is no part of the run.
        self._collecting = {getattr(one, "__code__", None) for one in gc.callbacks}

    def on_call(self, frame: FrameType, event: str, argument: object) -> Any:
        return self._on_line if _is_users(frame) and frame.f_code not in self._collecting else None

    def _on_line(self, frame: FrameType, event: str, argument: object) -> Any:
        if not self.is_found:
            self.is_found = self.latest is not None and self._change() is not None
        if self.is_found:
            return None
        # What the caller does with the result is on its own line, which is not told again.
        caller = frame.f_back if event == "return" else None
        at = frame if caller is None or not _is_users(caller) else caller
        self.latest = place_in(at)
        return self._on_line


def _is_users(frame: FrameType) -> bool:
    # Python writes some methods itself, those of a named tuple, say.
    is_written = frame.f_code.co_filename != "<string>"
    return is_written and is_users_module(frame.f_globals.get("__name__"))
