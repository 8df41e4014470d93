"""What code names: globals, attributes and clocks."""

from __future__ import annotations

import datetime
import dis
import os
import sys
import sysconfig
import time
import types
from functools import lru_cache
from typing import Any, NamedTuple

_READS = frozenset({"LOAD_GLOBAL", "LOAD_NAME"})
_CONSTANTS = frozenset({"LOAD_CONST", "LOAD_SMALL_INT"})
_ATTRIBUTES = frozenset({"LOAD_ATTR", "LOAD_METHOD"})
# Code that names one of these may look for a name that is the text of one of its constants.
_DYNAMIC = frozenset({"getattr", "hasattr", "setattr", "globals", "vars", "eval", "exec"})
_NO_CLOCKS = {"sleep", "mktime", "strptime", "strftime"}
_CLOCKS: dict[Any, frozenset[str]] = {
    time: frozenset(
        name
        for name, one in vars(time).items()
        if isinstance(one, types.BuiltinFunctionType) and name not in _NO_CLOCKS
    ),
    datetime.datetime: frozenset({"now", "utcnow", "today"}),
    datetime.date: frozenset({"today"}),
    os: frozenset({"urandom", "getpid"}),
}


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
    """

    reads: tuple[str, ...]
    attributes: frozenset[str]
    texts: frozenset[str]
    is_dynamic: bool
    imports: tuple[tuple[str, int], ...]
    chains: tuple[tuple[int, str, str], ...]


@lru_cache(maxsize=1024)
def names_in(code: types.CodeType) -> Names:
    """Return the names that code looks up; functions that it makes have code of their own."""
    reads: dict[str, None] = {}
    chains: list[tuple[int, str, str]] = []
    imports: list[tuple[str, int]] = []
    line, before, level = code.co_firstlineno, "", 0
    for one in dis.get_instructions(code):
        line = (one.positions.lineno if one.positions is not None else None) or line
        name = one.argval if isinstance(one.argval, str) else ""
        if one.opname in _READS:
            reads[name] = None
            chains.append((line, name, ""))
        elif one.opname in _ATTRIBUTES:
            chains.append((line, before, name))
        elif one.opname == "IMPORT_NAME":
            imports.append((name, level))
        if isinstance(one.argval, int):
            # How many packages above a module is looked for comes before its name.
            level = one.argval if one.opname in _CONSTANTS else level
        before = name
    texts = [one for one in code.co_consts if isinstance(one, str) and one.isidentifier()]
    return Names(
        tuple(reads),
        frozenset(code.co_names) - reads.keys(),
        frozenset(texts if _DYNAMIC & reads.keys() else ()),
        bool(_DYNAMIC & reads.keys()),
        tuple(imports),
        tuple([one for one in chains if one[2] in _ALL or not one[2]]),
    )


_ALL = frozenset().union(*_CLOCKS.values())
_BY_NAME: dict[str, Any] = {
    "time": time, "datetime": datetime.datetime, "date": datetime.date, "os": os,
}  # fmt: skip
_FUNCTIONS = {id(vars(time)[name]): f"time.{name}" for name in _CLOCKS[time]} | {
    id(os.urandom): "os.urandom"
}


def modules_in(names: Names, scope: dict[str, Any]) -> list[types.ModuleType]:
    """Return the modules that code imports, as far as they are loaded."""
    package = scope.get("__package__") or ""
    found = []
    for name, level in names.imports:
        base = package.rsplit(".", level - 1)[0] if level else ""
        parts = f"{base}.{name}".strip(".").split(".")
        found += [sys.modules.get(".".join(parts[:end])) for end in range(1, len(parts) + 1)]
        prefix = ".".join(parts)
        found += [sys.modules.get(f"{prefix}.{one}") for one in names.attributes]
    return [one for one in found if one is not None]


def lines_of_clocks(names: Names, scope: dict[str, Any]) -> dict[int, str]:
    """Return the lines that read a clock, or what else is another value at every call."""
    found: dict[int, str] = {}
    for line, base, name in names.chains:
        held = scope.get(base, _BY_NAME.get(base))
        if name and held is datetime:
            held = _BY_NAME.get(base)
        if not name and id(held) in _FUNCTIONS:
            found[line] = _FUNCTIONS[id(held)]
        elif name and isinstance(held, type | types.ModuleType) and name in _CLOCKS.get(held, ()):
            found[line] = f"{base}.{name}"
    return found
