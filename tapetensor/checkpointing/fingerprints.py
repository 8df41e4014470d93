"""Fingerprints of a record, by which two runs of a function are compared.

The gradient depends on nothing but the records: which op came of which ids, and what its pullbacks
hold. So two runs with the same fingerprints have the same gradient, whatever the function read.
"""

from __future__ import annotations

import sys
import types
import zlib
from abc import abstractmethod
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any
from weakref import ref

import numpy as np
from numpy.lib.array_utils import byte_bounds

from tapetensor.arrays.array import Array, is_array
from tapetensor.arrays.libraries import to_numpy
from tapetensor.arrays.stand_ins import Level, plain
from tapetensor.pictures.places import is_users_module
from tapetensor.surroundings.places import Slot, attributes_of, checksum
from tapetensor.tape.history import Recording, op_name
from tapetensor.tape.pullbacks import JointPullbacks
from tapetensor.tensor.tensor import Tensor

# Values that their type and what is written of them tell apart.
_WRITTEN = frozenset(
    {float, complex, bool, str, bytes, type(None), slice, range, type(...), np.ufunc}
)


_BOUND = frozenset({types.MethodType, types.BuiltinMethodType, types.MethodWrapperType})


class Fingerprinted:
    """An object of a pullback that knows its own fingerprint."""

    @property
    @abstractmethod
    def fingerprint(self) -> object:
        """Something hashable, which tells whether the pullbacks give the same."""


