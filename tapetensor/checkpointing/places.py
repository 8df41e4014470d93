"""Places that hold what a function may read: each can be read, and be given what it held before."""

from __future__ import annotations

import random
import types
import zlib
from collections import OrderedDict
from operator import is_
from typing import Any, Final, Protocol, TypeAlias

import numpy as np

from tapetensor.arrays.array import Array

# An array of more bytes is not copied for every call: one that f writes to is refused instead.
COPIED_BYTES = 1 << 20

# What a place without a value holds.
_NOTHING: Final = object()


class Place(Protocol):
    """Something that holds values which can be taken down and brought back."""

    def read(self) -> Any:
        """Return what it holds, as nobody will change it."""

    def write(self, held: Any) -> None:
        """Make it hold what `read` returned."""


class Attributes:
    """The attributes of an object that has a dictionary for them; `__setattr__` is not asked."""

    __slots__ = ("_owner",)

    def __init__(self, owner: object) -> None:
        self._owner = owner

    def read(self) -> dict[str, Any]:
        """Return a copy of the dictionary."""
        return attributes_of(self._owner).copy()

    def write(self, held: dict[str, Any]) -> None:
        """Set what is another one, and remove what was not there."""
        values = attributes_of(self._owner)
        if not _is_same(values, held):
            values.update(held)
            for name in values.keys() - held.keys():
                del values[name]


def attributes_of(owner: object) -> dict[str, Any]:
    """Return the dictionary of an object, which is not asked, or an empty one if it has none."""
    try:
        found: Any = object.__getattribute__(owner, "__dict__")
    except AttributeError:
        return {}
    return found if type(found) is dict else {}


class Slot:
    """An attribute that lies in a slot of an object, or the contents of a cell."""

    __slots__ = ("_descriptor", "_owner")

    def __init__(self, owner: object, descriptor: Any) -> None:
        self._owner = owner
        self._descriptor = descriptor

    def read(self) -> object:
        """Return the value, or a mark that there is none."""
        try:
            held: object = self._descriptor.__get__(self._owner)
        except (AttributeError, ValueError):
            return _NOTHING
        return held

    def write(self, held: object) -> None:
        """Set the value, or leave the slot empty."""
        if held is not _NOTHING:
            self._descriptor.__set__(self._owner, held)
        elif self.read() is not _NOTHING:
            self._descriptor.__delete__(self._owner)


class Name:
    """A name of a module or of a class."""

    __slots__ = ("_name", "_owner")

    def __init__(self, owner: dict[str, Any] | type, name: str) -> None:
        self._owner = owner
        self._name = name

    def read(self) -> object:
        """Return the value, or a mark that there is none."""
        owner = self._owner
        names = owner if isinstance(owner, dict) else vars(owner)
        return names.get(self._name, _NOTHING)

    def write(self, held: object) -> None:
        """Set the value if it is another one, or delete the name."""
        now = self.read()
        if held is now:
            return
        owner, name = self._owner, self._name
        if isinstance(owner, dict):
            if held is _NOTHING:
                del owner[name]
            else:
                owner[name] = held
        elif held is _NOTHING:
            # A class that has a say in what is assigned to it is not asked.
            type.__delattr__(owner, name)
        else:
            type.__setattr__(owner, name, held)


class Contents:
    """The items of a list, a deque, a set or a dictionary, also of a class derived of one."""

    __slots__ = ("_container", "_fill", "_kind")

    def __init__(self, container: Any, kind: type[Any]) -> None:
        self._container = container
        # Methods of the class itself, for a derived one may count or check what is added.
        self._kind: Any = kind
        self._fill: Any = getattr(kind, "extend", None) or kind.update

    def read(self) -> Any:
        """Return the items in a container of the plain kind."""
        copied = dict if self._kind is OrderedDict else self._kind
        return copied(self._container)

    def write(self, held: Any) -> None:
        """Replace the items, if they are others."""
        container = self._container
        if isinstance(container, dict):
            is_same = _is_same(container, held)
        elif isinstance(container, set):
            # A copy may have another order.
            is_same = container == held
        else:
            is_same = len(container) == len(held) and all(map(is_, container, held))
        if not is_same:
            self._kind.clear(container)
            self._fill(container, held)


class GeneratorState:
    """The state of a generator of random numbers."""

    __slots__ = ("_generator",)

    def __init__(self, generator: AnyGenerator) -> None:
        self._generator = generator

    def read(self) -> Any:
        """Return the state, or a mark that there is none: the system's generator has none."""
        generator = self._generator
        try:
            if isinstance(generator, np.random.BitGenerator):
                return generator.state
            if isinstance(generator, random.Random):
                return generator.getstate()
            return generator.get_state(legacy=False)
        except NotImplementedError:
            return _NOTHING

    def write(self, held: Any) -> None:
        """Set the state."""
        generator = self._generator
        if held is _NOTHING:
            return
        if isinstance(generator, np.random.BitGenerator):
            generator.state = held
        elif isinstance(generator, random.Random):
            generator.setstate(held)
        else:
            generator.set_state(held)


AnyGenerator: TypeAlias = np.random.BitGenerator | np.random.RandomState | random.Random


class Elements:
    """The elements of a numpy array that can be written to."""

    __slots__ = ("_array",)

    def __init__(self, array: Array) -> None:
        self._array = array

    def read(self) -> Array:
        """Return a copy."""
        return self._array.copy()

    def write(self, held: Array) -> None:
        """Write the elements back, if the array still takes them."""
        array = self._array
        if array.flags.writeable and array.shape == held.shape:
            np.copyto(array, held)


class ManyElements:
    """The elements of an array that is too large to be copied at each call."""

    __slots__ = ("_array",)

    def __init__(self, array: Array) -> None:
        self._array = array

    def read(self) -> int:
        """Return a checksum."""
        return checksum(self._array)


def checksum(array: Array) -> int:
    """Return a number that is another one, but for one case in 2**32, if an element is another."""
    # What was broadcast lies in memory once.
    part: Any = array[tuple([slice(1) if step == 0 else slice(None) for step in array.strides])]
    if not part.flags.c_contiguous:
        turned = part.T
        part = turned if turned.flags.c_contiguous else part.copy()
    # crc32 wants bytes, and numpy gives no buffer of some dtypes.
    return zlib.crc32(part.reshape(-1).view(np.uint8))


def cell_place(cell: types.CellType) -> Slot:
    """Return the place of what a closure holds."""
    return Slot(cell, _CELL_CONTENTS)


_CELL_CONTENTS = vars(types.CellType)["cell_contents"]


def _is_same(values: dict[Any, Any], held: dict[Any, Any]) -> bool:
    return (
        len(values) == len(held)
        and all(map(is_, values.values(), held.values()))
        and list(values) == list(held)
    )
