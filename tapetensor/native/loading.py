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


@kept
def loop_of(source: str, types: tuple[Any, ...]) -> Callable[..., None]:
    """Return the machine code for just these types: it takes other layouts as they are declared."""
    dispatcher: Any = cache.load(source, types)
    loop: Callable[..., None] = dispatcher.get_overload(types)
    return loop
