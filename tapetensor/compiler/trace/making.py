"""numpy's functions that make arrays, for functions that write into what those make.

And those that make an array of a list before they compute.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from threading import Lock, get_ident
from types import ModuleType
from typing import Any

import numpy as np
from typing_extensions import override

from tapetensor.arrays.stand_ins import Captured
from tapetensor.compiler.trace.codes import is_called
from tapetensor.compiler.trace.methods import CONVERSIONS
from tapetensor.compiler.trace.node import DType, found_in
from tapetensor.compiler.trace.number import NumberTracer
from tapetensor.compiler.trace.operations import number_of
from tapetensor.compiler.trace.program import Program
from tapetensor.compiler.trace.refusals import trace_error
from tapetensor.compiler.trace.tracer import ArrayTracer
from tapetensor.compiler.trace.view import shows_others_memory
from tapetensor.pictures.places import is_users_module

# What gives an array of at least one axis in an order of memory.
_ORDERS: dict[str, Any] = {"ascontiguousarray": "C", "asfortranarray": "F"}
# What makes an array of numbers, shapes and dtypes, or of arrays that are known.
_NEW = (
    "arange", "copy", "empty", "empty_like", "eye", "full", "full_like", "identity", "linspace",
    "ones", "ones_like", "tri", "zeros", "zeros_like",
)  # fmt: skip
_REDUCTIONS = (
    "all", "amax", "amin", "any", "argmax", "argmin", "average", "cumprod", "cumsum", "max", "mean",
    "median", "min", "percentile", "prod", "ptp", "quantile", "std", "sum", "var",
)  # fmt: skip
_MAKING = frozenset({*_NEW, *CONVERSIONS, *_REDUCTIONS})

# The program of each thread that makes arrays of tracers.
_PROGRAMS: dict[int, Program] = {}
_LOCK = Lock()
_CLASS = type(np)


class _Numpy(ModuleType):
    """The class of numpy's module meanwhile, which may be set as in any other module."""

    @override
    def __getattribute__(self, name: str) -> Any:
        # Meanwhile another thread may set the class back, which `super` would not stand.
        held = ModuleType.__getattribute__(self, name)
        program = _PROGRAMS.get(get_ident()) if name in _MAKING else None
        if program is None:
            return held
        frame = sys._getframe(1)
        # Code in C has no frame: where that asks, the user's reads nothing.
        is_users = is_users_module(frame.f_globals.get("__name__"))
        is_asked = is_users and is_called(frame.f_code, frame.f_lasti, name)
        return partial(_make, program, held) if is_asked else held


@contextmanager
def arrays_made_of_tracers(program: Program) -> Iterator[None]:
    """Have numpy's functions that make arrays give tracers to the user's code in this thread.

    What is computed can be written into those, while an array of numpy's has no place for it.
    Nobody sees a function that is not numpy's own: another one is read only to be called at once.
    """
    thread = get_ident()
    outer = _PROGRAMS.get(thread)
    with _LOCK:
        _PROGRAMS[thread] = program
        ModuleType.__setattr__(np, "__class__", _Numpy)
    try:
        yield
    finally:
        with _LOCK:
            if outer is not None:
                _PROGRAMS[thread] = outer
            else:
                del _PROGRAMS[thread]
            if not _PROGRAMS:
                ModuleType.__setattr__(np, "__class__", _CLASS)


def _make(program: Program, function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Call one of numpy's functions that make arrays; return what stands for a new one."""
    captured: Iterator[Any] = found_in(args[:1], Captured)
    name, has_tracers = function.__name__, any(True for _ in captured)
    fills: Iterator[Any] = found_in((args, options), Captured)
    if has_tracers and name in CONVERSIONS and not options.keys() - {"dtype", "copy", "order"}:
        options.setdefault("copy", True if name == "array" else None)
        return _array_of(name, *args, **options)
    if has_tracers and name in _REDUCTIONS and isinstance(args[0], list | tuple):
        return function(_array_of("asarray", args[0]), *args[1:], **options)
    if name == "full" and any(True for _ in fills):
        return _full_of(program, *args, **options)
    made = function(*args, **options)
    if type(made) is not np.ndarray or made.dtype.kind not in "biufc":
        return made
    is_shared = any(np.may_share_memory(made, one) for one in found_in(args, np.ndarray))
    if is_shared or shows_others_memory(made):
        return made
    made.flags.writeable = False
    return ArrayTracer.made(program, program.constant(made), made)


def _full_of(
    program: Program, shape: Any, fill_value: Any, dtype: Any = None, order: Any = "C"
) -> Any:
    """Return an array that is filled with what is computed, and has the dtype of that."""
    if dtype is not None:
        raise trace_error(
            "np.full of what is not known yet takes its dtype; write x[...] = value into np.empty"
        )
    value = _array_of("asarray", fill_value)
    made = _make(program, np.empty, shape, value.dtype, order)
    made[...] = value
    return made


def _array_of(name: str, nest: Any, dtype: Any = None, copy: Any = None, order: Any = None) -> Any:
    """Return what numpy's function of a name makes of tracers, alone or in lists and tuples."""
    is_array = isinstance(nest, ArrayTracer) and not nest.is_scalar
    if copy is not None and not copy:
        # This raises what numpy raises.
        np.array(nest.laid_out() if is_array else 0, dtype, copy=False, order=order)
    integer = None if dtype is None or np.dtype(dtype).kind not in "iu" else np.dtype(dtype)
    if isinstance(nest, list | tuple):
        whole: Any = np.stack([_element_of(one, dtype, integer) for one in nest])
        whole = whole.astype(whole.dtype, order="C", copy=False)
    elif isinstance(nest, NumberTracer) and integer is not None:
        # This raises where the number is no integer of this dtype.
        whole = nest.array.capture_step(number_of(integer), (nest,), {})
    elif isinstance(nest, NumberTracer):
        whole = nest.array.as_scalar(False)
    elif not isinstance(nest, ArrayTracer):
        whole = np.asarray(nest)
        if whole.dtype.hasobject:
            raise trace_error("an array of Python objects cannot be traced; make a list of them")
        return whole
    elif is_array:
        whole = nest.copy("K") if copy else nest
    else:
        whole = nest.as_scalar(False)
    if name in _ORDERS:
        whole, order = np.atleast_1d(whole), _ORDERS[name]
    dtype = whole.dtype if dtype is None else dtype
    return whole.astype(dtype, order=order or "K", copy=False)


def _element_of(one: Any, dtype: Any, integer: DType | None) -> Any:
    """Return what a list holds as an array; numpy makes integers of that as Python does."""
    if isinstance(one, ArrayTracer):
        is_number = one.is_scalar and integer is not None
        return _array_of("asarray", one.item(), integer) if is_number else _array_of("asarray", one)
    is_plain = not isinstance(one, Captured | list | tuple | np.ndarray)
    if is_plain and dtype is not None and np.dtype(dtype).kind in "biufc":
        # This raises where the number is none of this dtype.
        return np.array([one], dtype)[0]
    return _array_of("asarray", one, integer)
