"""What code names: globals, attributes, clocks and settings of the process."""

from __future__ import annotations

import _thread
import atexit
import builtins
import datetime
import decimal
import dis
import gc
import io
import locale
import logging
import os
import random
import re
import signal
import sys
import threading
import time
import traceback
import types
import warnings
import weakref
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from tapetensor.pictures import Place
from tapetensor.pictures.places import is_installed, is_users_module

_READS = frozenset({"LOAD_GLOBAL", "LOAD_NAME"})
_CONSTANTS = frozenset({"LOAD_CONST", "LOAD_SMALL_INT"})
_ATTRIBUTES = frozenset({"LOAD_ATTR", "LOAD_METHOD"})
# What looks up all names that there are.
_WHOLE = frozenset(
    {"globals", "vars", "dir", "eval", "exec", "__dict__", "getmembers", "resolve_name"}
)  # fmt: skip
# Code that names one of these may look up names that nobody sees. What `getattr` is given is seen.
_UNSEEN = _WHOLE | {"attrgetter", "methodcaller", "getattr_static", "__getattribute__"}
# What may do so where it has another name.
LOOKUPS = _UNSEEN | {"getattr", "hasattr", "setattr"}
# Code that names one of these reads or sets attributes in a way that their class is not told of, or
# sees what classes have, or which functions were called.
UNTOLD = (_WHOLE - {"globals"}) | {
    "__getattribute__", "__getstate__", "__setattr__", "__traceback__", "format_exc"
}  # fmt: skip
# An attribute in a text that may be formatted, as in ``"{0.rate}"``.
_FORMATTED = re.compile(r"\.([^\W\d]\w*)")
# What says what an object is, or what a function does: a replay would not set it again.
_KINDS = {"__bases__", "__class__", "__code__", "__defaults__", "__kwdefaults__"}
_NOCLOCKS = {"sleep", "mktime", "strptime"}
# What the next call may find otherwise, or has to do again: clocks, the process, its settings, and
# files. And threads, in which nobody sees what runs.
_OWNERS: dict[Any, frozenset[str]] = {
    _thread: frozenset({"start_joinable_thread", "start_new_thread"}),
    atexit: frozenset({"register", "unregister"}),
    builtins: frozenset({"input", "open"}),
    decimal: frozenset({"getcontext", "localcontext"}),
    gc: frozenset(
        {"disable", "enable", "freeze", "get_count", "get_debug", "get_objects", "get_referents",
         "get_referrers", "get_threshold", "isenabled", "set_debug", "set_threshold", "unfreeze"}
    ),
    locale: frozenset({"getlocale", "localeconv", "setlocale"}),
    logging: frozenset({"disable"}),
    np: frozenset(
        {"fromfile", "get_printoptions", "getbufsize", "geterr", "geterrcall", "set_printoptions",
         "setbufsize", "seterr", "seterrcall"}
    ),
    os: frozenset(
        {"access", "chdir", "chmod", "chown", "fork", "fstat", "getcwd", "getcwdb", "getloadavg",
         "getpid", "getppid", "getpriority", "getrandom", "kill", "killpg", "link", "listdir",
         "lstat", "mkdir", "mkfifo", "nice", "open", "posix_spawn", "read", "readlink",
         "remove", "rename", "replace", "rmdir", "scandir", "sched_getaffinity",
         "sched_setaffinity", "setpriority", "stat", "statvfs", "symlink", "system", "times",
         "truncate", "umask", "unlink", "urandom", "utime", "waitpid", "write"}
    ),
    signal: frozenset({"signal"}),
    sys: frozenset(
        {"_current_frames", "_getframe", "exc_info", "getallocatedblocks", "getprofile",
         "getrecursionlimit", "getrefcount", "getswitchinterval", "gettrace", "setrecursionlimit",
         "setswitchinterval"}
    ),
    threading: frozenset({"active_count", "current_thread", "enumerate"}),
    time: frozenset(vars(time)) - _NOCLOCKS,
    traceback: frozenset({"extract_stack", "format_stack"}),
    weakref: frozenset({"getweakrefcount", "getweakrefs"}),
}  # fmt: skip
_FOUND = [getattr(owner, name, None) for owner, names in _OWNERS.items() for name in names]
_UNREPEATABLE = frozenset(one for one in _FOUND if isinstance(one, types.BuiltinFunctionType))
# Those that are written in Python, by their code.
UNREPEATABLE_CODES = {one.__code__: one for one in _FOUND if isinstance(one, types.FunctionType)}
# The same in modules that few programs load.
_OF_MODULES = {
    "_csv": {
        "field_size_limit",
        "get_dialect",
        "list_dialects",
        "register_dialect",
        "unregister_dialect",
    },
    "_locale": {"localeconv", "setlocale"},
    "_posixsubprocess": {"fork_exec"},
    "_signal": {"alarm", "getitimer", "getsignal", "raise_signal", "setitimer", "signal"},
    "_socket": {"getaddrinfo", "gethostbyname", "gethostname"},
    "_uuid": {"generate_time_safe"},
    "resource": {"getrlimit", "getrusage", "setrlimit"},
    "select": {"select"},
}
_DATES = {"now", "today", "utcnow"}
_WRITES = {"write", "writelines"}
# The names of functions that may give another result, or have to do something, at every call.
UNREPEATABLE_NAMES = _DATES.union(
    _WRITES, ["cache_info", "getstate", "__subclasses__"], *_OF_MODULES.values(),
    [one.__name__ for one in _UNREPEATABLE],
)  # fmt: skip
# What is no such function: attributes of modules, by the names that they have there.
SETTINGS: dict[Any, frozenset[str]] = {
    np.random: frozenset({"get_state"}),
    sys: frozenset({"argv", "modules", "path", "stdin"}),
    threading: frozenset({"get_ident", "get_native_id"}),
    warnings: frozenset({"filters"}),
}


