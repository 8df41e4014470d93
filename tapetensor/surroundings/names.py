"""The names in code: globals that it reads and writes, attributes, modules that it imports."""

from __future__ import annotations

import dis
import re
import sys
import types
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple

from tapetensor.pictures import Place

_READS = frozenset({"LOAD_GLOBAL", "LOAD_NAME"})
_WRITES = frozenset({"STORE_GLOBAL", "DELETE_GLOBAL"})
_CONSTANTS = frozenset({"LOAD_CONST", "LOAD_SMALL_INT"})
# What says what an object is, or what a function does.
_KINDS = frozenset({"__bases__", "__class__", "__code__", "__defaults__", "__kwdefaults__"})
# An attribute in a text that may be formatted, as in ``"{0.rate}"``.
_FORMATTED = re.compile(r"\.([^\W\d]\w*)")


class Names(NamedTuple):
    """The names in code: globals, attributes, and modules, with how many packages above they are.

    Its kind is an attribute it sets that says what an object is; it is empty if it sets none.
    """

    reads: tuple[str, ...]
    writes: frozenset[str]
    attributes: frozenset[str]
    imports: tuple[tuple[str, int], ...]
    kind: str


# Of what is told to an instruction the lowest bits are no part of the position of a name.
_BITS = {"LOAD_GLOBAL": 1, "LOAD_ATTR": int(sys.version_info >= (3, 12)), "LOAD_SUPER_ATTR": 2}
_NAMED, _TOLD = frozenset(dis.hasname), frozenset(dis.hasconst)
_LONGER, _CACHE = dis.opmap["EXTENDED_ARG"], dis.opmap["CACHE"]


def instructions_of(code: types.CodeType) -> Iterator[tuple[str, Any]]:
    """Yield each instruction, and the name or constant that it has.

    The module ``dis`` tells more, and takes seven times as long.
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
            yield name, value
        argument = 0


@lru_cache(maxsize=4096)
def names_in(code: types.CodeType) -> Names:
    """Return the names that code looks up; functions that it makes have code of their own."""
    reads: dict[str, None] = {}
    writes, attributes = set[str](), set[str]()
    imports: list[tuple[str, int]] = []
    level, constant, kind = 0, None, ""
    for operation, value in instructions_of(code):
        if operation in _READS:
            reads[value] = None
        elif operation in _WRITES:
            writes.add(value)
        elif operation in _CONSTANTS:
            # How many packages above a module is looked for comes before its name.
            level = value if isinstance(value, int) else level
            constant = value
        elif operation == "MATCH_CLASS":
            # A pattern names attributes in a constant; those by position the class names.
            attributes.update(constant or (), ["__match_args__"])
        elif operation == "IMPORT_NAME":
            imports.append((value, level))
        elif dis.opmap[operation] in _NAMED and operation != "STORE_NAME":
            attributes.add(value)
            if operation in ("STORE_ATTR", "DELETE_ATTR") and value in _KINDS:
                kind = kind or value
    attributes |= attributes_in(code.co_consts)
    return Names(tuple(reads), frozenset(writes), frozenset(attributes), tuple(imports), kind)


class AllNames(NamedTuple):
    """The names in code and in the functions that are written inside it."""

    mentioned: frozenset[str]
    reads: frozenset[str]
    writes: frozenset[str]


@lru_cache(maxsize=4096)
def all_names_in(code: types.CodeType) -> AllNames:
    """Return the names in code, and in functions and classes that are written inside it."""
    own = names_in(code)
    found = AllNames(frozenset(code.co_names), frozenset(own.reads), own.writes)
    for constant in code.co_consts:
        if type(constant) is types.CodeType:
            inner = all_names_in(constant)
            found = AllNames(*[one | more for one, more in zip(found, inner, strict=True)])
    return found


def attributes_in(texts: Iterable[Any]) -> set[str]:
    """Return the attributes that texts have where they are formatted."""
    formatted = [one for one in texts if one.__class__ is str and "{" in one]
    return {name for text in formatted for name in _FORMATTED.findall(text)}


def place_of_name(code: types.CodeType, name: str) -> Place | None:
    """Return the first line on which code has a name, if it does."""
    found = [one.positions for one in dis.get_instructions(code) if one.argval == name]
    return next((Place(code.co_filename, one.lineno) for one in found if one and one.lineno), None)


def modules_in(names: Names, scope: dict[str, Any]) -> dict[str, types.ModuleType]:
    """Return the modules that code imports, as far as they are loaded."""
    package = scope.get("__package__") or ""
    found: list[str] = []
    for name, level in names.imports:
        base = package.rsplit(".", level - 1)[0] if level else ""
        parts = f"{base}.{name}".strip(".").split(".")
        found += [".".join(parts[:end]) for end in range(1, len(parts) + 1)]
        found += [f"{'.'.join(parts)}.{one}" for one in names.attributes]
    return {name: sys.modules[name] for name in found if name in sys.modules}
