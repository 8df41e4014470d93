"""The functions behind what can be called or read: methods, properties, decorated functions."""

from __future__ import annotations

import functools
import types
from collections.abc import Iterator
from typing import Any, ClassVar, get_origin

from tapetensor.checkpointing.places import attributes_of, cell_place
from tapetensor.pictures import Place
from tapetensor.pictures.places import is_users_module

# A generic class with its parameters looks up in the class what it has not itself.
_ALIASES = (types.GenericAlias, type(ClassVar[int]))
_WRAPPERS = (functools.partial, functools.cached_property, functools.partialmethod)


def functions_in(value: Any) -> Iterator[types.FunctionType]:
    """Yield the functions that may run where a value is called or read: those it wraps, too."""
    return (one for one in wrapped_in(value) if isinstance(one, types.FunctionType))


def wrapped_in(value: Any) -> Iterator[Any]:
    """Yield what can be called or read, and all that it wraps."""
    waiting, done = [value], set[int]()
    while waiting:
        one = waiting.pop()
        if one is None or id(one) in done:
            continue
        done.add(id(one))
        yield one
        waiting.append(
            (attributes_of(one) or {}).get("__wrapped__") if not isinstance(one, type) else None
        )
        if isinstance(one, types.FunctionType):
            if not is_users_module(one.__globals__.get("__name__")):
                # Python's own decorators close over what they decorate.
                held = [cell_place(cell).read() for cell in one.__closure__ or ()]
                waiting += [inner for inner in held if callable(inner)]
        elif isinstance(one, _ALIASES):
            waiting.append(get_origin(one))
        elif isinstance(one, property):
            waiting += [one.fget, one.fset, one.fdel]
        elif isinstance(one, staticmethod | classmethod | types.MethodType):
            waiting.append(one.__func__)
        elif isinstance(one, _WRAPPERS):
            waiting.append(one.func)
        elif isinstance(one, functools.singledispatchmethod):
            waiting += [one.func, one.dispatcher]


def place_of(function: Any) -> Place | None:
    """Return where what can be called is defined, if the user has done that."""
    methods = [getattr(type(function), name, None) for name in ("forward", "__call__")]
    for one in (found for value in (function, *methods) for found in functions_in(value)):
        if is_users_module(one.__globals__.get("__name__")):
            return Place(one.__code__.co_filename, one.__code__.co_firstlineno)
    return None
