"""The results of numpy's functions that make arrays, for captured arrays."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import BuiltinFunctionType
from typing import Any

import numpy as np

from tapetensor.arrays.stand_ins import Captured
from tapetensor.compiler.trace.node import found_in
from tapetensor.compiler.trace.number import NumberTracer
from tapetensor.compiler.trace.refusals import trace_error
from tapetensor.compiler.trace.tracer import ArrayTracer
from tapetensor.tensor.base import TensorBase

# These give an array as it is, or a copy, or one in an order of memory.
_CONVERSIONS = ("array", "asanyarray", "asarray", "ascontiguousarray", "asfortranarray")
_FOUND = {id(getattr(np, name)): getattr(np, name) for name in _CONVERSIONS}
_COPIES = (np.array,)


def converting(value: Any) -> Any:
    """Return the stand-in for one of numpy's functions that ask their arguments for values.

    Those that make an array of anything know what is captured; others refuse it.
    """
    if id(value) in _FOUND:
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
    return made.copy() if function in _COPIES and made is nest else made


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
