"""A walk through containers and objects, which finds the arrays in them.

It puts tracers and generators into the place of real ones, and writes down, as Python source, how
the next call is recognized as one of the same kind and where its arrays are found. It reads what
containers and objects hold themselves: no code of the user's runs. What cannot be put back exactly
is not replaced.
"""

from __future__ import annotations

import decimal
import enum
import functools
import operator
import random
import sys
import types
import weakref
from collections import OrderedDict, defaultdict, deque
from functools import partial
from typing import Any

import numpy as np
from typing_extensions import override

from tapetensor.arrays.stand_ins import Captured
from tapetensor.checkpointing.places import (
    CELL_CONTENTS,
    NOTHING,
    Contents,
    Slot,
    attributes_of,
    cell_place,
)
from tapetensor.compiler.trace.attributes import Attributes
from tapetensor.compiler.trace.callables import functions_in, wrapped_in
from tapetensor.compiler.trace.changes import Accessors, members, parts, shown
from tapetensor.compiler.trace.codes import LOOKUPS, UNTOLD, attributes_in
from tapetensor.compiler.trace.guards import named, spelling
from tapetensor.compiler.trace.opaque import (
    DIFFERS,
    VISIBLE,
    is_cache,
    is_or_equals,
    kept_by,
    never_the_same,
    precision,
)
from tapetensor.compiler.trace.program import Program
from tapetensor.compiler.trace.refusals import trace_error
from tapetensor.compiler.trace.structure import (
    DICTS,
    SCALARS,
    SEQUENCES,
    VALUES,
    is_dataclass_instance,
    is_looked_through,
    is_plain,
    is_users,
    storage,
)
from tapetensor.compiler.trace.telling import BY_ID
from tapetensor.optim.optimizer import Optimizer
from tapetensor.pictures.places import is_users_module
from tapetensor.tape.gradients import Gradients
from tapetensor.tensor.base import TensorBase

# A container of more than so many plain values is compared as a whole.
_MANY = 16
_LIBRARY = __name__.split(".", maxsplit=1)[0] + "."
# Floats of which a plan can do without the value.
_FLOATS = (float, np.float64, np.float32)
# Reading them by the syntax of Python runs no code of the user's.
_BUILT_IN = (list, tuple, deque, dict, OrderedDict, defaultdict)
# The next call may bring another object of these types.
_RECOGNIZED = (np.random.Generator, Gradients, types.MethodType, functools.partial)
# Functions, and methods that are written in C.
_OF_C = (
    types.BuiltinFunctionType, types.FunctionType, types.GetSetDescriptorType,
    types.MethodDescriptorType, types.MethodWrapperType, types.WrapperDescriptorType,
)  # fmt: skip
_DEFAULTS = vars(types.FunctionType)["__defaults__"]
_RANDOM = (random.Random, np.random.RandomState, np.random.BitGenerator)


