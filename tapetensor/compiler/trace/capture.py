"""Capturing a function: it runs once, on tracers in the place of its arrays.

The capture watches which code runs: when a frame of the user's is entered, the objects that its
code may read are walked first.
"""

from __future__ import annotations

import abc
import builtins
import gc
import operator
import random
import sys
import threading
import types
import typing
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property, partial, partialmethod
from typing import Any

import numpy as np

from tapetensor.arrays.stand_ins import IS_TRACING
from tapetensor.compiler.trace.answers import BY_NAME, LISTENERS, view_of
from tapetensor.compiler.trace.closed_list import (
    BUILTINS,
    DUNDERS,
    UNTOLD,
    cure_for,
    trusted_module,
)
from tapetensor.compiler.trace.guards import GuardWriter
from tapetensor.compiler.trace.inputs import ARRAY, Inputs
from tapetensor.compiler.trace.kinds import (
    functions_in,
    is_cache,
    is_users,
    runs_what_is_listed,
    wrapped_in,
)
from tapetensor.compiler.trace.program import Program
from tapetensor.compiler.trace.refusals import (
    NotTracedError,
    Placeholder,
    Untraced,
    first_of,
    meanwhile,
    placed,
    refusals,
    trace_error,
)
from tapetensor.compiler.trace.tracer import ArrayTracer
from tapetensor.compiler.trace.walk import Walk
from tapetensor.compiler.trace.watching import Accessors, Held, is_teller, nothing, watched, whole
from tapetensor.errors import TraceError
from tapetensor.pictures.places import is_users_module
from tapetensor.surroundings.names import modules_in, names_in, place_of_name
from tapetensor.surroundings.places import COMMON_GENERATORS, NOTHING, Name, Slot
from tapetensor.tape import tape as replaying
from tapetensor.tape.history import next_id
from tapetensor.tensor.base import TensorBase

_REPLAY = vars(replaying)["replay"]
# What tells whether an object has the members of a protocol.
_OF_PROTOCOLS = type(typing.Protocol).__instancecheck__.__code__
# What seeds a generator of numpy's or Python's that is given no seed.
_SEEDS = {random.SystemRandom.getrandbits.__code__, random.SystemRandom.random.__code__}
# What Python itself puts there, and keeps.
_PYTHONS = {
    "__abstractmethods__", "__annotations__", "__annotations_cache__", "__builtins__",
    "__slotnames__", "__warningregistry__", "_abc_impl", "__static_attributes__",
    "__firstlineno__", "__annotate__", "__annotate_func__",
}  # fmt: skip
# Modules whose descriptors give what an object holds.
_DESCRIBING = ("builtins", "collections", "_collections", "enum", "types", "typing")
# What a function or a class says of itself, without a place in its dict.
_SAID = frozenset({"__doc__", "__name__", "__qualname__"})


