"""Functions of Python's and numpy's own, as they answer for what is captured."""

from __future__ import annotations

import abc
import types
from collections.abc import Callable, Collection, Iterator
from functools import partial, wraps
from threading import get_ident
from types import BuiltinFunctionType, UnionType
from typing import Any

import numpy as np
from typing_extensions import override

from tapetensor.arrays.stand_ins import Captured
from tapetensor.compiler.trace.closed_list import Trusted, cure_for, is_refused, trusted_module
from tapetensor.compiler.trace.node import found_in
from tapetensor.compiler.trace.number import NumberTracer, dummy
from tapetensor.compiler.trace.refusals import Placeholder, trace_error, value_of
from tapetensor.compiler.trace.tracer import ArrayTracer
from tapetensor.tensor.base import TensorBase


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
    # What stands for a scalar has a length to classes that ask for one.
    return isinstance(dummy(value_of(value)), _classes(kinds))


@wraps(issubclass)
def _is_subclass(cls: Any, kinds: Any) -> bool:
    return issubclass(value_of(cls), _classes(kinds))


def _classes(kinds: Any) -> tuple[Any, ...]:
    """Return the classes that an object is compared with; tell of those of `abc`."""
    classes = tuple(map(value_of, _all_of(kinds)))
    if LISTENERS and any(isinstance(one, abc.ABCMeta) for one in classes):
        LISTENERS[-1][1]()
    return classes


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


# These give an array as it is, or a copy, or one in an order of memory.
_CONVERSIONS = (np.array, np.asanyarray, np.asarray, np.ascontiguousarray, np.asfortranarray)


def converting(value: Any) -> Any:
    """Return what stands for one of numpy's functions that ask their arguments for values.

    Those that make an array of anything know what is captured; others refuse it.
    """
    if any(value is one for one in _CONVERSIONS):
        return partial(_converted, value)
    is_c = isinstance(value, BuiltinFunctionType) and value.__module__ == "numpy"
    return partial(_of_known, value) if is_c else value


def _of_known(function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    if any(True for _ in found_in((args, options), Captured)):  # type: ignore[type-abstract]  # found
        raise trace_error(
            f"np.{function.__name__} reads the values of its arguments; call it outside, on what "
            "the function returns"
        )
    return function(*args, **options)


def _converted(function: Callable[..., Any], given: Any, dtype: Any = None, **options: Any) -> Any:
    """Return an array of tracers, of tensors, or of what the function knows."""
    nest = _with_arrays(given)
    if not any(True for _ in found_in(nest, Captured)):  # type: ignore[type-abstract]  # to be found
        return function(given, dtype, **options)
    made = _joined(nest)
    if function in (np.ascontiguousarray, np.asfortranarray):
        made = np.atleast_1d(made)
    wanted = made.dtype if dtype is None else np.dtype(dtype)
    is_exact = np.can_cast(made.dtype, wanted) or wanted.kind == made.dtype.kind == "f"
    if options.get("copy") is False or not is_exact:
        raise trace_error(
            f"np.{function.__name__} of what is computed gives an array of its dtype; write "
            "np.stack([...]).astype(dtype)"
        )
    if dtype is not None:
        made = made.astype(dtype, copy=False)
    return made.copy() if function is np.array and made is nest else made


def _with_arrays(value: Any) -> Any:
    if isinstance(value, TensorBase):
        return value.numpy()
    if value.__class__ in (list, tuple):
        return [_with_arrays(one) for one in value]
    return value


def _joined(nest: Any) -> Any:
    """Return a nest of lists of arrays and numbers as one array."""
    if isinstance(nest, list):
        return np.stack([_joined(one) for one in nest])
    array = nest.array if isinstance(nest, NumberTracer) else nest
    if isinstance(array, ArrayTracer):
        return array.as_scalar(False) if array.is_scalar else array
    return np.asarray(array)


class ModuleView(types.ModuleType):
    """Stands for a module of the closed list, of which some names are refused."""

    def __init__(self, module: types.ModuleType, row: Trusted, trusts: Collection[str]) -> None:
        super().__init__(module.__name__)
        own = types.ModuleType.__getattribute__(self, "__dict__")
        own.update(_module=module, _row=row, _trusts=trusts, _thread=get_ident())

    @override
    def __getattribute__(self, name: str) -> Any:
        """Return what the module has by a name, or what stands for it."""
        own = types.ModuleType.__getattribute__(self, "__dict__")
        if name == "__class__":
            return types.ModuleType
        found = getattr(own["_module"], name)
        if own["_thread"] != get_ident() or name.startswith("__"):
            return found
        where = f"{own['_module'].__name__}.{name}"
        if is_refused(own["_row"], name):
            return Placeholder(found, where, cure_for(name, own["_module"].__name__))
        if isinstance(found, types.ModuleType):
            return view_of(found, where, own["_trusts"])
        return converting(found)

    @override
    def __setattr__(self, name: str, value: Any) -> None:
        """Refuse to change a module, of which there is one for all."""
        own = types.ModuleType.__getattribute__(self, "__dict__")
        if own["_thread"] == get_ident():
            raise trace_error(
                f"{own['_module'].__name__}.{name} is set, which a replay would not repeat; "
                "set it outside"
            )
        setattr(own["_module"], name, value)


def view_of(module: types.ModuleType, where: str, trusts: Collection[str] = ()) -> Any:
    """Return what stands for a module that is not the user's."""
    row = trusted_module(module.__name__, trusts)
    if row is None:
        root = module.__name__.partition(".")[0]
        return Placeholder(module, where, cure_for(module.__name__, root))
    return ModuleView(module, row, trusts)
