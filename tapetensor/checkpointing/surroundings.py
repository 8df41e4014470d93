"""What a function reaches beside its arguments, so that it can be run as it was run before."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from tapetensor.tensor.tensor import Tensor

# What holds a value, the name of the attribute, and the value.
_Held: TypeAlias = tuple[object, str, object]


class Surroundings:
    """The tensors, the attributes of modules and the generators that can be found from a function.

    As they are now: `as_before` brings them back for a while. Nothing is copied but the states of
    the generators, for an array that somebody holds is not written to.

    Args:
        f: the function, a method or a module.
        rng: a generator to hold beside those that are found.
    """

    __slots__ = ("_held",)

    def __init__(self, f: Callable[..., Any], rng: np.random.Generator | None) -> None:
        self._held: list[_Held] = []
        for value in _reachable([f, rng]):
            if isinstance(value, Tensor):
                self._held.append((value, "array", value.array))
            elif isinstance(value, np.random.Generator):
                bits = value.bit_generator
                self._held.append((bits, "state", bits.state))
            elif _is_module(value):
                self._held += [
                    (value, name, one)
                    for name, one in vars(value).items()
                    if isinstance(one, Tensor)
                ]

    @contextmanager
    def as_before(self) -> Iterator[None]:
        """Bring back what there was; at the end, what there is now."""
        now = [(owner, name, getattr(owner, name)) for owner, name, _ in self._held]
        _set(self._held)
        try:
            yield
        finally:
            _set(now)


def _set(held: list[_Held]) -> None:
    for owner, name, value in held:
        # A module that has a say in what is assigned to it is not asked.
        object.__setattr__(owner, name, value)


def _reachable(roots: list[object]) -> Iterator[object]:
    """Yield all that can be reached from `roots` through modules, containers and closures, once."""
    waiting, seen = list(roots), set()
    while waiting:
        value = waiting.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        yield value
        waiting += _within(value)


def _within(value: Any) -> list[Any]:
    if isinstance(value, list | tuple | set | frozenset):
        return list(value)
    if isinstance(value, Mapping):
        return list(value.values())
    if isinstance(value, partial):
        return [value.func, *value.args, *value.keywords.values()]
    if isinstance(value, types.MethodType):
        return [value.__self__, value.__func__]
    if isinstance(value, types.FunctionType):
        # What the library's own functions name are kernels and classes.
        own = (value.__module__ or "").partition(".")[0] == "tapetensor"
        given = [*(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values()]
        return [] if own else [*given, *_closure(value), *_globals(value, value.__code__)]
    return list(vars(value).values()) if _is_module(value) else []


def _closure(function: types.FunctionType) -> Iterator[Any]:
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:
            # A name that is bound later, if at all.
            continue


def _globals(function: types.FunctionType, code: types.CodeType) -> Iterator[Any]:
    """Yield the globals that a function names, also in functions written inside it."""
    for name in code.co_names:
        if name in function.__globals__:
            yield function.__globals__[name]
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _globals(function, constant)


def _is_module(value: Any) -> bool:
    return callable(getattr(type(value), "parameters", None)) and hasattr(value, "__dict__")
