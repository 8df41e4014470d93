"""Which attributes of plain objects a function reads: the others may differ at the next call.

While a function is captured, the classes of its objects tell what is looked up and set in them,
whoever does that. What copies or lists a whole object looks up a name with two underscores.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from tapetensor.compiler.trace.structure import is_plain, is_users, is_written_in_python

# The methods by which Python looks up and sets attributes.
_METHODS = ("__getattribute__", "__setattr__", "__delattr__")


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
    """What one captured function reads, or sets, of the attributes of plain objects."""

    def __init__(self) -> None:
        self._found: list[Attribute] = []
        # What was looked up or set, by the address of the object.
        self._told: dict[int, set[str]] = {}
        self._classes: dict[type, None] = {}
        # The methods that classes have in order to tell, with their names.
        self._telling: list[tuple[type, str]] = []
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
        for name in _METHODS:
            if name not in vars(cls):
                self._telling.append((cls, name))
                type.__setattr__(cls, name, _teller(cls, name))

    @contextmanager
    def watched(self) -> Iterator[None]:
        """See what is looked up and set meanwhile."""
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
            cls, name = self._telling[-1]
            if is_teller(vars(cls).get(name)):
                type.__delattr__(cls, name)
            self._telling.pop()

    def give_up(self) -> None:
        """Count all attributes as read: code may read or set them untold, or looks at classes."""
        self._is_over = True
        self._found.clear()
        self.stop()

    def told(self, owner: Any, name: str) -> None:
        """Note that something is looked up or set."""
        self._told.setdefault(id(owner), set()).add(name)

    def unread(self) -> list[Attribute]:
        """Return the attributes that nobody has looked up or set."""
        return [one for one in self._found if not self._is_read(one)]

    def _is_read(self, attribute: Attribute) -> bool:
        names = self._told.get(id(attribute.owner), set())
        is_whole = any(name.startswith("__") and name != "__class__" for name in names)
        return is_whole or attribute.name in names


# Those that are told.
_ACTIVE: list[Reading] = []


def _teller(cls: type, method: str) -> Callable[..., Any]:
    """Return a method of a class that tells which attribute it is called for."""

    def tell(value: Any, name: str, *args: Any) -> Any:
        for reading in _ACTIVE:
            reading.told(value, name)
        return getattr(super(cls, value), method)(name, *args)

    return tell


_CODE = _teller(object, "").__code__


def is_teller(value: Any) -> bool:
    """Tell whether a class has something only in order to tell."""
    return type(value) is types.FunctionType and value.__code__ is _CODE


def can_tell(value: Any) -> bool:
    """Tell whether the class of an object can be made to tell what is looked up in it."""
    cls = type(value)
    own = [vars(cls)[name] for name in _METHODS if name in vars(cls)]
    # What is written in C may show all that an object holds.
    is_in_python = all(map(is_written_in_python, cls.__mro__[:-1]))
    return is_users(cls) and is_in_python and all(map(is_teller, own))


def _is_free(value: Any) -> bool:
    """Tell whether a value is plain, or a container of such values and of lists of them."""
    if type(value) is dict:
        return all(map(is_plain, value)) and all(map(_is_plain_or_list, value.values()))
    is_container = type(value) in (list, tuple, set, frozenset)
    return is_plain(value) or (is_container and all(map(_is_plain_or_list, value)))


def _is_plain_or_list(value: Any) -> bool:
    return is_plain(value) or (type(value) is list and all(map(is_plain, value)))
