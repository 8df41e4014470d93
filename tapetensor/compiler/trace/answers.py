"""Built-in functions, as they answer for arrays and numbers while a function is captured."""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterator
from functools import wraps
from types import UnionType
from typing import Any

import numpy as np
from typing_extensions import override

from tapetensor.arrays.stand_ins import Captured
from tapetensor.compiler.trace.number import dummy
from tapetensor.compiler.trace.placeholder import value_of
from tapetensor.compiler.trace.refusals import trace_error


class _TypeOf(type):
    """The class of a subclass of `type` that knows what stands for an array or a number."""

    @override
    def __call__(cls, *args: Any, **options: Any) -> Any:
        """Return the class of an object, as programs see it."""
        if cls is not TYPE:
            return super().__call__(*args, **options)
        if len(args) != 1 or options:
            raise trace_error(
                "type(...) of three arguments makes another class at every call; make it outside"
            )
        is_stand_in = isinstance(args[0], Captured | np.random.Generator)
        made = args[0].__class__ if is_stand_in else type(value_of(args[0]))
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


TYPE: Any = _TypeOf("type", (type,), {"__module__": "builtins"})
# Those who are told of attributes that are looked up by a text, and of classes of `abc` that are
# asked for: what runs is captured by the last of them.
LISTENERS: list[tuple[Callable[[str], None], Callable[[], None]]] = []


@wraps(isinstance)
def _is_instance(value: Any, kinds: Any) -> bool:
    kinds = tuple(map(value_of, _all_of(kinds)))
    if LISTENERS and any(isinstance(one, abc.ABCMeta) for one in kinds):
        LISTENERS[-1][1]()
    # What stands for a scalar has a length to classes that ask for one.
    return isinstance(dummy(value_of(value)), kinds)


@wraps(issubclass)
def _is_subclass(cls: Any, kinds: Any) -> bool:
    kinds = tuple(map(value_of, _all_of(kinds)))
    if LISTENERS and any(isinstance(one, abc.ABCMeta) for one in kinds):
        LISTENERS[-1][1]()
    return issubclass(value_of(cls), kinds)


def _all_of(kinds: Any) -> Iterator[Any]:
    """Yield the classes in a nest of tuples and unions."""
    inner = kinds.__args__ if isinstance(kinds, UnionType) else kinds
    if isinstance(inner, tuple):
        for one in inner:
            yield from _all_of(one)
    else:
        yield kinds


def _by_text(name: Any) -> None:
    if LISTENERS and isinstance(name, str):
        LISTENERS[-1][0](name)


@wraps(getattr)
def _get_attribute(value: Any, name: str, *default: Any) -> Any:
    _by_text(name)
    is_missing = default and isinstance(value, Captured) and not hasattr(dummy(value), name)
    return default[0] if is_missing else getattr(value, name, *default)


@wraps(hasattr)
def _has_attribute(value: Any, name: str) -> bool:
    _by_text(name)
    return hasattr(dummy(value), name)


@wraps(setattr)
def _set_attribute(value: Any, name: str, new: Any) -> None:
    _by_text(name)
    setattr(value, name, new)


_PAIRS: list[tuple[Any, Any]] = [
    (type, TYPE),
    (isinstance, _is_instance),
    (issubclass, _is_subclass),
    (getattr, _get_attribute),
    (hasattr, _has_attribute),
    (setattr, _set_attribute),
]
# What stands for a built-in function, by its name and by its address.
BY_NAME: dict[str, Any] = {one.__name__: other for one, other in _PAIRS}
BY_ID: dict[int, Any] = {id(one): other for one, other in _PAIRS}
