"""What code names: globals, attributes, clocks and settings of the process."""

from __future__ import annotations

import datetime
import decimal
import dis
import gc
import glob
import locale
import os
import sys
import sysconfig
import threading
import time
import types
import warnings
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

_HANDED_ON = "..."
_READS = frozenset({"LOAD_GLOBAL", "LOAD_NAME"})
_CONSTANTS = frozenset({"LOAD_CONST", "LOAD_SMALL_INT"})
_ATTRIBUTES = frozenset({"LOAD_ATTR", "LOAD_METHOD"})
# Code that names one of these may look for a name that is the text of one of its constants.
_DYNAMIC = frozenset(
    {"getattr", "hasattr", "setattr", "globals", "vars", "eval", "exec", "__dict__", "attrgetter",
     "methodcaller", "__getattribute__"}
)  # fmt: skip
# Code that names one of these may look for a module by a text.
_IMPORTING = frozenset({"modules", "import_module", "__import__"})
_NOCLOCKS = {"sleep", "mktime", "strptime"}
CLOCKS: dict[Any, frozenset[str]] = {
    time: frozenset(
        name
        for name, one in vars(time).items()
        if isinstance(one, types.BuiltinFunctionType) and name not in _NOCLOCKS
    ),
    datetime.datetime: frozenset({"now", "utcnow", "today"}),
    datetime.date: frozenset({"today"}),
    os: frozenset({"urandom", "getpid"}),
}
# What the process, its files and its settings are like, which the next call may find otherwise.
_SETTINGS: dict[Any, frozenset[str]] = {
    decimal: frozenset({"getcontext", "localcontext"}),
    gc: frozenset({"get_count", "get_debug", "get_objects", "get_threshold", "isenabled"}),
    glob: frozenset({"glob", "iglob"}),
    locale: frozenset({"getlocale", "localeconv", "setlocale"}),
    np: frozenset({"get_printoptions", "getbufsize", "geterr", "geterrcall"}),
    np.random: frozenset({"get_state"}),
    os: frozenset(
        {"access", "getcwd", "getcwdb", "getloadavg", "getppid", "listdir", "lstat", "scandir",
         "stat", "times", "walk"}
    ),
    os.path: frozenset(
        {"abspath", "exists", "getatime", "getctime", "getmtime", "getsize", "isdir", "isfile",
         "islink", "lexists", "realpath"}
    ),
    sys: frozenset(
        {"argv", "getallocatedblocks", "getrecursionlimit", "getrefcount", "getswitchinterval",
         "modules", "path", "stdin"}
    ),
    threading: frozenset({"active_count", "enumerate"}),
    warnings: frozenset({"filters"}),
}  # fmt: skip


_INSTALLED = tuple({sysconfig.get_path(one) for one in ("purelib", "platlib")})


def is_installed(code: types.CodeType) -> bool:
    """Tell whether code is that of an installed package, and not of the user's own project."""
    return code.co_filename.startswith(_INSTALLED)


class Names(NamedTuple):
    """The names in code.

    Attributes:
        reads: globals that it reads.
        attributes: attributes that it reads or sets.
        texts: its constants that could be names, if it may look up names that are made.
        is_dynamic: whether it may do so.
        imports: modules that it imports.
        chains: what is read as an attribute or a global, with the line: ``(line, "time", "time")``.
        modules: texts that could name modules, if it may look some up; None if it does not.
    """

    reads: tuple[str, ...]
    attributes: frozenset[str]
    texts: frozenset[str]
    is_dynamic: bool
    imports: tuple[tuple[str, int], ...]
    chains: tuple[tuple[int, str, str], ...]
    modules: tuple[str, ...] | None


@lru_cache(maxsize=1024)
def names_in(code: types.CodeType) -> Names:
    """Return the names that code looks up; functions that it makes have code of their own."""
    reads: dict[str, None] = {}
    attributes: set[str] = set()
    chains: list[tuple[int, str, str]] = []
    imports: list[tuple[str, int]] = []
    is_dynamic = bool(_DYNAMIC.intersection(code.co_names))
    line, before, level = code.co_firstlineno, "", 0
    constant: Any = None
    for one in dis.get_instructions(code):
        line = (one.positions.lineno if one.positions is not None else None) or line
        name = one.argval if isinstance(one.argval, str) else ""
        if before in reads and one.opname not in _ATTRIBUTES:
            # It is handed on, to ``getattr``, say.
            chains.append((line, before, _HANDED_ON))
        if one.opcode in dis.hasname and one.opname not in _READS:
            attributes.add(name)
        if one.opname in _READS:
            reads[name] = None
            chains.append((line, name, ""))
        elif one.opname in _ATTRIBUTES or one.opname == "IMPORT_FROM":
            chains.append((line, before, name))
        elif one.opname == "IMPORT_NAME":
            imports.append((name, level))
        elif one.opname == "MATCH_CLASS":
            # A pattern names attributes in a constant; those by position the class names.
            attributes.update(constant)
            is_dynamic |= bool(one.arg)
        if isinstance(one.argval, int):
            # How many packages above a module is looked for comes before its name.
            level = one.argval if one.opname in _CONSTANTS else level
        before, constant = name, one.argval
    consts = [one for one in code.co_consts if isinstance(one, str)]
    texts = [one for one in consts if one.isidentifier()]
    named = {*code.co_names}
    return Names(
        tuple(reads),
        frozenset(attributes),
        frozenset(texts if is_dynamic else ()),
        is_dynamic,
        tuple(imports),
        tuple([one for one in chains if one[2] in _ALL or one[2] in ("", _HANDED_ON)]),
        tuple(consts) if _IMPORTING & named else None,
    )


