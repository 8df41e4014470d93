"""A walk through containers and objects, which finds the arrays in them.

It puts stand-ins into the places of arrays, numbers that vary, generators, and objects that are not
on the closed list. As Python source it writes down how to recognize a call of the same kind, and
where its arrays are. It reads the contents of containers and objects directly: no code of the
user's runs. Objects that cannot be put back exactly are not replaced.
"""

from __future__ import annotations

import enum
import functools
import types
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Collection
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any, NamedTuple, get_origin

import numpy as np

from tapetensor.arrays.stand_ins import Captured
from tapetensor.compiler.trace.answers import BY_ID, ModuleView, converting, view_of
from tapetensor.compiler.trace.closed_list import cure_for
from tapetensor.compiler.trace.guards import GuardWriter, named, spelling, tensors_of
from tapetensor.compiler.trace.inputs import Inputs
from tapetensor.compiler.trace.kinds import (
    ALIASES,
    DICTS,
    SCALARS,
    SEQUENCES,
    functions_in,
    has_foreign_base,
    is_cache,
    is_dataclass_instance,
    is_fixed,
    is_or_are_tensors,
    is_plain,
    is_plain_nest,
    is_users,
    is_walked,
    runs_what_is_listed,
    storage,
    wrapped_in,
)
from tapetensor.compiler.trace.refusals import Placeholder, trace_error
from tapetensor.compiler.trace.watching import AttributeReads, Held, can_tell, members, parts, shown
from tapetensor.optim.optimizer import Optimizer
from tapetensor.pictures.places import is_users_module
from tapetensor.surroundings import places
from tapetensor.surroundings.names import attributes_in
from tapetensor.surroundings.places import (
    CELL_CONTENTS,
    NOTHING,
    Contents,
    Slot,
    attributes_of,
    cell_place,
)
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
# Methods of C that are bound to an object.
_BOUND = (types.BuiltinMethodType, types.MethodWrapperType)
_DEFAULTS = vars(types.FunctionType)["__defaults__"]
# What `functools.singledispatch` has found before it does not look for again: that is no state.
_FOUND_BY_CLASS = "_clear_cache"


class _Attribute(NamedTuple):
    """An attribute that is there, its source, and what the user calls its object.

    It lasts if the next call has the same dict of attributes.
    """

    name: str
    source: str
    where: str
    watched: Held
    put: Callable[[Any], None]
    lasts: bool