def is_of_a_package(owner: Any) -> bool:
    """Tell whether a module, or the module of a class, is that of an installed package."""
    module = owner if isinstance(owner, types.ModuleType) else sys.modules.get(owner.__module__)
    return is_installed(getattr(module, "__file__", None) or "")


class Names(NamedTuple):
    """The names in code.

    Attributes:
        reads: globals that it reads.
        attributes: attributes that it reads or sets.
        makes_names: whether it may look up others, which nobody sees.
        handed: globals that it hands on, or whose dict it reads, and not only their attributes.
        paths: globals, and attributes of them, that it may hand on rather than call them, and
            where it reads the last attribute.
        imports: modules that it imports, or may look up by a text, and how many packages above.
        kind: an attribute it sets that says what an object is; empty if it sets none.
    """

    reads: tuple[str, ...]
    attributes: frozenset[str]
    makes_names: bool
    handed: frozenset[str]
    paths: tuple[tuple[tuple[str, ...], int], ...]
    imports: tuple[tuple[str, int], ...]
    kind: str


# Of what is told to an instruction the lowest bits are no part of the position of a name.
_BITS = {"LOAD_GLOBAL": 1, "LOAD_ATTR": int(sys.version_info >= (3, 12)), "LOAD_SUPER_ATTR": 2}
_NAMED, _TOLD = frozenset(dis.hasname), frozenset(dis.hasconst)
_LONGER, _CACHE = dis.opmap["EXTENDED_ARG"], dis.opmap["CACHE"]


def instructions_of(code: types.CodeType) -> Iterator[tuple[int, str, int, Any]]:
    """Yield the offset, name and argument of each instruction, and the name or constant it has.

    The module ``dis`` tells more, and takes three times as long.
    """
    written, argument = code.co_code, 0
    for offset in range(0, len(written), 2):
        operation = written[offset]
        argument = argument << 8 | written[offset + 1]
        if operation == _LONGER:
            continue
        if operation != _CACHE:
            name = dis.opname[operation]
            value: Any = None
            if operation in _NAMED:
                value = code.co_names[argument >> _BITS.get(name, 0)]
            elif operation in _TOLD:
                value = code.co_consts[argument]
            elif name == "LOAD_SMALL_INT":
                value = argument
            yield offset, name, argument, value
        argument = 0


