"""Which attributes of objects a function reads, or sets: only those are walked, just before.

While a function is captured, the classes of its objects tell what is looked up and set in them,
whoever does that. What copies or lists a whole object looks up a name with two underscores.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import get_ident
from typing import Any

from tapetensor.compiler.trace.frames import unseen
from tapetensor.compiler.trace.structure import is_plain, is_users, is_written_in_python
from tapetensor.nn.module import Module

# The methods by which Python looks up and sets attributes. That one is deleted is seen afterwards.
_METHODS = ("__getattribute__", "__setattr__")


class Reading:
    """What one captured function reads, or sets, of the attributes of objects."""

    def __init__(self) -> None:
        # What walks the attributes that nobody has read so far, by the address of the object and by
        # name.
        self._unread: dict[int, dict[str, Callable[..., None]]] = {}
        self._classes: dict[type, None] = {}
        # The methods that classes have in order to tell, with their names.
        self._telling: list[tuple[type, str]] = []
        self._is_on = self._is_over = False
        self._thread = get_ident()
        # What other threads have read, which do not walk.
        self._elsewhere: list[tuple[dict[str, Callable[..., None]], str]] = []

    def leaves(self, owner: Any, value: Any) -> bool:
        """Tell whether an attribute is walked when it is read, and not before.

        Args:
            owner: the object, whose class can tell what is looked up.
            value: the attribute.
        """
        return not self._is_over and (not isinstance(owner, Module) or _is_free(value))

    def leave(self, owner: Any, name: str, walk: Callable[..., None]) -> None:
        """Leave an attribute until it is read: `walk` is called then, and told whether by name."""
        self._unread.setdefault(id(owner), {})[name] = walk
        self._classes[type(owner)] = None
        if self._is_on:
            self._have_tell(type(owner))

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

    def forget(self) -> None:
        """Leave the classes as they were, and keep nothing alive."""
        self.stop()
        self._unread.clear()
        self._elsewhere.clear()

    def give_up(self) -> None:
        """Walk all attributes now: code may read or set them untold, or looks at classes."""
        self._is_over = True
        self.stop()
        for walks in [*self._unread.values()]:
            self._walk(walks, [*walks])

    def told(self, owner: Any, name: str) -> None:
        """Walk an attribute that is looked up or set; all of them where all are read."""
        walks = self._unread.get(id(owner))
        if walks is None:
            return
        if get_ident() != self._thread:
            self._elsewhere.append((walks, name))
        elif name in walks:
            self._walk(walks, [name], is_named=True)
        elif name.startswith("__") and name != "__class__":
            self._walk(walks, [*walks])

    def finish(self) -> None:
        """Walk what other threads have read."""
        for walks, name in self._elsewhere:
            self._walk(walks, [name])

    @unseen
    def _walk(
        self, walks: dict[str, Callable[..., None]], names: list[str], *, is_named: bool = False
    ) -> None:
        for name in names:
            if name in walks:
                walks.pop(name)(is_named=is_named)


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
    # Such a method of the user's is seen when it runs; one that is written in C is not.
    can_be_seen = all(isinstance(one, types.FunctionType) for one in own)
    # What is written in C may show all that an object holds.
    return is_users(cls) and can_be_seen and all(map(is_written_in_python, cls.__mro__[:-1]))


def _is_free(value: Any) -> bool:
    """Tell whether a value is plain, or a container of such values and of lists of them."""
    if type(value) is dict:
        return all(map(is_plain, value)) and all(map(_is_plain_or_list, value.values()))
    is_container = type(value) in (list, tuple, set, frozenset)
    return is_plain(value) or (is_container and all(map(_is_plain_or_list, value)))


def _is_plain_or_list(value: Any) -> bool:
    return is_plain(value) or (type(value) is list and all(map(is_plain, value)))
