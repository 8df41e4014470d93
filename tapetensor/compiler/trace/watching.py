"""What a captured function does: which code it enters, what it looks up, and what it changes.

Only attributes that it reads or sets are walked, just before. The classes of its objects tell what
is looked up and set in them, whoever does that. What copies or lists a whole object looks up a name
with two underscores.
"""

from __future__ import annotations

import dis
import operator
import re
import sys
import types
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from threading import get_ident
from types import CodeType, FrameType
from typing import Any, NamedTuple

from tapetensor.compiler.trace.kinds import is_plain, is_plain_nest, is_users, is_written_in_python
from tapetensor.nn.module import Module
from tapetensor.pictures.places import Place
from tapetensor.surroundings import places

# What `sys.monitoring` calls who asks; the lowest numbers are those of debuggers and of coverage.
_NAME, _NUMBERS = "tapetensor", (4, 3, 1, 2, 0)


@contextmanager
def watched(enter: Callable[[FrameType], object]) -> Iterator[None]:
    """See every frame of this thread that is entered meanwhile, or the first of each code.

    Debuggers, profilers and what measures coverage go on as before. `enter` tells whether it is to
    be given the next frame of the code.
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
    """The attributes of objects that one captured function reads or sets."""

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
        """Watch which attributes are read and set meanwhile."""
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

        Those of a model are walked before, but for plain values and nests of them.
        """
        return not self._is_over and (not isinstance(owner, Module) or is_plain_nest(value))

    def give_up(self) -> None:
        """Walk all attributes now, because code may set them without a report."""
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


# Those that are informed.
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
    """Tell whether the class of an object can be made to report its attribute reads."""
    cls = type(value)
    own = [vars(one) for one in cls.__mro__ if is_users(one)]
    looks_up = any("__getattribute__" in one for one in own)
    # Such a method of the user's is seen when it runs; one that is written in C is not.
    setting = [one["__setattr__"] for one in own if "__setattr__" in one]
    looks_up |= not all(isinstance(one, types.FunctionType) for one in setting)
    # What is written in C may show all that an object holds.
    return is_users(cls) and not looks_up and all(map(is_written_in_python, cls.__mro__[:-1]))


class Accessors(NamedTuple):
    """A place that two functions read and write."""

    read: Callable[[], Any]
    write: Callable[[Any], object]


@dataclass
class Held:
    """A changeable object around the function, and its contents when it was found.

    It is `listed` in parts, by the text that leads to each. The `expected` ones have tracers in the
    place of arrays.
    """

    where: str
    place: places.Place
    listed: Callable[[Any], dict[str, Any]]
    same: Callable[[Any, Any], object]
    before: Any = field(init=False)
    expected: dict[str, Any] = field(init=False)
    _is_as_before: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        self.before = self.place.read()
        self.expected = self.listed(self.before)

    def settle(self) -> None:
        """Expect its present contents."""
        self.expected = self.listed(self.place.read())

    def change(self) -> str | None:
        """Return the name of the first part that is another one now; None if none is."""
        now = self.listed(self.place.read())
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
    """Return the line that changes what the user calls so; None if no code names it."""
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
