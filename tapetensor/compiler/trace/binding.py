"""What a function reads from around itself: closure cells, globals, attributes of classes.

Which code runs is not guessed but seen: while a function is captured, every frame that is entered
tells what it may read, and that is walked before it does.
"""

from __future__ import annotations

import abc
import builtins
import gc
import importlib
import importlib.util
import inspect
import logging
import os
import random
import sys
import threading
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any

import numpy as np
from typing_extensions import override

from tapetensor.checkpointing.places import COMMON_GENERATORS
from tapetensor.compiler.trace.changes import Accessors
from tapetensor.compiler.trace.codes import (
    UNREPEATABLE_CODES,
    UNTOLD,
    is_called,
    is_of_a_package,
    is_unrepeatable,
    modules_in,
    names_in,
    place_of_name,
)
from tapetensor.compiler.trace.frames import is_imported, unseen, watched
from tapetensor.compiler.trace.inputs import ARRAY, nothing
from tapetensor.compiler.trace.making import arrays_made_of_tracers
from tapetensor.compiler.trace.namespaces import Namespaces
from tapetensor.compiler.trace.opaque import DIFFERS, UNSEEDED, clear_of_tracers, fixed_in
from tapetensor.compiler.trace.program import Program
from tapetensor.compiler.trace.refusals import (
    NotTracedError,
    Untraced,
    first_of,
    placed,
    refusals,
    trace_error,
)
from tapetensor.compiler.trace.structure import is_plain, is_users
from tapetensor.compiler.trace.telling import ABCS, BY_NAME, LOOKUP_CODES
from tapetensor.errors import TraceError
from tapetensor.pictures.places import is_installed, is_users_module
from tapetensor.tape import tape as replaying
from tapetensor.tape.ids import next_id
from tapetensor.tensor.base import TensorBase

_REPLAY = vars(replaying)["replay"]
_REPLAY_UNSEEN = unseen(_REPLAY)
_KERNELS = f"{__name__.split('.', maxsplit=1)[0]}.kernels."
# Methods of Python's own that read what their objects hold, and what seeds a generator.
_SEED = random.Random.seed.__code__
_READING = {
    one.__code__
    for one in (*vars(type(os.environ)).values(), logging.Logger.isEnabledFor)
    if isinstance(one, types.FunctionType)
}
_IMPORT = importlib.import_module.__code__
# What sees what objects and classes have, and reads it untold.
_LOOKING = {inspect.classify_class_attrs.__code__, inspect.getattr_static.__code__}
_SPECIAL = {_SEED, _IMPORT, *_READING, *_LOOKING, *LOOKUP_CODES, *UNREPEATABLE_CODES}
_SPECIAL_FILES = {one.co_filename for one in _SPECIAL}
# What comes of what these read, when they tell of something, is no part of a result.
_TELLERS = ("importlib", "linecache", "logging", "traceback", "warnings")
# What errors say that code of C raises for what is no array or number, but stands for one; and what
# those say that Python raises for arrays and numbers as well.
_OF_STAND_INS = ("Tracer", "buffer", "Could not convert object")
_OF_BOTH = ("object is not", "has no len", "non-iterable", "operand type", "supported between")
# What a function or a class says of itself, without a place in its dict.
_TOLD = frozenset({"__doc__", "__name__", "__qualname__"})
# The files of this library, numpy and Python, whose frames are passed over.
_PASSED: set[str] = set()


