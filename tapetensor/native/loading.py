"""Loops that are written by hand, compiled for the types of their arguments."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache as kept
from typing import Any

import numpy as np

from tapetensor.compiler.trace.node import DType
from tapetensor.native import cache
from tapetensor.native.scalars import numba

# A thread for fewer elements costs more than it gives.
SMALLEST_FOR_THREADS = 1 << 18
# What the loops by hand are written for.
FLOATS = (np.float32, np.float64)


def seen(dtype: DType, rank: int, order: str = "C") -> Any:
    """Return numba's type of an array in C order, or of one that lies in any way."""
    return numba().types.Array(numba().from_dtype(dtype), rank, order)


def loop_for(source: str, *args: Any) -> Callable[..., None]:
    """Return the machine code for arguments like these: arrays in C order, integers, pairs."""
    return _loop_for(source, tuple([_kind_of(one) for one in args]))


def _kind_of(value: Any) -> Any:
    return (value.dtype, value.ndim) if isinstance(value, np.ndarray) else type(value)


@kept
def _loop_for(source: str, kinds: tuple[Any, ...]) -> Callable[..., None]:
    number = numba().types.int64
    known: dict[Any, Any] = {int: number, tuple: numba().types.UniTuple(number, 2)}
    return loop_of(source, tuple([known.get(one) or seen(*one) for one in kinds]))


@kept
def loop_of(source: str, types: tuple[Any, ...]) -> Callable[..., None]:
    """Return the machine code for just these types: it takes other layouts as they are declared."""
    dispatcher: Any = cache.load(source, types)
    loop: Callable[..., None] = dispatcher.get_overload(types)
    return loop
