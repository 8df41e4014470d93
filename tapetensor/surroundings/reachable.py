"""The objects that a function reaches through closures, globals, objects and containers.

And how all of that was, so that the function can be run as it was run before.
"""

from __future__ import annotations

import argparse
import random
import sys
import threading
import types
from collections import ChainMap, OrderedDict, UserDict, UserList, deque
from collections.abc import Callable, Iterable, Iterator
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from functools import cached_property, lru_cache, partial, partialmethod
from typing import Any

import numpy as np

from tapetensor.arrays.array import Array
from tapetensor.errors import ArgumentValueError
from tapetensor.pictures.places import is_installed, is_users_module
from tapetensor.surroundings.names import all_names_in
from tapetensor.surroundings.places import (
    COMMON_GENERATORS,
    COPIED_BYTES,
    Attributes,
    Contents,
    Elements,
    GeneratorState,
    Name,
    Place,
    Slot,
    attributes_of,
    cell_place,
    checksum,
    slots_of_class,
)
from tapetensor.tensor.base import TensorBase
from tapetensor.tensor.tensor import Tensor

# Values that hold nothing and cannot change: most of what is met.
_ATOMS: frozenset[type[Any]] = frozenset(
    {int, float, bool, str, type(None), bytes, complex, slice, range, np.ufunc, type(...)}
)
_CONTAINERS: tuple[type[Any], ...] = (list, OrderedDict, dict, set, deque)
# Objects of the standard library whose attributes are data of others.
_CARRIERS = (types.SimpleNamespace, argparse.Namespace, UserDict, UserList, ChainMap)
_BOUND = (types.BuiltinMethodType, types.MethodWrapperType)
# What stands in a class for a method.
_METHOD_LIKE = (
    types.FunctionType,
    classmethod,
    staticmethod,
    property,
    cached_property,
    partialmethod,
)
_ARRAY = vars(TensorBase)["_array"]


class Reach:
    """The places that a function may read from, found from `roots` by way of one another.

    Of the code that is reached the names are known that it mentions. Of a module or a class what
    has such a name is followed; of an object, every attribute. The code and the objects of
    libraries are not looked into, but for modules (in the sense of `tapetensor.nn`); these objects
    are `closed`. Arrays that are too large to be copied are `large`.
    """

    def __init__(self, roots: Iterable[object]) -> None:
        self.places: list[Place] = []
        self.large: list[Array] = []
        self.tensors: list[Tensor[Any, Any, Any]] = []
        self.closed: list[object] = []
        self._waiting = list(roots)
        # What runs is no library, wherever it is installed.
        self._home = _module_of(self._waiting[0]).partition(".")[0]
        # By identity, and kept, so that no other object gets the identity meanwhile.
        self._seen: dict[int, object] = {}
        # The library's own code runs the `forward` of others.
        self._names, self._fresh = set[str](), {"forward"}
        # Classes and modules, which are asked for every name that is mentioned.
        self._owners: list[tuple[dict[str, Any] | type, Any]] = []
        self._held_names: set[tuple[int, str]] = set()
        while self._waiting or self._fresh:
            while self._waiting:
                self._visit(self._waiting.pop())
            fresh, self._fresh = self._fresh - self._names, set()
            self._names |= fresh
            if "random" in fresh:
                self._waiting += COMMON_GENERATORS.values()
            for owner, names in self._owners:
                self._follow(owner, names, fresh)

    def _visit(self, value: Any) -> None:
        cls = type(value)
        if cls in _ATOMS or id(value) in self._seen:
            return
        self._seen[id(value)] = value
        if issubclass(cls, Tensor):
            self.tensors.append(value)
            self.places.append(Slot(value, _ARRAY))
        elif issubclass(cls, np.ndarray):
            self._visit_array(value)
        elif issubclass(cls, np.random.Generator):
            self._waiting.append(value.bit_generator)
        elif issubclass(cls, np.random.BitGenerator | np.random.RandomState | random.Random):
            self.places.append(GeneratorState(value))
        elif cls is types.FunctionType:
            self._visit_function(value)
        elif cls is types.MethodType:
            self._waiting += (value.__self__, value.__func__)
        elif issubclass(cls, partial | partialmethod):
            self._waiting += (value.func, *value.args, *value.keywords.values())
        elif issubclass(cls, type):
            self._visit_class(value)
        elif issubclass(cls, types.ModuleType):
            self._visit_module(value)
        elif cls in _BOUND:
            self._waiting.append(value.__self__)
        elif issubclass(cls, classmethod | staticmethod):
            self._waiting.append(value.__func__)
        elif issubclass(cls, property):
            self._waiting += (value.fget, value.fset)
        elif issubclass(cls, cached_property):
            self._waiting.append(value.func)
        elif not issubclass(cls, np.generic | types.CodeType):
            self._visit_object(value, cls)

    def _visit_array(self, array: Any) -> None:
        if array.dtype.hasobject:
            self._waiting += array.ravel().tolist()
        if not array.flags.writeable or isinstance(array, np.memmap):
            return
        if array.nbytes <= COPIED_BYTES:
            self.places.append(Elements(array))
        elif not array.dtype.hasobject:
            self.large.append(array)

    def _visit_function(self, function: types.FunctionType) -> None:
        self._waiting += function.__defaults__ or ()
        self._waiting += (function.__kwdefaults__ or {}).values()
        names = function.__code__.co_freevars
        for name, cell in zip(names, function.__closure__ or (), strict=True):
            self.places.append(cell_place(cell, name))
            try:
                self._waiting.append(cell.cell_contents)
            except ValueError:
                # A name that is bound later, if at all.
                continue
        if function.__dict__:
            self._hold_attributes(function)
        if not self._is_library(function.__module__):
            code = all_names_in(function.__code__)
            self._fresh |= code.mentioned
            around = function.__globals__
            self._follow(around, around, code.reads)
            for name in sorted(code.writes - around.keys()):
                # A global that the function makes.
                self.places.append(Name(around, name))

    def _visit_class(self, cls: type) -> None:
        # Of a generic class there are aliases, of which none is a class.
        for base in cls.__mro__:
            if self._is_library(base.__module__) or (base is not cls and id(base) in self._seen):
                continue
            self._seen[id(base)] = base
            names = vars(base)
            self._owners.append((base, names))
            # What is called without its name being mentioned.
            self._waiting += [
                value
                for name, value in names.items()
                if name[:2] == "__" and isinstance(value, _METHOD_LIKE)
            ]
            self._follow(base, names, self._names)

    def _visit_module(self, module: types.ModuleType) -> None:
        if module is random or module is np.random:
            self._waiting += COMMON_GENERATORS.values()
        elif not self._is_library(module.__name__):
            names = vars(module)
            self._owners.append((names, names))
            self._follow(names, names, self._names)

    def _visit_object(self, value: Any, cls: type) -> None:
        for kind in _CONTAINERS:
            if issubclass(cls, kind):
                self.places.append(Contents(value, kind))
                self._add(dict.values(value) if issubclass(kind, dict) else kind.__iter__(value))
                break
        else:
            if issubclass(cls, tuple | frozenset):
                self._add(value)
            elif cls is types.MappingProxyType:
                self._waiting += value.values()
        is_carrier = callable(getattr(cls, "parameters", None)) or issubclass(cls, _CARRIERS)
        if self._is_library(cls.__module__) and not is_carrier:
            # What `functools` makes of a function, say.
            self._waiting.append((attributes_of(value) or {}).get("__wrapped__"))
            self.closed.append(value)
            return
        self._hold_attributes(value)
        self._waiting.append(cls)
        for base in cls.__mro__:
            if not self._is_library(base.__module__):
                slots = [Slot(value, one, name) for name, one in slots_of_class(base).items()]
                self.places += slots
                self._waiting += [slot.read() for slot in slots]

    def _add(self, values: Iterable[object]) -> None:
        """Look at the items of a container, which may be a million numbers."""
        items = list(values)
        if not _ATOMS.issuperset(map(type, items)):
            # Data are often a great many pairs, of a path and a label, say.
            self._waiting += [
                one
                for one in items
                if type(one) is not tuple or not _ATOMS.issuperset(map(type, one))
            ]

    def _hold_attributes(self, owner: object) -> None:
        values = attributes_of(owner)
        # What is of a thread is not brought back, perhaps in another one.
        if values is not None and not issubclass(type(owner), threading.local):
            self.places.append(Attributes(owner))
            self._waiting += values.values()

    def _follow(
        self, owner: dict[str, Any] | type, names: Any, mentioned: AbstractSet[str]
    ) -> None:
        """Hold what a module or a class has by the names that are mentioned."""
        # In an order that is the same in every process.
        for name in sorted(mentioned & names.keys()):
            if (id(owner), name) not in self._held_names:
                self._held_names.add((id(owner), name))
                self.places.append(Name(owner, name))
                self._waiting.append(names[name])

    def _is_library(self, module: str | None) -> bool:
        package = (module or "").partition(".")[0]
        return package in _OURS or (package != self._home and _is_library(package))


