"""The beginning of the generated source: how a call is recognized, and where its arrays are."""

from __future__ import annotations

import marshal
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

# The answer of a plan to a call that is not its own.
MISS: Final = object()
# What the user calls it has so many characters.
_LONG = 80

# `marshal` writes values of exactly these types, telling 2, 2.0, True, 0.0 and -0.0 apart.
_EXACT: frozenset[type] = frozenset({bool, int, float, complex, str, bytes, type(None)})


def named(where: str) -> str:
    """Return a name of the user's program as the source has it, without line breaks and so on."""
    return repr(where)[1:-1][:_LONG]


def tensors_of(where: str) -> str:
    """Return the names of the tensors that lead from the object where they are found."""
    return named(f"a tensor of {where.partition('.')[0]}")


def spelling(values: Iterable[Any]) -> object:
    """Return a key that is equal for equal series of plain values, with their types and order."""
    listed = [*values]
    if _EXACT.issuperset(map(type, listed)):
        # The second version of the format does not depend on which objects are shared.
        return marshal.dumps(listed, 2)
    return [_spelled(value) for value in listed]


def _spelled(value: Any) -> object:
    # What is not plain is walked besides.
    is_plain = value.__class__ in _EXACT or isinstance(value, np.generic | np.dtype | slice)
    return (value.__class__, repr(value)) if is_plain else value.__class__


def differs(value: Any, known: Any) -> bool:
    """Tell whether a plain value is another one than a known one, or of another type."""
    if value.__class__ is not known.__class__:
        return True
    # Others that are equal may differ, as 0.0 and -0.0, or decimals by their digits, and what is
    # the same may be unequal, as a NaN is to itself.
    is_exact = isinstance(known, int | str | bytes | np.integer | np.dtype)
    is_exact |= isinstance(known, float | np.floating) and bool(known == known != 0)
    return bool(value != known) if is_exact else repr(value) != repr(known)


class Guard(NamedTuple):
    """The source of a condition under which a call is of another kind, and what it looks at."""

    condition: str
    where: str


def recognizing(guards: Iterable[str | Guard]) -> list[str]:
    """Return the lines that leave a plan where a call is of another kind."""
    lines: list[str] = []
    end = "): return MISS"
    for one in guards:
        if isinstance(one, str):
            lines.append(one)
            continue
        # To parse one condition for several guards in a row takes less time.
        goes_on = lines[-1:] == [end]
        if goes_on:
            lines.pop()
        else:
            lines.append("if (")
        comment = one.where and f"  # {one.where}"
        lines += [f"    {'or ' if goes_on else ''}{one.condition}{comment}", end]
    # What is looked at may be lacking.
    return [
        "try:", *[f"    {line}" for line in lines],
        "except (AttributeError, LookupError, ValueError): return MISS",
    ]  # fmt: skip


def first_difference(guards: Sequence[str | Guard]) -> list[str]:
    """Return the lines that tell the position of the first guard that does not hold, or nothing."""
    return [
        f"if {one.condition}: return {place}" if isinstance(one, Guard) else one
        for place, one in enumerate(guards)
    ]


class GuardWriter:
    """Writes guards: lines that leave the plan where a call is of another kind."""

    def __init__(self, names: dict[str, Any]) -> None:
        self.names = names
        # The name of each object that has one, by its address.
        self._bound: dict[int, str] = {}
        # The guards, and lines that run between them.
        self.guards: list[str | Guard] = []
        # What the user calls what is guarded now.
        self.where = ""

    def bind(self, value: Any) -> str:
        """Return the name by which the source can refer to `value`."""
        name = self._bound.setdefault(id(value), f"k{len(self.names)}")
        self.names[name] = value
        return name

    def guard(self, condition: str) -> None:
        """Write down that a call for which the condition holds is of another kind, and where."""
        self.guards.append(Guard(condition, self.where))

    def guard_keys(self, keys: Iterable[Any], expression: str) -> None:
        """Write down that a dict or a set has to hold equal keys, types, order and all."""
        listed = [*keys]
        if all(key.__class__ is str for key in listed):
            known, kinds = self.bind(tuple(listed)), self.bind([str] * len(listed))
            self.guard(f"tuple({expression}) != {known} or [*map(type, {expression})] != {kinds}")
        else:
            self.guard(f"spelling({expression}) != {self.bind(spelling(listed))}")

    def guard_plain(self, value: Any, expression: str) -> None:
        """Write down that a plain value has to be equal, and of the same type."""
        # Mostly it is the very same.
        is_other = f"{expression} is not {self.bind(value)}"
        if value is None or isinstance(value, bool | np.bool_):
            self.guard(is_other)
        else:
            self.guard(f"{is_other} and differs({expression}, {self.bind(value)})")

    def local(self, expression: str) -> str:
        """Return a local variable of the source that holds `expression`."""
        if expression.isidentifier():
            return expression
        local = f"l{len(self.guards)}"
        self.guards.append(f"{local} = {expression}")
        return local