class Fingerprints:
    """Makes fingerprints of the objects that pullbacks hold.

    The known arrays are the same in both runs, and nobody writes to them.
    """

    def __init__(self, known: Iterable[Array]) -> None:
        self._known = [array for array in map(plain, known) if type(array) is np.ndarray]
        self._positions = {id(array): position for position, array in enumerate(self._known)}
        # Of views of them: where they begin in memory, and how many bytes they have.
        self._places: dict[int, tuple[int, int]] | None = None
        # Several ops hold an array: its user, what made it. It is not kept alive for that.
        self._sums: dict[int, tuple[ref[Array], int]] = {}
        # What is being looked at, by identity: objects may hold one another.
        self._within: set[int] = set()

    def of_record(self, kernel: Any, pullbacks: Any) -> int:
        """Return the fingerprint of the objects that the pullbacks of an op hold."""
        if not getattr(kernel, "__module__", "").startswith("tapetensor.kernels"):
            # The library's kernels hold arrays that nobody writes to; others may.
            self._sums.clear()
        return hash(self.of(pullbacks))

    def of(self, value: Any) -> object:
        """Return something hashable that is equal for two values only if they are the same."""
        cls = type(value)
        if cls is np.ndarray:
            return self._of_array(value)
        if cls is int:
            # Some have too many digits.
            return "int", hex(value)
        if cls in _WRITTEN:
            return cls.__name__, repr(value)
        if id(value) in self._within:
            return "itself"
        self._within.add(id(value))
        try:
            return self._of_parts(value, cls)
        finally:
            self._within.discard(id(value))

    def _of_parts(self, value: Any, cls: Any) -> object:
        # The most frequent first.
        if cls is types.FunctionType:
            return self._of_function(value)
        if cls is tuple or cls is list:
            return cls.__name__, *map(self.of, value)
        if cls in _BOUND:
            owner = value.__self__
            return value.__name__, None if type(owner) is types.ModuleType else self.of(owner)
        if issubclass(cls, partial):
            if Recording in map(type, value.args):
                return self.of(value.func), *self._of_replay(value.args)
            return self.of(value.func), self.of(value.args), self.of(value.keywords)
        if issubclass(cls, JointPullbacks):
            return self.of(value.compute)
        if issubclass(cls, Fingerprinted):
            return value.fingerprint
        if issubclass(cls, Tensor):
            return self.of(value._array)
        if issubclass(cls, Level):
            # What it has recorded so far is not what the pullback holds.
            return cls.__name__
        if issubclass(cls, np.dtype | np.generic):
            return cls.__name__, repr(value)
        if is_array(value):
            return self._of_array(to_numpy(plain(value)))
        if issubclass(cls, list | tuple):
            return cls.__name__, *map(self.of, value)
        if issubclass(cls, dict):
            return cls.__name__, *[(self.of(key), self.of(one)) for key, one in value.items()]
        if issubclass(cls, set | frozenset):
            return cls.__name__, frozenset(map(self.of, value))
        if issubclass(cls, type):
            return value.__module__, value.__qualname__
        return cls.__module__, cls.__qualname__, _memory(value), *self._of_attributes(value, cls)

    def _of_function(self, function: types.FunctionType) -> object:
        # Functions of one line of code have the same code.
        parts: list[object] = [function.__code__]
        if function.__defaults__ or function.__kwdefaults__:
            parts.append(self.of((function.__defaults__, function.__kwdefaults__)))
        for cell in function.__closure__ or ():
            try:
                parts.append(self.of(cell.cell_contents))
            except ValueError:
                # A name that is bound later, if at all.
                parts.append(None)
        return tuple(parts)

    def _of_replay(self, args: tuple[Any, ...]) -> Iterator[object]:
        """Yield what a derivative will replay, where numbers and keys are ids.

        Ids are others in every run, so it counts when each first appears.
        """
        numbers: dict[int, int] = {}

        def number(unique_id: int) -> int:
            return numbers.setdefault(unique_id, len(numbers))

        for value in args:
            if isinstance(value, Recording):
                for produced_id, kernel, pullbacks, parents, _, _ in value:
                    came_of = tuple([number(parent) for parent in parents])
                    yield op_name(kernel), came_of, number(produced_id), self.of(pullbacks)
            elif isinstance(value, dict):
                yield tuple([(number(key), self.of(one)) for key, one in value.items()])
            else:
                yield number(value) if isinstance(value, int) else self.of(value)

    def _of_attributes(self, value: Any, cls: type) -> Iterator[object]:
        """Yield the attributes of an object that keeps something for its pullbacks.

        Not those of a part of a model: where a pullback reads them it reads them late, and so with
        or without a second run. Nor those of the standard library's objects, a logger's, say.
        """
        is_standard = cls.__module__.partition(".")[0] in sys.stdlib_module_names
        is_pythons = is_standard and not is_users_module(cls.__module__)
        if is_pythons or callable(getattr(cls, "parameters", None)):
            return
        for base in cls.__mro__:
            for name, slot in vars(base).items():
                if isinstance(slot, types.MemberDescriptorType):
                    yield name, self.of(Slot(value, slot).read())
        for name, one in (attributes_of(value) or {}).items():
            yield name, self.of(one)

    def _of_array(self, array: Array) -> object:
        how = array.dtype.str, array.shape
        known = self._positions.get(id(array))
        if known is not None:
            return how, "known", known
        found = self._sums.get(id(array))
        if found is not None and found[0]() is array:
            return how, found[1]
        if array.dtype.hasobject:
            return how, self.of(array.ravel().tolist())
        if array.base is not None:
            known = self._place_of(array)
            if known is not None:
                return how, "a view of one known", known, array.strides
        total = checksum(array)
        self._sums[id(array)] = ref(array), total
        return how, total

    def _place_of(self, array: Array) -> int | None:
        """Return the number of the known array in whose memory this one lies, from its start on."""
        if self._places is None:
            self._places = {
                byte_bounds(one)[0]: (position, one.nbytes)
                for position, one in enumerate(self._known)
            }
        start, stop = byte_bounds(array)
        position, size = self._places.get(start, (0, -1))
        return position if 0 <= stop - start <= size else None


def _memory(value: object) -> object:
    """Return a checksum of an object whose memory others may look at, None of another one."""
    try:
        return zlib.crc32(memoryview(value))  # type: ignore[arg-type]  # which is what is asked
    except (TypeError, ValueError, BufferError):
        return None
