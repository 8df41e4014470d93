"""Places that a function may read: each can be read, and restored."""

from __future__ import annotations

import pickle
import random
import threading
import types
import zlib
from collections import OrderedDict
from operator import is_
from typing import Any, Final, NamedTuple, Protocol

import numpy as np

from tapetensor.arrays.array import Array

# An array of more bytes is not copied for every call: one that f writes to is refused instead.
COPIED_BYTES = 1 << 20

# What a place without a value holds.
NOTHING: Final = object()


class Place(Protocol):
    """Something that holds values which can be taken down and brought back."""

    def read(self) -> Any:
        """Return its contents, as a copy that nobody changes."""

    def write(self, held: Any, /) -> object:
        """Restore the contents that `read` returned."""


class Attributes(NamedTuple):
    """The attributes of an object that has a dictionary for them; `__setattr__` is not asked."""

    owner: object

    def read(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the dictionary, and a copy of it."""
        fields: Any = attributes_of(self.owner)
        return fields, dict.copy(fields)

    def write(self, held: tuple[dict[str, Any], dict[str, Any]]) -> None:
        """Put back the dictionary, and its contents."""
        fields, values = held
        Contents(fields, dict).write(values)
        if attributes_of(self.owner) is not fields:
            object.__setattr__(self.owner, "__dict__", fields)


def attributes_of(owner: Any) -> dict[str, Any] | None:
    """Return the dictionary of an object, which is not asked; None if it has none."""
    try:
        is_local = issubclass(type(owner), threading.local)
        found = owner.__dict__ if is_local else object.__getattribute__(owner, "__dict__")
    except AttributeError:
        return None
    return found if isinstance(found, dict) else None


class Slot(NamedTuple):
    """An attribute that lies in a slot of an object, or what else a descriptor reads and sets."""

    owner: object
    descriptor: Any
    name: str = ""

    def read(self) -> object:
        """Return the value, or a mark that there is none."""
        try:
            held: object = self.descriptor.__get__(self.owner)
        except (AttributeError, ValueError):
            return NOTHING
        return held

    def write(self, held: object) -> None:
        """Set the value, or leave the slot empty."""
        if held is not NOTHING:
            self.descriptor.__set__(self.owner, held)
        elif self.read() is not NOTHING:
            self.descriptor.__delete__(self.owner)


class Slots:
    """All attributes of an object that lie in slots."""

    def __init__(self, owner: object) -> None:
        self._slots = {name: Slot(owner, slot) for name, slot in slots_of(owner).items()}

    def read(self) -> dict[str, Any]:
        """Return the values of the slots by name, without empty ones."""
        found = {name: slot.read() for name, slot in self._slots.items()}
        return {name: held for name, held in found.items() if held is not NOTHING}

    def write(self, held: dict[str, Any]) -> None:
        """Fill them, and leave the others empty."""
        for name, slot in self._slots.items():
            slot.write(held.get(name, NOTHING))


def slots_of(owner: Any) -> dict[str, types.MemberDescriptorType]:
    """Return the descriptors of the slots of an object, by name."""
    mro = reversed(type(owner).__mro__)
    return {name: slot for one in mro for name, slot in slots_of_class(one).items()}


def slots_of_class(cls: type) -> dict[str, types.MemberDescriptorType]:
    """Return the slots that a class adds to those of its bases, by name."""
    # Classes that are written in C have members, too, which nobody may set.
    own = vars(cls).items() if "__slots__" in vars(cls) else ()
    return {name: one for name, one in own if isinstance(one, types.MemberDescriptorType)}


class Name(NamedTuple):
    """A name of a module or of a class."""

    owner: dict[str, Any] | type
    name: str

    def read(self) -> object:
        """Return the value, or a mark that there is none."""
        owner = self.owner
        names = owner if isinstance(owner, dict) else vars(owner)
        return names.get(self.name, NOTHING)

    def write(self, held: object) -> None:
        """Set the value if it is another one, or delete the name."""
        now = self.read()
        if held is now:
            return
        owner, name = self.owner, self.name
        if isinstance(owner, dict):
            if held is NOTHING:
                del owner[name]
            else:
                owner[name] = held
        elif held is NOTHING:
            # A class that has a say in what is assigned to it is not asked.
            type.__delattr__(owner, name)
        else:
            type.__setattr__(owner, name, held)


class Contents(NamedTuple):
    """The items of a list, a deque, a set or a dictionary, also of a class derived of one.

    Methods of the container itself read and write them, for a derived one may count or check what
    is added. No key is looked for, which would run its own methods.
    """

    container: Any
    kind: Any

    def read(self) -> Any:
        """Return the items in a dictionary or a list."""
        return contents_of(self.kind, self.container)

    def write(self, held: Any) -> None:
        """Put the items back, unless they are there."""
        kind, container, now = self.kind, self.container, self.read()
        has_same = len(now) == len(held) and all(map(is_, now, held))
        if not has_same:
            kind.clear(container)
        if isinstance(held, dict):
            others = now.values() if has_same else [NOTHING] * len(held)
            for (key, item), other in zip(held.items(), others, strict=True):
                if other is not item:
                    kind.__setitem__(container, key, item)
        elif not has_same:
            (kind.update if kind is set else kind.extend)(container, held)


def contents_of(kind: Any, container: Any) -> Any:
    """Return the contents of an instance of a subclass of a container, as a dict or a list."""
    if issubclass(kind, OrderedDict):
        return dict(kind.items(container))
    if issubclass(kind, dict):
        return dict.copy(container)
    return list(kind.__iter__(container))


class GeneratorState(NamedTuple):
    """The state of a generator of random numbers, of numpy's or of Python's."""

    generator: Any

    def read(self) -> Any:
        """Return the state; None if there is none: the system's generator has none."""
        generator = self.generator
        try:
            # What Python's are asked for is a tuple of numbers already.
            is_pythons = isinstance(generator, random.Random)
            return generator.getstate() if is_pythons else pickle.dumps(generator.__getstate__())
        except NotImplementedError:
            return None

    def write(self, held: Any) -> None:
        """Set the state, unless it is that."""
        generator = self.generator
        if held is not None and held != self.read():
            is_pickled = isinstance(held, bytes)
            generator.__setstate__(pickle.loads(held) if is_pickled else held)


# The generators behind the functions of the modules of these names.
COMMON_GENERATORS: Final[dict[str, Any]] = {
    "random": random.random.__self__,  # type: ignore[attr-defined]  # a method, as few know
    "np.random": np.random.random.__self__,  # type: ignore[attr-defined]  # the same
}


class Elements(NamedTuple):
    """The elements of a numpy array that can be written to."""

    array: Array

    def read(self) -> Array:
        """Return a copy."""
        return self.array.copy()

    def write(self, held: Array) -> None:
        """Write the elements back, if the array still takes them."""
        array = self.array
        if array.flags.writeable and array.shape == held.shape:
            np.copyto(array, held)


def checksum(array: Array) -> int:
    """Return a number that is another one, but for one case in 2**32, if an element is another."""
    # What was broadcast lies in memory once.
    part: Any = array[tuple([slice(1) if step == 0 else slice(None) for step in array.strides])]
    if not part.flags.c_contiguous:
        turned = part.T
        part = turned if turned.flags.c_contiguous else part.copy()
    # crc32 wants bytes, and numpy gives no buffer of some dtypes.
    return zlib.crc32(part.reshape(-1).view(np.uint8))


def cell_place(cell: types.CellType, name: str = "") -> Slot:
    """Return the place of a variable in a closure."""
    return Slot(cell, CELL_CONTENTS, name)


CELL_CONTENTS: Final[Any] = vars(types.CellType)["cell_contents"]
