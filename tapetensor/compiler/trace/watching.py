"""What a function does while it is captured: which code it enters, which attributes it looks up.

Only attributes that it reads or sets are walked, just before. The classes of its objects tell what
is looked up and set in them, whoever does that. What copies or lists a whole object looks up a name
with two underscores.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from threading import get_ident
from types import CodeType, FrameType
from typing import Any

from tapetensor.compiler.trace.kinds import is_plain, is_users, is_written_in_python
from tapetensor.nn.module import Module

# What `sys.monitoring` calls who asks; the lowest numbers are those of debuggers and of coverage.
_NAME, _NUMBERS = "tapetensor", (4, 3, 1, 2, 0)


@contextmanager
def watched(enter: Callable[[FrameType], object]) -> Iterator[None]:
    """See every frame of this thread that is entered meanwhile, or the first of each code.

    Debuggers, profilers and what measures coverage go on as before.

    Args:
        enter: is given each of them, and tells whether it is to be given the next of its code.
    """
    before: Any = sys.getprofile()

    def on_event(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call":
            enter(frame)

    is_monitored = False
    try:
        is_monitored = _is_monitored(enter)
        if not is_monitored:
            sys.setprofile(on_event)
        yield
    finally:
        _stop_monitoring()
        if not is_monitored:
            sys.setprofile(None)
            # Python's own profiler begins again only when it is told to.
            getattr(before, "enable", partial(sys.setprofile, before))()


if sys.version_info >= (3, 12):
    _monitoring = sys.monitoring
    _taken: list[int] = []

    def _is_monitored(enter: Callable[[FrameType], object]) -> bool:
        """Begin to watch by `sys.monitoring`; tell whether there was a number left for that."""
        free = [one for one in _NUMBERS if _monitoring.get_tool(one) is None]
        if not free:
            return False
        thread, started = get_ident(), _monitoring.events.PY_START

        def on_start(code: CodeType, offset: int) -> Any:
            if get_ident() != thread:
                return None
            is_asked_again = enter(sys._getframe(1))
            # Once is enough: what belongs to code that was entered is walked when it is found.
            return None if is_asked_again else _monitoring.DISABLE

        _monitoring.use_tool_id(free[0], _NAME)
        _taken.append(free[0])
        _monitoring.register_callback(free[0], started, on_start)
        # What an earlier capture has seen enough of, this one has not.
        _monitoring.restart_events()
        _monitoring.set_events(free[0], started)
        return True

    def _stop_monitoring() -> None:
        while _taken:
            _monitoring.set_events(_taken[-1], 0)
            _monitoring.register_callback(_taken[-1], _monitoring.events.PY_START, None)
            _monitoring.free_tool_id(_taken.pop())

else:

    def _is_monitored(enter: Callable[[FrameType], object]) -> bool:
        """Tell that this version of Python has no `sys.monitoring`."""
        return False

    def _stop_monitoring() -> None:
        """Do nothing."""


# The methods by which Python looks up and sets attributes. That one is deleted is seen afterwards.
_METHODS = ("__getattribute__", "__setattr__")


class AttributeReads:
    """What one captured function reads, or sets, of the attributes of objects."""

    def __init__(self) -> None:
        # What walks the attributes that nobody has read so far, by the address of the object and by
        # name.
        self._unread: dict[int, dict[str, Callable[[], None]]] = {}
        self._classes: dict[type, None] = {}
        # The methods that classes have in order to tell, with their names.
        self._added: list[tuple[type, str]] = []
        self._is_on = self._is_over = False
        self._thread = get_ident()

    def leave(self, owner: Any, name: str, walk: Callable[[], None]) -> None:
        """Leave an attribute until it is read, which is when `walk` is called."""
        self._unread.setdefault(id(owner), {})[name] = walk
        self._classes[type(owner)] = None
        if self._is_on:
            self._add_to(type(owner))

    def _add_to(self, cls: type) -> None:
        for name in _METHODS:
            if name not in vars(cls):
                self._added.append((cls, name))
                type.__setattr__(cls, name, _teller(cls, name))

    @contextmanager
    def watched(self) -> Iterator[None]:
        """See what is looked up and set meanwhile."""
        _ACTIVE.append(self)
        try:
            self._is_on = True
            for cls in self._classes:
                self._add_to(cls)
            yield
        finally:
            _ACTIVE.remove(self)
            self.forget()

    def forget(self) -> None:
        """Leave the classes as they were, and keep nothing alive."""
        self._is_on = False
        while self._added:
            cls, name = self._added[-1]
            if is_teller(vars(cls).get(name)):
                type.__delattr__(cls, name)
            self._added.pop()
        self._unread.clear()

    def leaves(self, owner: Any, value: Any) -> bool:
        """Tell whether an attribute of an object whose class can tell is walked when it is read.

        Those of a model are walked before, but for plain values and lists of them.
        """
        return not self._is_over and (not isinstance(owner, Module) or _is_free(value))

    def give_up(self) -> None:
        """Walk all attributes now: code may set them untold."""
        self._is_over = True
        for walks in [*self._unread.values()]:
            for one in [*walks]:
                walks.pop(one)()

    def note(self, owner: Any, name: str) -> None:
        """Walk an attribute that is looked up or set; all of them where all are read."""
        walks = self._unread.get(id(owner))
        if walks is None or get_ident() != self._thread:
            return
        if name in walks:
            walks.pop(name)()
        elif name.startswith("__") and name != "__class__":
            for one in [*walks]:
                walks.pop(one)()


# Those that are told.
_ACTIVE: list[AttributeReads] = []


def _teller(cls: type, method: str) -> Callable[..., Any]:
    """Return a method of a class that tells which attribute it is called for."""

    def tell(value: Any, name: str, *args: Any) -> Any:
        for reads in _ACTIVE:
            reads.note(value, name)
        return getattr(super(cls, value), method)(name, *args)

    return tell


_CODE = _teller(object, "").__code__


def is_teller(value: Any) -> bool:
    """Tell whether a class has something only in order to tell."""
    return type(value) is types.FunctionType and value.__code__ is _CODE


def can_tell(value: Any) -> bool:
    """Tell whether the class of an object can be made to tell what is looked up in it."""
    cls = type(value)
    own = [vars(one) for one in cls.__mro__ if is_users(one)]
    looks_up = any("__getattribute__" in one for one in own)
    # Such a method of the user's is seen when it runs; one that is written in C is not.
    setting = [one["__setattr__"] for one in own if "__setattr__" in one]
    looks_up |= not all(isinstance(one, types.FunctionType) for one in setting)
    # What is written in C may show all that an object holds.
    return is_users(cls) and not looks_up and all(map(is_written_in_python, cls.__mro__[:-1]))


def _is_free(value: Any) -> bool:
    if type(value) is dict:
        return all(map(is_plain, value)) and all(map(_is_plain_or_list, value.values()))
    is_container = type(value) in (list, tuple, set, frozenset)
    return is_plain(value) or (is_container and all(map(_is_plain_or_list, value)))


def _is_plain_or_list(value: Any) -> bool:
    return is_plain(value) or (type(value) is list and all(map(is_plain, value)))
