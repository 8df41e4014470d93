"""Changes that a function makes around itself in its capture, which a replay would not repeat."""

from __future__ import annotations

import dis
import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import CodeType
from typing import Any, NamedTuple

from tapetensor.compiler.trace.kinds import is_plain
from tapetensor.pictures.places import Place
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


# Methods by which containers change.
_CHANGING = frozenset(
    {"add", "append", "appendleft", "clear", "discard", "extend", "insert", "pop", "popitem",
     "popleft", "remove", "reverse", "rotate", "setdefault", "sort", "update"}
)  # fmt: skip


def line_of_change(change: str, codes: Sequence[CodeType]) -> Place | None:
    """Return the line that changes something; None if no code names it.

    Args:
        change: what the user calls it.
        codes: what has run, in order.
    """
    name = re.split(r"[\[(]", change)[0].strip(" .").rpartition(".")[2].rpartition(" ")[2]
    if name.isdigit() and codes:
        # It is the number of an argument.
        names = [one for one in codes[0].co_varnames if one not in ("self", "cls")]
        name = names[int(name)] if int(name) < len(names) else name
    named: list[Place] = []
    changing: set[Place] = set()
    for code in codes:
        for one in dis.get_instructions(code):
            line = one.positions.lineno if one.positions else None
            place = Place(code.co_filename, line or code.co_firstlineno)
            if one.argval == name:
                named.append(place)
            is_store = one.opname.startswith(("STORE_", "DELETE_")) and "FAST" not in one.opname
            if is_store or one.argval in _CHANGING:
                changing.add(place)
    # Where it is only named, another name may stand for it on the line that changes it.
    return next((one for one in named if one in changing), named[0] if named else None)
