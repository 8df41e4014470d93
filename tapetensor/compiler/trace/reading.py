"""Which attributes of plain objects a function reads: the others may differ at the next call.

While a function is captured, the classes of its objects tell what is looked up in them, whoever
does that: what copies, pickles or lists a whole object looks up a name with two underscores.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from tapetensor.compiler.trace.structure import is_plain, is_users

_NAME = "__getattribute__"
# Code that names one of these looks attributes up in a way that nobody is told of.
STATIC = frozenset({_NAME, "getattr_static"})


class Attribute(NamedTuple):
    """An attribute whose guards nothing else depends on.

    Attributes:
        owner: the object.
        name: the name of the attribute.
        held: the source of the dict that has it.
        lines: where its guards are among all.
    """

    owner: Any
    name: str
    held: str
    lines: range


class Reading:
    """What one captured function reads of the attributes of plain objects."""

    def __init__(self) -> None:
        self._found: list[Attribute] = []
        # What was looked up, by the address of the object.
        self._reads: dict[int, set[str]] = {}
        self._classes: dict[type, None] = {}
        # Those that tell now what is looked up.
        self._telling: list[type] = []
        self._is_on = self._is_over = False

    def note(self, attribute: Attribute, value: Any) -> None:
        """Note an attribute and its value, which was walked before the function can read it.

        The object is one whose class can tell what is looked up.
        """
        cls = type(attribute.owner)
        if not self._is_over and _is_free(value):
            self._found.append(attribute)
            self._classes[cls] = None
            if self._is_on:
                self._have_tell(cls)

    def _have_tell(self, cls: type) -> None:
        if _NAME not in vars(cls):
            self._telling.append(cls)
            type.__setattr__(cls, _NAME, look_up)

    @contextmanager
    def watched(self) -> Iterator[None]:
        """See what is looked up meanwhile."""
        _ACTIVE.append(self)
        try:
            self._is_on = not self._is_over
            for cls in self._classes if self._is_on else ():
                self._have_tell(cls)
            yield
        finally:
            _ACTIVE.remove(self)
            self.stop()

    def stop(self) -> None:
        """Leave the classes as they were."""
        self._is_on = False
        while self._telling:
            if vars(self._telling[-1]).get(_NAME) is look_up:
                type.__delattr__(self._telling[-1], _NAME)
            self._telling.pop()

    def give_up(self) -> None:
        """Count all attributes as read: some code may set any, or sees what a class has."""
        self._is_over = True
        self._found.clear()
        self.stop()

    def told(self, owner: Any, name: str) -> None:
        """Note that something is looked up."""
        self._reads.setdefault(id(owner), set()).add(name)

    def unread(self, named: Container[str]) -> list[Attribute]:
        """Return the attributes that nobody has looked up, and that no code names, to set them."""
        return [one for one in self._found if one.name not in named and not self._is_read(one)]

    def _is_read(self, attribute: Attribute) -> bool:
        names = self._reads.get(id(attribute.owner), set())
        is_whole = any(name.startswith("__") and name != "__class__" for name in names)
        return is_whole or attribute.name in names


# Those that are told.
_ACTIVE: list[Reading] = []


def look_up(value: Any, name: str) -> Any:
    """Look up an attribute, and tell so."""
    for reading in _ACTIVE:
        reading.told(value, name)
    return object.__getattribute__(value, name)


def can_tell(value: Any) -> bool:
    """Tell whether the class of an object can be made to tell what is looked up in it."""
    cls = type(value)
    # Classes that are written in C have a lookup of their own.
    lookups = [vars(one)[_NAME] for one in cls.__mro__[:-1] if _NAME in vars(one)]
    return is_users(cls) and all(one is look_up for one in lookups)


def _is_free(value: Any) -> bool:
    """Tell whether a value is plain, or a container of such values and of lists of them."""
    if type(value) is dict:
        return all(map(is_plain, value)) and all(map(_is_plain_or_list, value.values()))
    is_container = type(value) in (list, tuple, set, frozenset)
    return is_plain(value) or (is_container and all(map(_is_plain_or_list, value)))


def _is_plain_or_list(value: Any) -> bool:
    return is_plain(value) or (type(value) is list and all(map(is_plain, value)))