class _Cached:
    """Stands for a function that keeps its results: each call of a plan calls it again."""

    def __init__(self, walk: Walk, function: Any, where: str) -> None:
        self._walk, self._function, self._where = walk, function, where

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Return what stands for what the function gives, whatever it does to know that."""
        walk, inputs = self._walk, self._walk.inputs
        if not all(map(is_plain_nest, (*args, *options.values()))):
            raise trace_error(
                f"{self._where} keeps what it computes, which has no values yet here; call it "
                "outside, and pass what it returns"
            )
        given = f"*{walk.bind(args)}, **{walk.bind(options)}"
        was_around, inputs.is_around = inputs.is_around, True
        found = self._function(*args, **options)
        stands_for = walk.walk(found, f"{walk.bind(self._function)}({given})", f"{self._where}()")
        inputs.is_around = was_around
        return stands_for

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """Bind to an object, as functions in a class do."""
        return self if instance is None else partial(self, instance)

    def __getattr__(self, name: str) -> Any:
        """Refuse: what a cache has done so far is another thing at every call."""
        raise trace_error(
            f"{self._where}.{name} is read, of a function that keeps its results; read it outside, "
            "and pass what it is"
        )


class Walk:
    """Walks values.

    Attributes:
        reads: which attributes the function reads.
        functions: functions that were found, with their sources, by the address of their code.
        members: the classes that have them, by the same address, and under which names.
        classes: the user's classes that were found, with their bases.
        modules: the user's modules that were found, with their names in the user's program.
        attributes: attributes that are read by their names.
        walked: the objects that were walked, by address and a name.
    """

    def __init__(self, guards: GuardWriter, inputs: Inputs, trusts: Collection[str]) -> None:
        self.guards, self.inputs, self.trusts = guards, inputs, tuple(trusts)
        self.guard, self.bind, self.local = guards.guard, guards.bind, guards.local
        self.reads = AttributeReads()
        self.functions: dict[int, list[tuple[types.FunctionType, str]]] = {}
        self.members: dict[int, list[tuple[type, str]]] = {}
        self._defaults: dict[int, tuple[Any, Any]] = {}
        self.walked: dict[tuple[int, str], Any] = {}
        self.classes: dict[type, None] = {}
        self.modules: dict[int, tuple[types.ModuleType, str]] = {}
        self.attributes: set[str] = {"__call__", "__init__", "forward"}
        # Tells whether code was entered already, is called when more may have been found, and
        # notes what is refused.
        self.entered: Callable[[types.CodeType], bool] = lambda _: False
        self.after_read: Callable[[], None] = lambda: None
        self.refusing: Callable[[], AbstractContextManager[None]] = nullcontext

    def is_new(self, owner: Any, name: str = "") -> bool:
        """Tell whether an object, or what it has by a name, is walked for the first time."""
        key = (id(owner), name)
        is_new = key not in self.walked
        self.walked[key] = owner
        return is_new

    def walk(self, value: Any, expression: str, where: str, *, is_put: bool = False) -> Any:
        """Return the stand-in for a value; write down how to recognize the value.

        What is put in the place of the value need not be a constant.
        """
        inputs, seen = self.inputs, self.inputs.seen
        self.guards.where = named(where)
        is_varying = is_put and self.guards.where in inputs.varying
        if isinstance(value, Captured) or type(value) in (Placeholder, ModuleView, _Cached):
            # It was put there before.
            return value
        if getattr(value, "__class__", None) is not type(value):
            # It says that it is another thing than it is.
            return self._walk_foreign(value, expression, where)
        if is_varying and value.__class__ in _FLOATS:
            local = self.local(expression)
            self.guard(f"{local}.__class__ is not {self.bind(value.__class__)}")
            return inputs.walk_number(value, local, where)
        if is_plain(value):
            if value.__class__ is str:
                self.attributes |= attributes_in([value])
            self.guards.guard_plain(value, expression)
            return value
        if id(value) in BY_ID:
            self.guard(f"{expression} is not {self.bind(value)}")
            return BY_ID[id(value)]
        if id(value) in seen:
            stands_for, source = seen[id(value)]
            self.guard(f"{expression} is not {source}")
            return stands_for
        if isinstance(value, TensorBase):
            return inputs.walk_tensor(value, expression, where)
        if isinstance(value, np.ndarray):
            return inputs.walk_array(value, expression, where, is_varying=is_varying)
        if isinstance(value, types.ModuleType) and not is_users(value):
            self.guard(f"{expression} is not {self.bind(value)}")
            return view_of(value, where, self.trusts)
        if isinstance(value, ALIASES):
            self.walk(get_origin(value), self.bind(get_origin(value)), where)
        if is_cache(value):
            name = self.bind(value)
            self.guard(f"{expression} is not {name}")
            seen[id(value)] = _Cached(self, value, where), name
            return seen[id(value)][0]
        if isinstance(value, _BOUND) and not isinstance(
            value.__self__, types.ModuleType | type | None
        ):
            return self._walk_bound_of_c(value, expression, where)
        if self._is_foreign(value):
            return self._walk_foreign(value, expression, where)
        base = storage(value.__class__)
        if is_varying and inputs.is_around and base is object and is_walked(value):
            # It is walked as an argument is.
            inputs.is_around = False
            replaced = self.walk(value, expression, where)
            inputs.is_around = True
            return replaced
        if self._is_kept(value, base):
            self._walk_kept(value, expression, where)
            return value
        return self._walk_recognized(value, base, self.local(expression), where, is_put=is_put)

    def _is_foreign(self, value: Any) -> bool:
        """Tell whether a value is neither the user's, nor of a kind that is walked."""
        if isinstance(value, type):
            return not is_users(value) or has_foreign_base(value)
        if isinstance(value, types.FunctionType):
            return not is_users(value)
        is_kind = isinstance(value, (*_RECOGNIZED, Optimizer, enum.Enum, types.ModuleType))
        if is_kind or is_walked(value):
            return False
        runs = next(functions_in(value), None) is not None
        return not (runs and runs_what_is_listed(value, self.trusts))

    def _walk_foreign(self, value: Any, expression: str, where: str) -> Any:
        """Walk what is on the closed list; what is not, and anything else, may be handed on."""
        if is_fixed(value, self.trusts):
            self.guard(f"{expression} is not {self.bind(value)}")
            self.inputs.seen[id(value)] = value, self.bind(value)
            if isinstance(value, types.FunctionType) and value.__module__.startswith(_LIBRARY):
                self.note(value, self.bind(value))
            return converting(value)
        local, cls = self.local(expression), type(value)
        self.guard(f"type({local}) is not {self.bind(cls)}")
        name = getattr(value, "__name__", None)
        words = (name, getattr(value, "__module__", None), cls.__module__.partition(".")[0])
        stands_for = Placeholder(value, where, cure_for(*map(str, words)))
        self.inputs.seen[id(value)] = stands_for, local
        return stands_for

    def _walk_bound_of_c(self, value: Any, expression: str, where: str) -> Any:
        """Walk a method that is written in C, and what it is bound to."""
        owner, name = value.__self__, value.__name__
        is_of_object = is_walked(owner) and storage(type(owner)) is object
        if name.startswith("__") or is_of_object:
            return self._walk_foreign(value, expression, where)
        local = self.local(expression)
        self.guard(f"type({local}) is not {self.bind(type(value))}")
        self.guard(f"{local}.__name__ != {name!r}")
        stands_for = self.walk(owner, f"{local}.__self__", f"{where}.__self__")
        if type(stands_for) is Placeholder:
            return self._walk_foreign(value, expression, where)
        return value if stands_for is owner else getattr(stands_for, name)

    def _walk_recognized(
        self, value: Any, base: Any, local: str, where: str, *, is_put: bool
    ) -> Any:
        """Walk an object in whose place the next call may bring another one of its class."""
        inputs = self.inputs
        if isinstance(value, np.random.Generator):
            return inputs.walk_generator(value, local, where)
        inputs.seen[id(value)] = value, local
        self.guard(f"{local}.__class__ is not {self.bind(value.__class__)}")
        self.add_class(value.__class__)
        if isinstance(value, Gradients):
            return inputs.walk_gradients(value, local, where)
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
        self._walk_attributes(value, local, where, lasts=False)
        return value

    def _is_kept(self, value: Any, base: type) -> bool:
        """Tell whether the next call has to bring the very same object.

        That is so around the function, and of what nobody can look through.
        """
        if isinstance(value, enum.Enum):
            return True
        if isinstance(value, _RECOGNIZED) or is_dataclass_instance(value):
            return False
        if isinstance(value, types.FunctionType):
            return self.inputs.is_around
        return not is_walked(value) or (base is object and self.inputs.is_around)

    def _walk_kept(self, value: Any, expression: str, where: str) -> None:
        """Walk an object that has to be there again."""
        # What is compiled is known by its name already.
        name = self.bind(value)
        if name != expression:
            self.guard(f"{expression} is not {name}")
        self.inputs.seen[id(value)] = value, name
        self.add_class(value.__class__)
        if is_users(value.__class__):
            self.guard(f"{name}.__class__ is not {self.bind(value.__class__)}")
        if isinstance(value, enum.Enum) or is_walked(value):
            self._walk_attributes(value, name, where, lasts=True)
        elif isinstance(value, Optimizer):
            self.inputs.walk_optimizer(value, where)
        elif isinstance(value, type):
            self.add_class(value)
            if isinstance(value, enum.EnumMeta):
                for member in vars(value)["_member_map_"].values():
                    self.walk(member, self.bind(member), f"{where}.{member._name_}")
        elif isinstance(value, types.ModuleType):
            self.modules[id(value)] = value, where
        else:
            self.add_function(value, name, where)
            for one in wrapped_in(value):
                if one is not value and not isinstance(one, types.FunctionType):
                    self.walk(one, self.bind(one), where)

    def add_class(self, cls: type) -> None:
        """Note that there are objects of a class: its methods, and those of its bases, may run."""
        if cls in self.classes:
            return
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
            was_around, self.inputs.is_around = self.inputs.is_around, True
            if is_users_module(function.__globals__.get("__name__")):
                self._walk_defaults(function, source)
                if self.entered(function.__code__):
                    self.walk_function(function, source)
            elif (function.__module__ or "").startswith(_LIBRARY):
                # Frames of this library are passed over.
                self.walk_function(function, source)
            self.inputs.is_around = was_around

    def _walk_defaults(self, function: types.FunctionType, source: str) -> None:
        """Walk the defaults of arguments, which are read before a frame is entered."""
        where = f"the default of {function.__name__}"
        by_place, by_name = function.__defaults__ or (), function.__kwdefaults__ or {}
        # A function that is there again has the same ones, which is guarded where it runs.
        is_made_anew = not source.startswith("k")
        self._defaults[id(function)] = function.__defaults__, function.__kwdefaults__
        if by_place and (is_made_anew or not all(map(is_plain, by_place))):
            walked = self.walk(by_place, f"{source}.__defaults__", where, is_put=is_made_anew)
            if walked is not by_place:
                watched = self.inputs.hold(where, Slot(function, _DEFAULTS))
                function.__defaults__ = walked
                watched.settle()
        if by_name:
            self.walk(by_name, f"{source}.__kwdefaults__", where, is_put=is_made_anew)

    def walk_function(self, function: types.FunctionType, source: str) -> None:
        """Walk the variables that a function closes over; guard its defaults, walked before."""
        if not self.is_new(function):
            return
        fixed = source.startswith("k")
        if fixed:
            known = self._defaults.get(id(function), (None, None))
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
            watched = self.inputs.hold(name, cell_place(cell))
            if watched.before is NOTHING:
                self.guard(f"is_set({self.bind(CELL_CONTENTS)}, {held})")
                continue
            replaced = self.walk(watched.before, f"{held}.cell_contents", name, is_put=True)
            if type(replaced) is Placeholder and not is_users_module(
                function.__globals__["__name__"]
            ):
                # Python's own decorators know what they do with it.
                continue
            if replaced is not watched.before:
                cell.cell_contents = replaced
                watched.settle()

    def add_function(self, value: Any, source: str, where: str) -> None:
        """Note a function, and those that it wraps; their closures are read when they run."""
        for function in functions_in(value):
            name = source if function is value else self.bind(function)
            self.note(function, name)
            if is_users(function):
                self._walk_attributes(function, name, where, lasts=name.startswith("k"))

    def _walk_bound(self, value: Any, local: str, where: str) -> Any:
        """Walk a bound method or a partial function."""
        if isinstance(value, types.MethodType):
            self.walk(value.__func__, f"{local}.__func__", where)
            self.walk(value.__self__, f"{local}.__self__", f"{where}.__self__")
            return value
        function = self.walk(value.func, f"{local}.func", where)
        self._walk_attributes(value, local, where, lasts=False)
        is_put = value.__class__ is partial
        args = self.walk(value.args, f"{local}.args", f"an argument of {where}", is_put=is_put)
        options = self.walk(value.keywords, f"{local}.keywords", where, is_put=is_put)
        if (function is value.func and args is value.args) or not is_put:
            return value
        replaced = partial(function, *args, **options)
        self.inputs.seen[id(value)] = replaced, local
        return replaced

    def _walk_container(
        self, value: Any, base: Any, local: str, where: str, *, is_put: bool
    ) -> Any:
        """Walk what is in a container, which keeps its identity if it can be written to."""
        cls = value.__class__
        self._walk_attributes(value, local, where, lasts=False)
        if base is deque or issubclass(base, defaultdict):
            name = "maxlen" if base is deque else "default_factory"
            self.walk(getattr(value, name), f"{local}.{name}", f"{where}.{name}")
        is_set_of = issubclass(base, set | frozenset)
        watched = self.inputs.hold(where, Contents(value, base), members if is_set_of else parts)
        held = watched.before
        if cls not in _BUILT_IN:
            local = self.local(f"contents_of({self.bind(base)}, {local})")
        if isinstance(held, dict):
            self.guards.guard_keys(held, local)
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
            seen = self.inputs.seen
            seen[id(value)] = seen[id(made)] = made, seen[id(value)][1]
            return made
        for key, item in changed.items():
            base.__setitem__(value, key, item)
        if changed:
            watched.settle()
        return value

    def _walk_attributes(self, value: Any, local: str, where: str, *, lasts: bool) -> None:
        """Walk the attributes of an object, in its dict and in its slots.

        The object lasts if the next call has it again.
        """
        slots, fields = places.slots_of(value), places.attributes_of(value)
        found: list[_Attribute] = []
        are_left = can_tell(value)
        hold = self.inputs.hold
        if slots:
            # Before anything is replaced: what comes next may be refused.
            watched = hold(f"{where}.", places.Slots(value), dict)
            for name, slot in slots.items():
                if name not in watched.expected:
                    self.guard(f"is_set({self.bind(slot)}, {local})")
                    continue
                source, put = f"{self.bind(slot.__get__)}({local})", partial(slot.__set__, value)
                found.append(_Attribute(name, source, where, watched, put, False))
        if fields is not None:
            watched = hold(f"{where}.", places.Attributes(value), _values_of, is_or_are_tensors)
            source = f"{local}.__dict__"
            held = self.bind(fields) if lasts else self.local(source)
            moved = f" or {source} is not {held}" if lasts else ""
            self.guard((f"len({held}) != {len(fields)}" if fields else held) + moved)
            unread = [
                name for name in fields if are_left and self.reads.leaves(value, fields[name])
            ]
            if unread:
                # Without one of them the name may be that of an attribute of the class.
                self.guard(f"not {self.bind(frozenset(unread))} <= {held}.keys()")
            self.inputs.states.append((held, fields, watched.expected))
            for name in watched.expected:
                if name != _FOUND_BY_CLASS or not isinstance(value, types.FunctionType):
                    source, put = f"{held}[{name!r}]", partial(fields.__setitem__, name)
                    found.append(_Attribute(name, source, where, watched, put, lasts))
        for one in found:
            if are_left and self.reads.leaves(value, one.watched.expected[one.name]):
                walk = partial(self.walk_read, one, self.inputs.is_around)
                self.reads.leave(value, one.name, walk)
            else:
                self._walk_attribute(one)

    def walk_read(self, attribute: _Attribute, is_around: bool) -> None:
        """Walk an attribute that the function reads, of an object that may be around it."""
        inputs = self.inputs
        was_around, inputs.is_around = inputs.is_around, is_around
        with self.refusing():
            self._walk_attribute(attribute)
            inputs.is_around = True
            self.after_read()
        inputs.is_around = was_around

    def _walk_attribute(self, attribute: _Attribute) -> None:
        name, source, where, watched, put, lasts = attribute
        inputs, value, called = self.inputs, watched.expected[name], f"{where}.{name}"
        is_new = isinstance(value, TensorBase) and id(value) not in inputs.seen
        is_kept = lasts and is_new and value.tape is None
        # Who sets one tensor of a model sets others, too, so that they vary together.
        if is_kept and tensors_of(called) not in inputs.varying:
            self.guards.where = named(called)
            field = self.local(source)
            inputs.fields[field] = value
            inputs.walk_tensor(value, field, called)
            return
        replaced = self.walk(value, source, called, is_put=True)
        if replaced is not value:
            watched.expected[name] = replaced
            put(replaced)


def _values_of(held: tuple[Any, dict[str, Any]]) -> dict[str, Any]:
    """Return what a dict of attributes held."""
    return {**held[1]}