class Capture:
    """One call of a function, whose surroundings are found, watched, and put back."""

    def __init__(
        self,
        program: Program,
        function: Any,
        varying: Collection[str] = (),
        trusts: Collection[str] = (),
    ) -> None:
        self.program = program
        self.guards = GuardWriter({})
        self.inputs = Inputs(self.guards, program, function)
        self.inputs.varying = varying
        self._walk = Walk(self.guards, self.inputs, trusts)
        self._walk.entered = lambda code: id(code) in self._entered
        self._walk.after_read = self._walk_namespaces
        self._walk.refusing = self._refusing
        self._trusts = tuple(trusts)
        # A script that is imported may call what it has compiled: that is no code of an import.
        self._known = {*sys.modules}
        self._entered: dict[int, types.CodeType] = {}
        # How many functions of some code were walked.
        self._counts: dict[int, int] = {}
        # What the names of each module and class stand for, by the address of it.
        self._spaces: dict[int, Held] = {}
        # The names that are no globals but built in, of each scope.
        self._built_in: dict[int, tuple[dict[str, Any], set[str]]] = {}
        # A view of the names of each class that the source refers to, by the address of it.
        self._views: dict[int, Mapping[str, Any]] = {}
        self._start = next_id()
        self._asks_for_abcs = False
        # What was refused, the first of it first.
        self._refused: list[BaseException] = []
        # They run whenever Python likes to, and are no part of the function.
        self._collecting = {getattr(one, "__code__", None) for one in gc.callbacks}
        for name, generator in COMMON_GENERATORS.items():
            self.inputs.watch_randomness(generator, name)
        self.inputs.hold("", Accessors(nothing, lambda _: self._walk.reads.forget()))

    @property
    def has_imported(self) -> bool:
        """Whether modules of the user's are known only now, so that no walk has seen them."""
        return any(map(is_users_module, sys.modules.keys() - self._known))

    @property
    def codes(self) -> list[types.CodeType]:
        """The code of the user's that has run, in order."""
        return [*self._entered.values()]

    def arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any]:
        """Walk the arguments of the call; return their stand-ins."""
        guard, walk = self.guards.guard, self._walk.walk
        guard(f"len(args) != {len(args)}" if args else "args")
        guard(f"tuple(kwargs) != {self.guards.bind(tuple(kwargs))}" if kwargs else "kwargs")
        by_place = [
            walk(value, f"args[{position}]", f"argument {position}", is_put=True)
            for position, value in enumerate(args)
        ]
        by_name = {
            name: walk(value, f"kwargs[{name!r}]", f"argument {name}", is_put=True)
            for name, value in kwargs.items()
        }
        return by_place, by_name

    def open(self, function: Any) -> Any:
        """Walk the compiled object; return its stand-in."""
        inputs = self.inputs
        # What a partial function holds is an argument, too.
        inputs.is_around = function.__class__ is not partial
        name = getattr(function, "__name__", "the function")
        called = self._walk.walk(function, self.guards.bind(function), name)
        self._walk_parameters()
        inputs.is_around = False
        return called

    @contextmanager
    def overlaid(self) -> Iterator[None]:
        """Have tracers stand for the arrays of tensors, in this thread alone.

        Refuse to read tensors that were there before, and that no walk has found.
        """
        mine, start = threading.get_ident(), self._start
        found, overlay = self.inputs.seen, self.inputs.overlay
        own_id = vars(TensorBase)["_id"].__get__

        def read(tensor: Any) -> Any:
            if threading.get_ident() != mine:
                return ARRAY.__get__(tensor)
            stands_for = overlay.get(id(tensor))
            if stands_for is not None:
                return stands_for
            array = ARRAY.__get__(tensor)
            if type(array) is np.ndarray and own_id(tensor) < start and id(tensor) not in found:
                raise trace_error(
                    "a tensor is read that the function finds in a way that a plan cannot follow; "
                    "pass it as an argument"
                )
            return array

        def write(tensor: Any, array: Any) -> None:
            if id(tensor) in overlay and threading.get_ident() == mine:
                overlay[id(tensor)] = array
            else:
                ARRAY.__set__(tensor, array)

        def replay(steps: Any, arrays: dict[int, Any], *args: Any, **options: Any) -> Any:
            if threading.get_ident() == mine:
                self.inputs.tapes.has_replayed = True
                # Kernels compute with a known cotangent beside what is captured.
                for key, array in arrays.items():
                    if type(array) is np.ndarray:
                        node = self.program.constant(array)
                        arrays[key] = ArrayTracer(self.program, node)
            return _REPLAY(steps, arrays, *args, **options)

        try:
            type.__setattr__(TensorBase, "_array", property(read, write, ARRAY.__delete__))
            vars(replaying)["replay"] = replay
            yield
        finally:
            vars(replaying)["replay"] = _REPLAY
            type.__setattr__(TensorBase, "_array", ARRAY)

    def run(self, function: Callable[[], Any]) -> Any:
        """Run the function, and walk the objects that each part of it may read before it runs."""
        self._walk_parameters()
        self.inputs.is_around = True
        LISTENERS.append((self._note_attribute, self._note_abc))
        with refusals(self._refused), self._walk.reads.watched(), watched(self._enter):
            try:
                result = function()
            except Exception as error:
                if not self._refused and not isinstance(error, RecursionError | TraceError):
                    raise self._untraced(error) from error
                # Errors know the frames that know them: nothing here goes on doing so.
                if error is (self._refused or [error])[0]:
                    self._refused.clear()
                    raise
                raise first_of(self._refused) from error
            finally:
                LISTENERS.pop()
                self.inputs.is_around = False
        if self._refused:
            # The function has caught it, and has gone on without what was refused.
            raise first_of(self._refused)
        with placed(self.inputs.place):
            self._guard_what_ran()
        return result

    def _untraced(self, error: BaseException) -> NotTracedError:
        """Return what has the function run itself, for what raises an error in its capture."""
        held = [one for one in reversed(self.inputs.held) if one.place.read is not nothing]
        for tensor, _, _, _ in self.inputs.tensors:
            held.append(Held("", Slot(tensor, ARRAY), whole, operator.is_))
        return NotTracedError(Untraced(type(error).__name__, held, self.program.groups))

    def close(self) -> None:
        """Put back all that stands for something else; keep nothing alive."""
        try:
            self.inputs.restore()
        except BaseException:
            # Who presses Ctrl-C here is to find no tracers in a model.
            self.inputs.restore()
            raise
        finally:
            # These hold on to this, which holds on to them.
            vars(self._walk).update(entered=None, after_read=None, refusing=None)

    def _walk_parameters(self) -> None:
        for tensor, expression in self.inputs.parameters_of_optimizers():
            self._walk.walk(tensor, expression, "a parameter")

    @contextmanager
    def _refusing(self) -> Iterator[None]:
        """Note first what is refused by a walk: the function may catch that."""
        try:
            yield
        except BaseException as error:
            self._refused.insert(0, error)
            raise

    def _note_attribute(self, name: str) -> None:
        """Walk what classes and modules have by a name that is looked up by a text."""
        if name.startswith("__") and name.endswith("__") and name not in DUNDERS:
            raise trace_error(f"{name} is looked up, by which {cure_for('__dict__')}")
        if name not in self._walk.attributes:
            self._walk.attributes.add(name)
            with self._refusing():
                self._walk_namespaces()

    def _note_abc(self) -> None:
        self._asks_for_abcs = True

    def _enter(self, frame: types.FrameType) -> bool:
        """Walk what the code of a frame may read; tell whether to be told of that code again."""
        code = frame.f_code
        # Most are known, and 70 are entered for each op.
        known = self._counts.get(id(code))
        if known is not None and len(self._walk.functions.get(id(code), ())) == known:
            return False
        if code is _OF_PROTOCOLS:
            # From Python 3.12 on it looks into objects, which their classes do not see.
            self._walk.reads.give_up()
            for name in sorted(getattr(frame.f_locals["cls"], "__protocol_attrs__", ())):
                self._note_attribute(name)
            return True
        self._walk_code(frame, code)
        return False

    def _walk_code(self, frame: types.FrameType, code: types.CodeType) -> None:
        functions = self._walk.functions
        module = frame.f_globals.get("__name__") or ""
        # Python writes the constructors of named tuples itself.
        is_written = "_tuple_new" in frame.f_globals and code.co_filename == "<string>"
        is_trusted = trusted_module(module, self._trusts) is not None
        if not is_users_module(module) or is_written or is_trusted:
            if code in _SEEDS:
                with self._refusing():
                    raise trace_error(
                        "a random generator without a seed is made, which would be another one at "
                        "every call; make it outside, and pass it as an argument"
                    )
            for function, source in functions.get(id(code), ()):
                self._walk.walk_function(function, source)
            self._counts[id(code)] = len(functions.get(id(code), ()))
        elif code in self._collecting:
            self._counts[id(code)] = 0
        elif self._is_in_an_import(frame):
            self._counts[id(code)] = -1
        else:
            with self._refusing():
                self._walk_frame(code, frame.f_globals)

    def _is_in_an_import(self, frame: types.FrameType) -> bool:
        """Tell whether a frame is entered by what finds and loads modules."""
        one: types.FrameType | None = frame
        while one is not None and one.f_code is not _RUN:
            if one.f_globals.get("__name__") == "importlib._bootstrap":
                return True
            one = one.f_back
        return False

    def _walk_frame(self, code: types.CodeType, scope: dict[str, Any]) -> None:
        """Walk what code may read, and what was found then."""
        walk = self._walk
        was_around, self.inputs.is_around = self.inputs.is_around, True
        if id(code) not in self._entered:
            self._find_function(code)
            self._entered[id(code)] = code
            self._read_names(code, scope)
        noted = walk.functions.get(id(code), [])
        for function, source in noted:
            walk.walk_function(function, source)
        self._walk_namespaces()
        self._counts[id(code)] = len(walk.functions.get(id(code), ()))
        self.inputs.is_around = was_around

    def _find_function(self, code: types.CodeType) -> None:
        """Note functions that no walk has found, and that nothing in this capture has made."""
        is_found = id(code) in self._walk.functions or not code.co_freevars
        if is_found or any(
            code is one for each in self._entered.values() for one in each.co_consts
        ):
            return
        for one in gc.get_referrers(code):
            if isinstance(one, types.FunctionType):
                self._walk.note(one, self.guards.bind(one))

    def _read_names(self, code: types.CodeType, scope: dict[str, Any]) -> None:
        walk, names = self._walk, names_in(code)
        refused = names.kind or next(
            (one for one in names.attributes if one[:2] == one[-2:] == "__" and one not in DUNDERS),
            "",
        )
        if refused:
            with placed(place_of_name(code, refused)):
                raise trace_error(
                    f"{refused} is named, which a replay would not repeat; {cure_for(refused)}"
                )
        walk.attributes |= names.attributes
        if not UNTOLD.isdisjoint(names.attributes):
            walk.reads.give_up()
        for name, module in modules_in(names, scope).items():
            if is_users(module):
                self._note_module(name, module)
            elif any(module.__name__ == one for one, _ in names.imports):
                self._check_import(code, module, names.attributes)
        space = self._watch(scope, "")
        _, built_in = self._built_in.setdefault(id(scope), (scope, set()))
        for name in names.reads:
            if not walk.is_new(scope, name):
                continue
            if name in scope:
                self._walk_name(scope, name, "")
                continue
            built_in.add(name)
            if name in BY_NAME:
                scope[name] = space.expected[name] = BY_NAME[name]
                continue
            known = vars(builtins).get(name, NOTHING)
            is_error = isinstance(known, type) and issubclass(known, BaseException)
            if not (known is NOTHING or name in BUILTINS or is_error):
                stands_for = Placeholder(known, name, cure_for(name))
                scope[name] = space.expected[name] = stands_for

    def _check_import(
        self, code: types.CodeType, module: types.ModuleType, names: frozenset[str]
    ) -> None:
        """Refuse code that imports what is not on the closed list."""
        view: Any = view_of(module, module.__name__, self._trusts)
        root = module.__name__.partition(".")[0]
        with placed(place_of_name(code, module.__name__)):
            if type(view) is Placeholder:
                raise trace_error(
                    f"{module.__name__} is imported inside, which a replay would not repeat; "
                    f"{cure_for(module.__name__, root)}"
                )
        for name in names & vars(module).keys():
            if type(getattr(view, name)) is Placeholder:
                with placed(place_of_name(code, name)):
                    raise trace_error(
                        f"{module.__name__}.{name} is named where {module.__name__} is imported "
                        f"inside, which a replay would not repeat; {cure_for(name)}"
                    )

    def _note_module(self, name: str, module: types.ModuleType) -> None:
        """Note a module whose names somebody may read; guard that it is there under its own."""
        self._walk.modules[id(module)] = module, module.__name__
        if self._walk.is_new("import", name):
            modules = self.guards.bind(sys.modules)
            self.guards.guard(f"{modules}.get({name!r}) is not {self.guards.bind(module)}")

    def _names_of(self, owner: Any) -> str:
        """Return the source of the names of a class or of a module's dict."""
        # Every read of those of a class makes another view.
        is_class = isinstance(owner, type)
        return self.guards.bind(
            self._views.setdefault(id(owner), vars(owner)) if is_class else owner
        )

    def _watch(self, owner: Any, where: str) -> Held:
        """Watch all names of a class or of a module's dict; put back what the function changes."""
        if id(owner) in self._spaces:
            return self._spaces[id(owner)]
        held: Any = vars(owner) if isinstance(owner, type) else owner

        def read(known: Collection[str] = _PYTHONS) -> dict[str, Any]:
            return {
                name: one for name, one in held.items() if name not in known and not is_teller(one)
            }

        def write(originals: dict[str, Any]) -> None:
            others = dict.fromkeys(read(_PYTHONS | originals.keys()), NOTHING)
            for name, one in (others | originals).items():
                if held.get(name, NOTHING) is not one:
                    Name(owner, name).write(one)

        space = self.inputs.hold(where, Accessors(read, write), dict)
        self._spaces[id(owner)] = space
        return space

    def _walk_name(self, owner: Any, name: str, where: str) -> None:
        """Walk what a class or the dict of a module has by a name."""
        held = vars(owner) if isinstance(owner, type) else owner
        value, expression = held[name], f"{self._names_of(owner)}[{name!r}]"
        replaced = self._walk.walk(value, expression, f"{where}{name}", is_put=True)
        if replaced is not value:
            Name(owner, name).write(replaced)
            self._spaces[id(owner)].expected[name] = replaced

    def _walk_namespaces(self) -> None:
        """Walk what the code that has run names of modules and classes, and what is found by it."""
        walk, count = self._walk, -1
        while count != len(walk.walked):
            count = len(walk.walked)
            for cls in list(walk.classes):
                self._walk_namespace(cls, cls, cls.__name__)
            for module, where in list(walk.modules.values()):
                self._walk_namespace(module, vars(module), where)
        self._walk_parameters()

    def _walk_namespace(self, owner: Any, space: Any, where: str) -> None:
        """Walk the attributes of a class or a module that some function names."""
        walk, held = self._walk, vars(owner)
        self._watch(space, f"{where}.")
        for name in walk.attributes & held.keys():
            value = held[name]
            if is_teller(value) or not walk.is_new(space, name):
                continue
            if isinstance(owner, type) and self._is_member(value):
                self._guard_member(owner, name)
                for one in wrapped_in(value):
                    if isinstance(one, types.FunctionType) and vars(one):
                        walk.add_function(one, self.guards.bind(one), f"{where}.{name}")
                    if isinstance(one, partial | partialmethod):
                        source = self.guards.bind(one)
                        walk.walk(one.args, f"{source}.args", f"an argument of {where}.{name}")
                        walk.walk(one.keywords, f"{source}.keywords", f"{where}.{name}")
            else:
                self._walk_name(space, name, f"{where}.")

    def _is_member(self, value: Any) -> bool:
        """Tell whether a class has a value for its objects: a method, a property or the like."""
        if is_cache(value) or isinstance(value, types.MethodType | partial):
            return False
        is_descriptor = hasattr(type(value), "__get__") and type(value).__module__ in _DESCRIBING
        if isinstance(
            value, staticmethod | classmethod | property | partialmethod | cached_property
        ):
            return runs_what_is_listed(value, self._trusts)
        return is_descriptor or next(functions_in(value), None) is not None

    def _guard_member(self, owner: type, name: str) -> None:
        """Guard that a class has the very same function, property or the like."""
        if self._walk.is_new(owner, f"{name} of a class"):
            known = self.guards.bind(vars(owner)[name])
            self.guards.guard(f"{self._names_of(owner)}[{name!r}] is not {known}")

    def _guard_what_ran(self) -> None:
        """Guard the methods that have run, and that names that were not there are not there."""
        walk, guard, bind = self._walk, self.guards.guard, self.guards.bind
        self.guards.where = ""
        if self._asks_for_abcs or any(isinstance(one, abc.ABCMeta) for one in walk.classes):
            # Somebody may register a class that it has not.
            guard(f"{bind(abc.get_cache_token)}() != {bind(abc.get_cache_token())}")
        for scope, names in self._built_in.values():
            if names:
                guard(f"not {bind(scope)}.keys().isdisjoint({bind(frozenset(names))})")
            changed = {
                name: vars(builtins).get(name, NOTHING) for name in names if name not in BUILTINS
            }
            for name, known in changed.items():
                if known is NOTHING:
                    guard(f"{name!r} in {bind(vars(builtins))}")
        for cls in walk.classes:
            # It has the same bases, and no new name, which one of these or nobody had before.
            bases = f"{bind(cls)}.__mro__ is not {bind(cls.__mro__)}"
            count = len([one for one in vars(cls).values() if not is_teller(one)])
            guard(f"len({self._names_of(cls)}) != {count} or {bases}")
        known = [pair for pairs in walk.functions.values() for pair in pairs if is_users(pair[0])]
        for name in sorted(_SAID & walk.attributes):
            for one, source in (*[(cls, bind(cls)) for cls in walk.classes], *known):
                guard(f"{source}.{name} != {bind(getattr(one, name))}")
        for code in self._entered:
            for owner, name in walk.members.get(code, ()):
                self._guard_member(owner, name)
        for module, _ in walk.modules.values():
            missing = bind(frozenset(walk.attributes - vars(module).keys()))
            guard(f"not {bind(vars(module))}.keys().isdisjoint({missing})")


_RUN = Capture.run.__code__


@contextmanager
def capturing(
    function: Callable[..., Any],
    program: Program,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    varying: Collection[str] = (),
    trusts: Collection[str] = (),
) -> Iterator[tuple[Capture, Callable[[], Any]]]:
    """Walk the inputs of a call; yield them, and what runs the function on tracers."""
    one = Capture(program, function, varying, trusts)
    try:
        with meanwhile(IS_TRACING, True), one.overlaid():
            with placed(one.inputs.place):
                called = one.open(function)
            by_place, by_name = one.arguments(args, kwargs)
            yield one, partial(one.run, partial(called, *by_place, **by_name))
    finally:
        one.close()