class Walker(Attributes):
    """Walks values.

    Args:
        program: where the tracers put what they capture.
        function: what is captured.
    """

    def __init__(self, program: Program, function: Any) -> None:
        super().__init__(program, function)
        # Functions that were found, with their sources, by the address of their code.
        self.functions: dict[int, list[tuple[types.FunctionType, str]]] = {}
        # The classes that have them, by the same address, and under which names.
        self.members: dict[int, list[tuple[type, str]]] = {}
        # The defaults of their arguments.
        self.defaults: dict[int, tuple[Any, Any]] = {}
        # What was walked once, by its address and a name.
        self.walked: dict[tuple[int, str], Any] = {}
        # The user's classes that were found, with their bases.
        self.classes: dict[type, None] = {}
        # The modules that were found, the user's and others, with what the user calls them.
        self.modules: dict[int, tuple[types.ModuleType, str]] = {}
        # Those whose names somebody may look up who is handed the module, by their addresses.
        self.handed: set[int] = set()
        # Whether some code looks up names that were never walked.
        self.makes_names = False
        # Attributes that are read by their names.
        self.attributes: set[str] = {"__call__", "__init__", "forward"}
        # Functions that keep their results, with those that were found, their names and places.
        self.caches: list[tuple[Any, list[Any], str, str]] = []

    def is_new(self, owner: Any, name: str = "") -> bool:
        """Tell whether an object, or what it has by a name, is walked for the first time."""
        key = (id(owner), name)
        is_new = key not in self.walked
        self.walked[key] = owner
        return is_new

    @override
    def walk(self, value: Any, expression: str, where: str, *, is_put: bool = False) -> Any:
        """Return `value` with tracers in place of arrays; write down how to recognize it.

        Args:
            value: the value.
            expression: its source.
            where: what the user calls it.
            is_put: whether what is returned takes its place, so that it need not be a constant.
        """
        self.where = named(where)
        is_varying = is_put and self.where in self.varying
        if isinstance(value, Captured):
            # The function has put it there, which is found in the end.
            return value
        if is_varying and value.__class__ in _FLOATS:
            local = self.local(expression)
            self.guard(f"{local}.__class__ is not {self.bind(value.__class__)}")
            return self.walk_number(value, local, where)
        if is_plain(value):
            if value.__class__ is str:
                self.attributes |= attributes_in([value])
            self.guard_plain(value, expression)
            return value
        if id(value) in BY_ID:
            self.note_lookup(value)
            self.guard(f"{expression} is not {self.bind(value)}")
            return BY_ID[id(value)]
        if id(value) in self.seen:
            stands_for, source = self.seen[id(value)]
            self.guard(f"{expression} is not {source}")
            return stands_for
        if isinstance(value, TensorBase):
            return self.walk_tensor(value, expression, where)
        if isinstance(value, np.ndarray):
            return self.walk_array(value, expression, where, is_varying=is_varying)
        if isinstance(value, VALUES):
            self.guard_plain(value, expression)
            self._walk_value_of_a_class(value, expression, where)
            return value
        told = never_the_same(value)
        if told:
            raise trace_error(f"{where} {told}")
        base = storage(value.__class__)
        if is_varying and self.is_around and base is object and is_looked_through(value):
            # It is walked as an argument is.
            self.is_around = False
            replaced = self.walk(value, expression, where)
            self.is_around = True
            return replaced
        if self._is_kept(value, base):
            self._walk_kept(value, base, expression, where)
            return value
        local = self.local(expression)
        if isinstance(value, np.random.Generator):
            return self.walk_generator(value, local, where)
        # The next call may bring another one of its class.
        self.seen[id(value)] = value, local
        self.guard(f"{local}.__class__ is not {self.bind(value.__class__)}")
        self.add_class(value.__class__)
        if isinstance(value, Gradients):
            return self.walk_gradients(value, local, where)
        if isinstance(value, types.MethodType | functools.partial):
            return self._walk_bound(value, local, where)
        if base in (*SEQUENCES, *DICTS):
            return self._walk_container(value, base, local, where, is_put=is_put)
        if isinstance(value, types.FunctionType):
            self.guard(f"{local}.__code__ is not {self.bind(value.__code__)}")
            self.guard(f"{local}.__globals__ is not {self.bind(value.__globals__)}")
            self.add_function(value, local, where)
            return value
        if base in SCALARS:
            opened: Any = base
            spelled = self.bind(opened.__repr__)
            self.guard(f"{spelled}({local}) != {opened.__repr__(value)!r}")
        self.walk_attributes(value, local, where, lasts=False)
        return value

    def _walk_value_of_a_class(self, value: Any, expression: str, where: str) -> None:
        """Walk what a date, a number or the like has beside its value."""
        self.add_class(value.__class__)
        if not self.is_new(value):
            return
        zone = getattr(value, "tzinfo", None)
        if isinstance(zone, VALUES):
            self.walk(zone, f"{expression}.tzinfo", f"{where}.tzinfo")
        if is_users(value.__class__):
            self.walk_attributes(value, self.local(expression), where, lasts=False)

    def _is_kept(self, value: Any, base: type) -> bool:
        """Tell whether the next call has to bring the very same object.

        That is so around the function, and of what nobody can look through.
        """
        if isinstance(value, enum.Enum):
            return True
        if isinstance(value, _RECOGNIZED) or is_dataclass_instance(value):
            return False
        if isinstance(value, types.FunctionType):
            return self.is_around or not is_users(value)
        if not is_looked_through(value):
            return True
        return base is object and self.is_around

    def add_class(self, cls: type) -> None:
        """Note that there are objects of a class: its methods, and those of its bases, may run."""
        if cls in self.classes:
            return
        if issubclass(cls, decimal.Decimal) and self.is_new(decimal.Decimal, "precision"):
            # In which context they are computed only a call can tell.
            self.guard(f"{self.bind(precision)}() != {self.bind(precision())}")
        for one in cls.__mro__:
            if is_users(one) and one not in self.classes:
                self.classes[one] = None
                for name, held in vars(one).items():
                    for function in functions_in(held):
                        self.note(function, self.bind(function))
                        self.members.setdefault(id(function.__code__), []).append((one, name))
                self.add_class(type(one))

    def note(self, function: types.FunctionType, source: str) -> None:
        """Note a function, for it may run."""
        known = self.functions.setdefault(id(function.__code__), [])
        if all(function is not one for one, _ in known):
            known.append((function, source))
            was_around, self.is_around = self.is_around, True
            if is_users_module(function.__globals__.get("__name__")):
                self._walk_defaults(function, source)
            elif (function.__module__ or "").startswith(_LIBRARY):
                # Frames of this library are passed over.
                self.walk_function(function, source)
            self.is_around = was_around

    def _walk_defaults(self, function: types.FunctionType, source: str) -> None:
        """Walk the defaults of arguments, which are read before a frame is entered."""
        where = f"the default of {function.__name__}"
        by_place, by_name = function.__defaults__ or (), function.__kwdefaults__ or {}
        # A function that is there again has the same ones, which is guarded where it runs.
        is_made_anew = not source.startswith("k")
        self.defaults[id(function)] = function.__defaults__, function.__kwdefaults__
        if by_place and (is_made_anew or not all(map(is_plain, by_place))):
            walked = self.walk(by_place, f"{source}.__defaults__", where, is_put=is_made_anew)
            if walked is not by_place:
                watched = self.hold(where, Slot(function, _DEFAULTS))
                function.__defaults__ = walked
                watched.settle()
        if by_name:
            self.walk(by_name, f"{source}.__kwdefaults__", where, is_put=is_made_anew)

    def walk_function(self, function: types.FunctionType, source: str) -> None:
        """Walk what a function closes over; guard its defaults, which were walked before."""
        if not self.is_new(function):
            return
        fixed = source.startswith("k")
        if fixed:
            known = self.defaults.get(id(function), (None, None))
            for name, held in zip(("__defaults__", "__kwdefaults__"), known, strict=True):
                if held:
                    self.guard(f"{source}.{name} is not {self.bind(held)}")
            if is_users(function):
                # What reloads modules while they are in use gives functions other code.
                self.guard(f"{source}.__code__ is not {self.bind(function.__code__)}")
        for position, cell in enumerate(function.__closure__ or ()):
            if not self.is_new(cell):
                continue
            held = self.bind(cell) if fixed else f"{source}.__closure__[{position}]"
            name = function.__code__.co_freevars[position]
            watched = self.hold(name, cell_place(cell))
            if watched.before is NOTHING:
                self.guard(f"is_set({self.bind(CELL_CONTENTS)}, {held})")
                continue
            replaced = self.walk_value(watched.before, f"{held}.cell_contents", name, is_put=True)
            cell.cell_contents = replaced
            watched.settle()

    def walk_value(self, value: Any, expression: str, where: str, *, is_put: bool = False) -> Any:
        """Walk a value that a function reads by its name; return what stands for it."""
        self.where = named(where)
        if isinstance(value, types.ModuleType) and not is_users(value):
            self.modules[id(value)] = value, where
            self.guard(f"{expression} is not {self.bind(value)}")
            return value
        is_function = isinstance(value, types.FunctionType | types.BuiltinFunctionType)
        is_bound = is_function and isinstance(getattr(value, "__self__", sys), types.ModuleType)
        if is_bound and not is_users(value) and id(value) not in BY_ID:
            self.note_lookup(value)
            self.guard(f"{expression} is not {self.bind(value)}")
            return value
        return self.walk(value, expression, where, is_put=is_put)

    def note_lookup(self, value: Any) -> None:
        """Note a function that may look up, or set, names that nobody sees."""
        # Under a name of the user's nobody sees what it is called with.
        is_getter = value is operator.attrgetter or value is operator.methodcaller
        if is_getter or isinstance(value, _OF_C):
            self.makes_names |= value.__name__ in LOOKUPS
            if value.__name__ in UNTOLD:
                self.reading.give_up()
        elif isinstance(value, types.MemberDescriptorType):
            self.reading.give_up()

    def add_function(self, value: Any, source: str, where: str) -> None:
        """Note a function, and those that it wraps; what they close over is read when they run."""
        for function in functions_in(value):
            name = source if function is value else self.bind(function)
            self.note(function, name)
            if is_users(function):
                self.walk_attributes(function, name, where, lasts=name.startswith("k"))

    def _walk_bound(self, value: Any, local: str, where: str) -> Any:
        """Walk a bound method or a partial function."""
        if isinstance(value, types.MethodType):
            self.walk(value.__func__, f"{local}.__func__", where)
            self.walk(value.__self__, f"{local}.__self__", f"{where}.__self__")
            return value
        function = self.walk(value.func, f"{local}.func", where)
        self.walk_attributes(value, local, where, lasts=False)
        # It may stand where nothing can be replaced; generators in it are watched.
        is_put = not self.is_around and value.__class__ is partial
        args = self.walk(value.args, f"{local}.args", f"an argument of {where}", is_put=is_put)
        named = self.walk(value.keywords, f"{local}.keywords", where, is_put=is_put)
        if not is_put:
            return value
        replaced = partial(function, *args, **named)
        self.seen[id(value)] = replaced, local
        return replaced

    def _walk_container(
        self, value: Any, base: Any, local: str, where: str, *, is_put: bool
    ) -> Any:
        """Walk what is in a container, which keeps its identity if it can be written to."""
        cls = value.__class__
        self.walk_attributes(value, local, where, lasts=False)
        if base is deque or issubclass(base, defaultdict):
            name = "maxlen" if base is deque else "default_factory"
            self.walk_value(getattr(value, name), f"{local}.{name}", f"{where}.{name}")
        is_set_of = issubclass(base, set | frozenset)
        watched = self.hold(where, Contents(value, base), members if is_set_of else parts)
        held = watched.before
        if cls not in _BUILT_IN:
            local = self.local(f"contents_of({self.bind(base)}, {local})")
        if isinstance(held, dict):
            self.guard_keys(held, local)
            self.attributes |= attributes_in(held)
            if not all(map(is_plain, held)):
                keys = self.local(f"[*{local}]")
                for position, key in enumerate(held):
                    self.walk(key, f"{keys}[{position}]", f"a key of {where}")
        else:
            self.guard(f"len({local}) != {len(held)}")
        items = held.values() if isinstance(held, dict) else held
        if all(map(is_plain, items)) and (is_set_of or len(held) > _MANY):
            self.attributes |= attributes_in(items)
            series = f"{local}.values()" if isinstance(held, dict) else local
            self.guard(f"spelling({series}) != {self.bind(spelling(items))}")
            return value
        changed: dict[Any, Any] = {}
        # To look for a key of the user's would run its methods.
        is_listed = isinstance(held, dict) and not all(map(is_plain, held))
        listed = self.local(f"[*{local}.values()]") if is_listed else local
        pairs = held.items() if isinstance(held, dict) else enumerate(held)
        for position, (key, item) in enumerate(pairs):
            is_written = key.__class__ in (int, str)
            source = position if is_listed else repr(key) if is_written else self.bind(key)
            replaced = self.walk(
                item,
                f"{listed}[{source}]",
                f"{where}[{shown(key)}]",
                is_put=is_put and not is_set_of,
            )
            if replaced is not item and not is_set_of:
                changed[key] = replaced
        if base is tuple and changed:
            made = tuple.__new__(cls, [changed.get(place, one) for place, one in enumerate(held)])
            (attributes_of(made) or {}).update(attributes_of(value) or {})
            self.seen[id(value)] = self.seen[id(made)] = made, self.seen[id(value)][1]
            return made
        for key, item in changed.items():
            base.__setitem__(value, key, item)
        watched.settle()
        return value

    def _walk_kept(self, value: Any, base: type, expression: str, where: str) -> None:
        """Walk an object that has to be there again."""
        # What is compiled is known by its name already.
        name = self.bind(value)
        if name != expression:
            self.guard(f"{expression} is not {name}")
        self.seen[id(value)] = value, name
        self.note_lookup(value)
        self.add_class(value.__class__)
        if is_users(value.__class__):
            self.guard(f"{name}.__class__ is not {self.bind(value.__class__)}")
        if isinstance(value, enum.Enum) or (base is object and is_looked_through(value)):
            self.walk_attributes(value, name, where, lasts=True)
        elif isinstance(value, Optimizer):
            self.walk_optimizer(value, where)
        elif isinstance(value, type):
            self.add_class(value)
            if isinstance(value, enum.EnumMeta):
                for member in vars(value)["_member_map_"].values():
                    self.walk(member, self.bind(member), f"{where}.{member._name_}")
        elif isinstance(value, types.ModuleType):
            self.modules[id(value)] = value, where
            self.handed.add(id(value))
        elif isinstance(value, types.FunctionType):
            self.add_function(value, name, where)
        else:
            self._walk_opaque(value, name, where)

    def _walk_opaque(self, value: Any, name: str, where: str) -> None:
        """Walk what can be seen of an object that is more than that."""
        rows = [row for row in VISIBLE if row.is_one(value)]
        # Nothing can be put in the place of an array there, so that it is a constant. But a plan
        # would keep alive what it knows by its address.
        was_around, self.is_around = self.is_around, not isinstance(value, weakref.ref)
        for row in rows:
            if row.write is not None:
                place = Accessors(partial(row.read, value), partial(row.write, value))
                self.hold(where, place, row.told, is_or_equals)
            self.walk(row.read(value), f"{self.bind(row.read)}({name})", f"{where}{row.name}")
        self.is_around = was_around
        if isinstance(value, operator.attrgetter | operator.methodcaller):
            names = ".".join(map(str, value.__reduce__()[1])).split(".")
            self.attributes.update(names)
            if not UNTOLD.isdisjoint(names):
                self.reading.give_up()
        if isinstance(value, _RANDOM):
            self.watch_randomness(value, where)
            # That of a `random.Random` is seen when it is asked for.
            state = "state" if isinstance(value, np.random.BitGenerator) else "get_state"
            self.unrepeatable[state] = f"{where}.{state} {DIFFERS}"
        if is_cache(value):
            self.caches.append((value, kept_by(value), name, where))
        for one in wrapped_in(value):
            if one is not value:
                self.walk(one, self.bind(one), where)
        if is_users(value.__class__) or is_cache(value) or isinstance(value, BaseException):
            self.walk_attributes(value, name, where, lasts=True)