@lru_cache(maxsize=1024)
def names_in(code: types.CodeType) -> Names:
    """Return the names that code looks up; functions that it makes have code of their own."""
    reads: dict[str, None] = {}
    attributes: set[str] = set()
    imports: list[tuple[str, int]] = []
    makes_names = not _UNSEEN.isdisjoint(code.co_names)
    level = 0
    constant: Any = None
    loaded, handed = "", set[str]()
    path, paths = tuple[str, ...](), dict[int, tuple[str, ...]]()
    kind = ""
    for offset, operation, argument, value in instructions_of(code):
        before, path = path, ()
        is_read, is_attribute = operation in _READS, operation in _ATTRIBUTES
        if not is_attribute or value in ("__dict__", "__getattribute__"):
            handed.add(loaded)
        loaded = value if is_read else ""
        if is_read:
            reads[value] = None
            is_to_be_called = operation == "LOAD_GLOBAL" and argument & 1
            path = () if is_to_be_called else (value,)
        elif operation in _CONSTANTS:
            # How many packages above a module is looked for comes before its name.
            level = value if isinstance(value, int) else level
        elif dis.opmap[operation] in _NAMED:
            attributes.add(value)
            if is_attribute and before:
                path = (*before, value)
                paths.popitem()
            elif operation in ("STORE_ATTR", "DELETE_ATTR") and value in _KINDS:
                kind = kind or value
            elif operation == "IMPORT_NAME":
                imports.append((value, level))
        elif operation == "MATCH_CLASS":
            # A pattern names attributes in a constant; those by position the class names.
            attributes.update(constant, ["__match_args__"])
            makes_names |= bool(argument)
        if path:
            paths[offset] = path
        constant = value
    consts = [one for one in code.co_consts if isinstance(one, str)]
    attributes |= attributes_in(consts)
    if makes_names:
        attributes.update(consts)
    if "globals" in reads:
        reads.update(dict.fromkeys(consts))
    if "__import__" in code.co_names:
        # It may look for a module by a text; what `import_module` looks for is seen when it runs.
        imports += [(text, 0) for text in consts]
    return Names(
        tuple(reads),
        frozenset(attributes),
        makes_names,
        frozenset(handed),
        tuple([(path, offset) for offset, path in paths.items()]),
        tuple(imports),
        kind,
    )


def attributes_in(texts: Iterable[Any]) -> set[str]:
    """Return the attributes that texts have where they are formatted."""
    formatted = [one for one in texts if one.__class__ is str and "{" in one]
    return {name for text in formatted for name in _FORMATTED.findall(text)}


@lru_cache(maxsize=16)
def _instructions(code: types.CodeType) -> list[dis.Instruction]:
    return [*dis.get_instructions(code)]


@lru_cache(maxsize=1024)
def name_called(code: types.CodeType, offset: int) -> str:
    """Return the attribute that a place in code calls, as in ``np.zeros(3)``; else nothing."""
    before = [one for one in _instructions(code) if one.offset <= offset]
    whole = before[-1].positions
    if whole is None or whole.end_lineno is None or whole.end_col_offset is None:
        # Python was told to keep no columns.
        return ""
    called, until = "", (0, 0)
    for one in before:
        # What is called stands at the beginning of the call, and ends before its arguments.
        at = one.positions
        if at is None or (at.lineno, at.col_offset) != (whole.lineno, whole.col_offset):
            continue
        end = at.end_lineno or 0, at.end_col_offset or 0
        if until < end < (whole.end_lineno, whole.end_col_offset):
            called, until = (one.argval if one.opname in _ATTRIBUTES else ""), end
    return called