@lru_cache(maxsize=1024)
def name_called(code: types.CodeType, offset: int) -> str:
    """Return the attribute that a place in code calls, as in ``np.zeros(3)``; else nothing."""
    before = [one for one in dis.get_instructions(code) if one.offset <= offset]
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


_NAMES_OF_CLOCKS = frozenset().union(*CLOCKS.values())
_ALL = _NAMES_OF_CLOCKS.union(*_SETTINGS.values())
_CLOCKS = frozenset(getattr(owner, name) for owner, names in CLOCKS.items() for name in names)
_READ = frozenset(
    {open, input}
    | {
        one
        for owner, names in _SETTINGS.items()
        for name in names
        if isinstance(one := getattr(owner, name, None), types.FunctionType | type(len))
    }
)
_BY_NAME: dict[str, Any] = {
    "time": time, "datetime": datetime.datetime, "date": datetime.date, "os": os,
}  # fmt: skip
# What code reads as a part of something else, or imports itself.
_WITHIN: dict[str, Any] = {
    **{owner.__name__: owner for owner in _SETTINGS},
    "np": np,
    "path": os.path,
    "random": np.random,
    "open": open,
    "input": input,
}


def is_clock(value: Any) -> bool:
    """Tell whether a value is a function of Python's that gives another result at every call."""
    return isinstance(value, types.BuiltinFunctionType) and value in _CLOCKS


def _is_setting(value: Any) -> bool:
    """Tell whether a value is a function that tells what the process or its files are like."""
    return isinstance(value, types.BuiltinFunctionType | types.FunctionType) and value in _READ


def modules_in(names: Names, scope: dict[str, Any]) -> dict[str, types.ModuleType]:
    """Return the modules that code imports, or looks up by a text, as far as they are loaded."""
    package = scope.get("__package__") or ""
    found = [*names.modules, scope.get("__name__", "")] if names.modules is not None else []
    for name, level in names.imports:
        base = package.rsplit(".", level - 1)[0] if level else ""
        parts = f"{base}.{name}".strip(".").split(".")
        found += [".".join(parts[:end]) for end in range(1, len(parts) + 1)]
        found += [f"{'.'.join(parts)}.{one}" for one in names.attributes]
    return {name: sys.modules[name] for name in found if name in sys.modules}


def lines_of_clocks(names: Names, scope: dict[str, Any], *, is_anywhere: bool) -> dict[int, str]:
    """Return the lines that read a clock, or what else may be another value at every call.

    Args:
        names: the names in some code.
        scope: the globals of that.
        is_anywhere: whether objects may lead to such modules, too, under any name.
    """
    found: dict[int, str] = {}
    is_anywhere |= any(name in _BY_NAME for name, _ in names.imports)
    for line, base, name in names.chains:
        held: Any = scope.get(base, _BY_NAME.get(base))
        if name and held is datetime:
            held = _BY_NAME.get(base)
        read = CLOCKS.get(held, ()) if isinstance(held, type | types.ModuleType) else ()
        is_unknown = held is None
        # Python's `random` stands under the name by which `np.random` is read.
        is_other = isinstance(held, types.ModuleType) and name not in vars(held)
        held = _WITHIN.get(base) if is_unknown or (name and is_other) else held
        settings = _SETTINGS.get(held, ()) if isinstance(held, types.ModuleType) else ()
        if name == _HANDED_ON:
            is_one = bool(read) and names.is_dynamic
        elif name:
            is_hidden = is_unknown and is_anywhere and name in _NAMES_OF_CLOCKS
            is_one = name in read or name in settings or is_hidden
        else:
            is_one = is_clock(held) or _is_setting(held)
        if is_one:
            found[line] = f"{base}.{name}" if name else held.__qualname__
    return found
