"""What tells the kind of an object, as it answers while a function is captured."""

from __future__ import annotations

import abc
from collections.abc import Iterator
from functools import wraps
from types import SimpleNamespace, UnionType
from typing import Any

import numpy as np
from typing_extensions import override

from tapetensor.arrays.stand_ins import Captured
from tapetensor.compiler.trace.number import dummy, sum_of


class _TypeOf(type):
    """The class of a subclass of `type` that knows what stands for an array or a number."""

    @override
    def __call__(cls, *args: Any, **options: Any) -> Any:
        """Return the class of an object, as programs see it; with more arguments, a new class."""
        if cls is not TYPE:
            return super().__call__(*args, **options)
        is_stand_in = len(args) == 1 and isinstance(args[0], Captured | np.random.Generator)
        made = args[0].__class__ if is_stand_in else type(*args, **options)
        return TYPE if made in (type, _TypeOf) else made

    def __getitem__(cls, item: Any) -> Any:
        """Return the type of some classes, to annotate with."""
        return type[item]

    @override
    def __eq__(cls, other: object) -> bool:
        return other is cls or (cls is TYPE and other is type)

    @override
    def __hash__(cls) -> int:
        return hash(type) if cls is TYPE else super().__hash__()

    @override
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, type) if cls is TYPE else super().__instancecheck__(instance)

    @override
    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, type) if cls is TYPE else super().__subclasscheck__(subclass)


# Whether a function that is captured has asked for classes of `abc`, of which somebody may have
# further ones registered.
ABCS = SimpleNamespace(asked=False)
TYPE: Any = _TypeOf("type", (type,), {"__module__": "builtins"})


@wraps(isinstance)
def _is_instance(value: Any, kinds: Any) -> bool:
    if any(isinstance(one, abc.ABCMeta) for one in _all_of(kinds)):
        ABCS.asked = True
    # What stands for a scalar has a length to classes that ask for one.
    return isinstance(dummy(value), kinds)


def _all_of(kinds: Any) -> Iterator[Any]:
    """Yield the classes in a nest of tuples and unions."""
    inner = kinds.__args__ if isinstance(kinds, UnionType) else kinds
    if isinstance(inner, tuple):
        for one in inner:
            yield from _all_of(one)
    else:
        yield kinds


@wraps(sum)
def _sum(values: Any, /, start: Any = 0) -> Any:
    return sum_of((start, *values))


@wraps(getattr)
def _get_attribute(value: Any, name: str, *default: Any) -> Any:
    is_missing = default and isinstance(value, Captured) and not hasattr(dummy(value), name)
    return default[0] if is_missing else getattr(value, name, *default)


@wraps(hasattr)
def _has_attribute(value: Any, name: str) -> bool:
    return hasattr(dummy(value), name)


_PAIRS: list[tuple[Any, Any]] = [
    (type, TYPE),
    (isinstance, _is_instance),
    (getattr, _get_attribute),
    (hasattr, _has_attribute),
    (sum, _sum),
]
# What looks up an attribute by a text, of which the local variable `name` tells.
LOOKUP_CODES = {other.__code__ for one, other in _PAIRS if one in (getattr, hasattr)}
# What stands for a built-in function, by its name and by its address, and the function behind it.
BY_NAME: dict[str, Any] = {one.__name__: other for one, other in _PAIRS}
BY_ID: dict[int, Any] = {id(one): other for one, other in _PAIRS}
BEHIND: dict[int, Any] = {id(other): one for one, other in _PAIRS}