@lru_cache(maxsize=1024)
def is_called(code: types.CodeType, offset: int, name: str) -> bool:
    """Tell whether a place in code reads an attribute of a name only to call it."""
    read = [one for one in _instructions(code) if one.offset <= offset][-1]
    return read.opname in _ATTRIBUTES and any(
        one.opname.startswith("CALL")
        and _begin(one) == _begin(read)
        and name_called(code, one.offset) == read.argval == name
        for one in _instructions(code)
        if one.offset > offset
    )


def _begin(one: dis.Instruction) -> tuple[int | None, int | None] | None:
    """Return where the text of an instruction begins, if Python has kept that."""
    at = one.positions
    return None if at is None else (at.lineno, at.col_offset)


def is_operator(frame: types.FrameType | None) -> bool:
    """Tell whether a frame computes with an operator at the moment, and calls no function."""
    return frame is not None and dis.opname[frame.f_code.co_code[frame.f_lasti]] == "BINARY_OP"


def may_be_given_dots(frame: types.FrameType | None) -> bool:
    """Tell whether a frame may be calling with ``out=...``, which numpy tells nobody of."""
    if frame is None:
        return False
    code, held = frame.f_code, frame.f_locals.values()
    if any(isinstance(one, dict) and one.get("out") is ... for one in held):
        return True
    has_dots = any(one is ... for one in (*code.co_consts, *held))
    return has_dots and "out" in _names_passed(code, frame.f_lasti)


def _names_passed(code: types.CodeType, offset: int) -> tuple[str, ...]:
    """Return the names of the arguments that a call passes by name."""
    before = [one for one in dis.get_instructions(code) if one.offset <= offset]
    # They are a constant, which is told last before the call.
    told = [one.arg for one in before[-3:-1] if one.opname in ("KW_NAMES", "LOAD_CONST")]
    names = code.co_consts[told[-1]] if told and told[-1] is not None else ()
    return names if isinstance(names, tuple) else ()


def is_unrepeatable(value: Any) -> bool:
    """Tell whether a function of C may give another result, or has to act, at every call."""
    if not isinstance(value, types.BuiltinFunctionType):
        return False
    owner = value.__self__
    is_date = isinstance(owner, type) and issubclass(owner, datetime.date)
    if value.__name__ in _WRITES and isinstance(owner, io.IOBase):
        # What is told to people, or kept in memory, is no file.
        is_told = owner in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__)
        return not (is_told or isinstance(owner, io.StringIO | io.BytesIO))
    if value.__name__ == "getstate":
        return isinstance(owner, random.Random)
    if value.__name__ == "__subclasses__":
        return isinstance(owner, type) and is_users_module(owner.__module__)
    is_other = is_date if value.__name__ in _DATES else value.__name__ == "cache_info"
    is_other |= value.__name__ in _OF_MODULES.get(value.__module__ or "", ())
    return is_other or value in _UNREPEATABLE


def place_of_name(code: types.CodeType, name: str) -> Place | None:
    """Return the first line on which code reads an attribute, if it does."""
    found = [one.positions for one in dis.get_instructions(code) if one.argval == name]
    return next((Place(code.co_filename, one.lineno) for one in found if one and one.lineno), None)


def modules_in(names: Names, scope: dict[str, Any]) -> dict[str, types.ModuleType]:
    """Return the modules that code imports, or looks up by a text, as far as they are loaded."""
    package = scope.get("__package__") or ""
    found: list[str] = []
    for name, level in names.imports:
        base = package.rsplit(".", level - 1)[0] if level else ""
        parts = f"{base}.{name}".strip(".").split(".")
        found += [".".join(parts[:end]) for end in range(1, len(parts) + 1)]
        found += [f"{'.'.join(parts)}.{one}" for one in names.attributes]
    return {name: sys.modules[name] for name in found if name in sys.modules}