class Binding(Namespaces):
    """The inputs of one plan, found by walking the first call.

    Args:
        program: where the tracers put what they capture.
        function: what is captured.
    """

    def __init__(self, program: Program, function: Any) -> None:
        super().__init__(program, function)
        # A script that is imported may call what it has compiled: that is no code of an import.
        self._known = {*sys.modules}
        self._imported: set[str] = set()
        self._entered: dict[int, types.CodeType] = {}
        # The attributes that all of it reads or sets, that of installed packages, too.
        self._named: set[str] = set()
        self._start = next_id()
        # What was refused, the first of it first.
        self._refused: list[BaseException] = []
        # What only stand-ins may have raised, and the function may have caught.
        self._caught: list[BaseException] = []
        for name, generator in COMMON_GENERATORS.items():
            self.watch_randomness(generator, name)
        self.hold("", Accessors(nothing, lambda _: self.reading.forget()))
        # They run whenever Python likes to, and are no part of the function.
        self._collecting = {getattr(one, "__code__", None) for one in gc.callbacks}
        # How many functions of some code were walked.
        self._counts = {id(code): 0 for code in self._collecting}

    @property
    def has_imported(self) -> bool:
        """Whether modules of the user's are known only now, so that no walk has seen them."""
        return not sys.modules.keys().isdisjoint(self._imported)

    def open(self, function: Any) -> Any:
        """Walk what is compiled; return what stands for it."""
        # What a partial function holds is an argument, too.
        self.is_around = function.__class__ is not partial
        name = getattr(function, "__name__", "the function")
        called = self.walk(function, self.bind(function), name)
        self.walk_parameters()
        self.is_around = False
        return called

    def run(self, function: Callable[[], Any]) -> Any:
        """Run the function, and walk what each part of it may read before it runs."""
        self.walk_parameters()
        self.is_around, ABCS.asked = True, False
        made = arrays_made_of_tracers(self.program) if self.program.makes_arrays else nullcontext()
        with (
            self._covered(),
            refusals(self._refused),
            made,
            self.reading.watched(),
            watched(self._enter, self._call, self._catch, _PASSED),
        ):
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
                self.is_around = False
        if self._refused:
            # The function has caught it, and has gone on without what was refused.
            raise first_of(self._refused)
        if self._caught:
            raise self._untraced(self._caught[0])
        with placed(self.place):
            self._guard_what_ran()
        return result

    def _untraced(self, error: BaseException) -> NotTracedError:
        """Return what has the function run itself, for what raises an error in its capture."""
        # The function runs itself on what is put back.
        held = [one for one in reversed(self.held) if one.place.read is not nothing]
        return NotTracedError(Untraced(type(error).__name__, held, self.program.groups))

    def _catch(
        self, frame: types.FrameType, error: BaseException, trace: types.TracebackType
    ) -> None:
        """Note an error that only stand-ins may raise, as in code of C that knows its own types.

        The function may catch it, and go on as it does not with arrays and numbers.
        """
        if not is_users_module(frame.f_globals.get("__name__")):
            return
        while trace.tb_next is not None:
            trace = trace.tb_next
        module: str = trace.tb_frame.f_globals.get("__name__") or ""
        is_pythons = module.partition(".")[0] in sys.stdlib_module_names
        told = " ".join([one for one in error.args if isinstance(one, str)])
        is_told = any(one in told for one in _OF_STAND_INS)
        is_told &= not any(one in told for one in _OF_BOTH)
        if (
            isinstance(error, TraceError)
            or is_told
            or (is_pythons and isinstance(error, TypeError))
        ):
            self._caught.append(error)

    @override
    def walk_read(self, attribute: Any, is_around: bool, *, is_named: bool) -> None:
        """Walk an attribute that the function reads, and what can be reached by it."""
        with self._refusing():
            super().walk_read(attribute, is_around, is_named=is_named)
            self.walk_namespaces()
            self._refuse_unrepeatable()

    @contextmanager
    def _refusing(self) -> Iterator[None]:
        """Note first what is refused by a walk: the function may catch that."""
        try:
            yield
        except BaseException as error:
            self._refused.insert(0, error)
            raise

    @contextmanager
    def _covered(self) -> Iterator[None]:
        """Refuse to read tensors that were there before, and that no walk has found."""
        mine, start, found = threading.get_ident(), self._start, self.seen

        def read(tensor: Any) -> Any:
            array = ARRAY.__get__(tensor)
            if (
                type(array) is np.ndarray
                and tensor._id < start  # noqa: SLF001  # it is one that came before
                and threading.get_ident() == mine
                and id(tensor) not in found
            ):
                raise trace_error(
                    "a tensor is read that the function finds in a way that a plan cannot follow; "
                    "pass it as an argument"
                )
            return array

        def replay(steps: Any, *args: Any, **options: Any) -> Any:
            self.tapes.has_replayed = True
            kernels = {step[1].__module__ for step in steps}
            # Of arrays of the user's own some method has run by now.
            entered = [*self._entered.values()]
            has_arrays = any(one.co_name.startswith("__array") for one in entered)
            are_known = not has_arrays and all(one.startswith(_KERNELS) for one in kernels)
            return (_REPLAY_UNSEEN if are_known else _REPLAY)(steps, *args, **options)

        try:
            type.__setattr__(TensorBase, "_array", property(read, ARRAY.__set__, ARRAY.__delete__))
            vars(replaying)["replay"] = replay
            yield
        finally:
            vars(replaying)["replay"] = _REPLAY
            type.__setattr__(TensorBase, "_array", ARRAY)

    def _enter(self, frame: types.FrameType, file: str) -> None:
        """Walk what the code of a frame may read."""
        code = frame.f_code
        known = self._counts.get(id(code))
        if known is not None and len(self.functions.get(id(code), ())) == known:
            return
        module = frame.f_globals.get("__name__") or ""
        # Python writes the constructors of named tuples itself.
        if not is_users_module(module) or module.startswith("namedtuple_"):
            if file not in _SPECIAL_FILES and not file.startswith("<"):
                _PASSED.add(file)
            elif code in _SPECIAL:
                with self._refusing():
                    self._enter_special(frame)
            else:
                noted = self.functions.get(id(code), ())
                for function, source in noted:
                    self.walk_function(function, source)
                self._counts[id(code)] = len(noted)
        elif self._is_imported(frame):
            self._imported.add(module)
        else:
            with self._refusing():
                self._walk_frame(code, frame.f_globals)

    def _is_imported(self, frame: types.FrameType) -> bool:
        """Tell whether the module of a frame is imported by what is captured."""
        return is_imported(frame) and frame.f_globals["__name__"] not in self._known

    def _call(self, frame: types.FrameType | None, called: Any) -> None:
        """Refuse that what may differ at every call is called, by whatever the user calls."""
        # The module of what `os` has of C is called by the name of the system.
        owner = "os" if called.__module__ == os.name else called.__module__
        name = f"{owner}.{called.__qualname__}" if owner else called.__qualname__
        # Packages, and Python's own code, may ask for these as they like.
        is_setting = isinstance(called, types.FunctionType) or called.__module__ in ("gc", "sys")
        is_setting |= called.__name__ == "__subclasses__"
        one = frame
        while one is not None:
            module = one.f_globals.get("__name__") or ""
            is_others = is_setting and (one is not frame or is_installed(frame.f_code.co_filename))
            is_apart = self._is_imported(one) or one.f_code in self._collecting
            if is_others or is_apart or module.startswith(_TELLERS):
                return
            if is_users_module(module):
                break
            name = f"{module}.{one.f_code.co_qualname}"
            one = one.f_back
        if called.__module__ == "_thread":
            raise trace_error(
                f"{name} begins a thread, in which nobody sees what runs; begin it outside"
            )
        if called is os.urandom and one is not frame:
            raise trace_error(UNSEEDED)
        raise trace_error(f"{name} {DIFFERS}")

    def _walk_frame(self, code: types.CodeType, scope: dict[str, Any]) -> None:
        """Walk what code may read, and what was found then."""
        if id(code) not in self._entered:
            self._find_function(code)
            self._entered[id(code)] = code
            names = names_in(code)
            self._named |= names.attributes
            if not UNTOLD.isdisjoint((*names.reads, *names.attributes)):
                self.reading.give_up()
            if is_installed(code.co_filename):
                self._read_values(code, scope)
            else:
                self._read_names(code, scope)
        noted = [] if is_installed(code.co_filename) else self.functions.get(id(code), [])
        for function, source in noted:
            self.walk_function(function, source)
        self.walk_namespaces()
        self._refuse_unrepeatable()
        self._counts[id(code)] = len(self.functions.get(id(code), ()))

    def _refuse_unrepeatable(self) -> None:
        """Refuse what no replay can repeat, if some code reads the attribute that it is."""
        for name, told in self.unrepeatable.items():
            if self.makes_names or name in self._named or name in self.attributes:
                places = [place_of_name(one, name) for one in self._entered.values()]
                with placed(next(filter(None, places), None)):
                    raise trace_error(told)

    def _find_function(self, code: types.CodeType) -> None:
        """Note functions that no walk has found, and that nothing in this capture has made."""
        is_found = id(code) in self.functions or not code.co_freevars
        if is_found or any(
            code is one for each in self._entered.values() for one in each.co_consts
        ):
            return
        for one in gc.get_referrers(code):
            if isinstance(one, types.FunctionType):
                self.note(one, self.bind(one))

    def _enter_special(self, frame: types.FrameType) -> None:
        code = frame.f_code
        if code in _READING:
            held = frame.f_locals["self"]
            self.walk(held, self.bind(held), getattr(held, "name", "os.environ"))
        elif code is _SEED and frame.f_locals["a"] is None:
            raise trace_error(UNSEEDED)
        elif code in UNREPEATABLE_CODES:
            self._call(frame.f_back, UNREPEATABLE_CODES[code])
        elif code in LOOKUP_CODES:
            name = frame.f_locals["name"]
            if isinstance(name, str) and name not in self.attributes:
                self.attributes.add(name)
                self.walk_namespaces()
                self._refuse_unrepeatable()
        elif code in _LOOKING:
            self.reading.give_up()
        elif code is _IMPORT:
            name, package = [frame.f_locals[one] for one in ("name", "package")]
            found = importlib.util.resolve_name(name, package)
            if found in sys.modules:
                self._note_module(found, sys.modules[found])
                self.handed.add(id(sys.modules[found]))
                self.walk_namespaces()

    def _note_module(self, name: str, module: types.ModuleType) -> None:
        """Note a module whose names somebody may read; guard that it is there under its own."""
        self.modules[id(module)] = module, module.__name__
        if is_users(module) and self.is_new("import", name):
            self.guard(f"{self.bind(sys.modules)}.get({name!r}) is not {self.bind(module)}")

    def _read_names(self, code: types.CodeType, scope: dict[str, Any]) -> None:
        names = names_in(code)
        if names.kind:
            with placed(place_of_name(code, names.kind)):
                raise trace_error(
                    f"{names.kind} is set, which a replay would not repeat; do so outside, or make "
                    "another object"
                )
        for path, offset in names.paths:
            value = scope.get(path[0])
            for name in path[1:]:
                if isinstance(value, types.ModuleType):
                    value = vars(value).get(name)
                    continue
                is_pythons = isinstance(value, type) and not is_users(value)
                value = getattr(value, name, None) if is_pythons else None
            if is_unrepeatable(value) and not is_called(code, offset, path[-1]):
                # Whether code of C calls it nobody sees.
                with placed(place_of_name(code, path[-1])):
                    raise trace_error(f"{'.'.join(path)} {DIFFERS}")
        self.attributes |= names.attributes
        self.makes_names |= names.makes_names
        modules = modules_in(names, scope)
        for name, module in modules.items():
            self._note_module(name, module)
        if names.makes_names:
            own = sys.modules.get(scope.get("__name__", "")) if "globals" in names.reads else None
            if own is not None:
                self.modules[id(own)] = own, own.__name__
            self.handed.update(map(id, (own, *modules.values())))
        self.watch_namespace(scope, "")
        for name in names.reads:
            if not self.is_new(scope, name):
                continue
            if name in scope:
                value, was_handed = scope[name], id(scope[name]) in self.handed
                self.walk_name(scope, name, "")
                if name not in names.handed and not was_handed:
                    # To read an attribute of a module is not to hand the module on.
                    self.handed.discard(id(value))
                continue
            self.guard(f"{name!r} in {self.bind(scope)}")
            known = vars(builtins).get(name, len)
            if not isinstance(known, types.BuiltinFunctionType | type):
                # Somebody has put it there.
                self.walk_value(known, f"{self.bind(vars(builtins))}[{name!r}]", name)
            if name in BY_NAME:
                scope[name] = self.watched[id(scope)].expected[name] = BY_NAME[name]

    def _read_values(self, code: types.CodeType, scope: dict[str, Any]) -> None:
        """Walk the plain values and arrays that a package names, of which the rest is its own."""
        named = {name: scope[name] for name in names_in(code).reads if name in scope}
        for name, value in named.items():
            is_value = isinstance(value, TensorBase | np.ndarray) or is_plain(value)
            if is_value and self.is_new(scope, name):
                self.walk(value, f"{self.bind(scope)}[{name!r}]", name)

    def _guard_what_ran(self) -> None:
        """Guard the methods that have run, and that names that were not there are not there."""
        self.reading.finish()
        self.where = ""
        asks = any("issubclass" in names_in(code).reads for code in self._entered.values())
        if ABCS.asked or asks or any(isinstance(one, abc.ABCMeta) for one in self.classes):
            # Somebody may register a class that it has not.
            token = f"{self.bind(abc.get_cache_token)}()"
            self.guard(f"{token} != {self.bind(abc.get_cache_token())}")
        for cls in self.classes:
            # It has the same bases, and no new name, which one of these or nobody had before.
            bases = f"{self.bind(cls)}.__mro__ is not {self.bind(cls.__mro__)}"
            self.guard(f"len({self.names_of(cls)}) != {len(vars(cls))} or {bases}")
        known = [pair for pairs in self.functions.values() for pair in pairs if is_users(pair[0])]
        for name in sorted(_TOLD & self._named):
            for one, source in (*[(cls, self.bind(cls)) for cls in self.classes], *known):
                self.guard(f"{source}.{name} != {self.bind(getattr(one, name))}")
        for code in self._entered:
            for owner, name in self.members.get(code, ()):
                self.guard_member(owner, name)
        for module in [one for one, _ in self.modules.values() if is_users(one)]:
            space, missing = self.bind(vars(module)), self.attributes - vars(module).keys()
            self.guard(f"not {space}.keys().isdisjoint({self.bind(missing)})")
            if self.makes_names and id(module) in self.handed and not is_of_a_package(module):
                self.guard(f"len({space}) != {len(vars(module))}")
        for cache, found, name, where in self.caches:
            if clear_of_tracers(cache, found):
                raise trace_error(
                    f"{where} keeps what it computes for a compiled function, which has no values "
                    "yet; call it outside, and pass what it returns"
                )
            self.guard(f"{self.bind(fixed_in)}({name}) != {self.bind(fixed_in(cache))}")