def _module_of(f: Any) -> str:
    """Return the name of the module that `f`, a function or an object, is from."""
    while isinstance(f, partial):
        f = f.func
    if isinstance(f, types.MethodType):
        f = f.__self__
    is_code = isinstance(f, types.FunctionType | type)
    return (f if is_code else type(f)).__module__ or ""


@lru_cache(maxsize=1024)
def _is_library(package: str) -> bool:
    """Tell whether a package is of the standard library or installed beside it."""
    module = sys.modules.get(package)
    path = getattr(module, "__file__", None) or next(iter(getattr(module, "__path__", ())), "")
    return not is_users_module(package) or is_installed(path)


_OURS = frozenset({"tapetensor", "numpy"})


class Surroundings:
    """The objects that a function reaches: tensors, attributes, containers, globals, generators.

    As they are now: `as_before` brings them back for a while. No array of a tensor is copied, for
    one that somebody holds is not written to; other arrays of numpy's are, if they are small.
    """

    def __init__(self, f: Callable[..., Any], *others: object) -> None:
        found = Reach([f, *others])
        self._places, self._large, self._tensors = found.places, found.large, found.tensors
        self._held = [(place, place.read()) for place in found.places]

    @property
    def arrays(self) -> list[Array]:
        """The arrays of all tensors that were found, as they are now."""
        return [tensor._array for tensor in self._tensors]

    @contextmanager
    def as_before(self) -> Iterator[None]:
        """Bring back the state of before; at the end, the present state.

        Raises:
            ArgumentValueError: if what runs meanwhile writes to a large array.
        """
        now = [(place, place.read()) for place in self._places]
        sums = [*map(checksum, self._large)]
        try:
            _write(self._held)
            yield
        finally:
            _write(now)
        if sums != [*map(checksum, self._large)]:
            raise ArgumentValueError(
                "checkpoint: f writes to a numpy array of more than a MiB, and has done so once "
                "more in the backward pass; make a new array, or run f without checkpoint"
            )


def _write(held: list[tuple[Place, Any]]) -> None:
    """Write to every place, also if one of them, an object of a user's class, refuses."""
    failures = []
    for place, value in held:
        try:
            place.write(value)
        except Exception as error:
            failures.append(error)
    if failures:
        raise failures[0]
