"""Steps that the compiler captures whole, as the ufuncs that they are made of.

A step such as ``_logistic_that_overflows(x, out)`` runs once on stand-ins, and what it calls is
its formula: so native code has no second one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from typing_extensions import override

from tapetensor.compiler.trace.node import DType


class Part(NamedTuple):
    """One ufunc of a formula.

    Attributes:
        ufunc: what is computed.
        operands: of what: an int is the number of an argument, or after them of a part; a float is
            a constant.
    """

    ufunc: np.ufunc
    operands: tuple[int | float, ...]


@lru_cache(maxsize=256)
def parts_of(function: Callable[..., Any], count: int, dtype: DType) -> tuple[Part, ...] | None:
    """Return the formula of a step of so many arguments; None where it is not made of ufuncs.

    The last part is the result.
    """
    parts: list[Part | None] = [None] * count
    try:
        result = function(*[_Cell(parts, dtype, place) for place in range(count)])
    except (TypeError, ValueError, AttributeError, NotImplementedError):
        return None
    found = tuple([part for part in parts if part is not None])
    is_last = isinstance(result, _Cell) and result.value == len(parts) - 1
    return found if found and is_last else None


class _Cell(NDArrayOperatorsMixin):
    """A stand-in for an array of the step: it holds one value after another.

    Args:
        parts: takes what is written down, behind one None for each argument.
        dtype: the dtype of the array.
        value: the number of the value that it holds, or a constant; None before anything is
            written to it.
    """

    def __init__(self, parts: list[Part | None], dtype: DType, value: int | float | None) -> None:
        self._parts = parts
        self.dtype = dtype
        self.value = value

    @override
    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        """Write down a ufunc."""
        (out,) = options.pop("out", (None,))
        if method != "__call__" or options:
            raise NotImplementedError(f"np.{ufunc.__name__}.{method}")
        self._parts.append(Part(ufunc, tuple([_operand(one) for one in inputs])))
        target = _Cell(self._parts, self.dtype, None) if out is None else out
        target.value = len(self._parts) - 1
        return target

    def __array_function__(
        self, function: Callable[..., Any], types: Any, args: tuple[Any, ...], options: Any
    ) -> Any:
        """Give memory, empty or filled with a number."""
        known: dict[Any, float | None] = {
            np.empty_like: None,
            np.zeros_like: 0.0,
        }
        if function is np.full_like:
            known[function] = float(args[1])
        elif options or function not in known:
            raise NotImplementedError(function.__name__)
        return _Cell(self._parts, self.dtype, known[function])

    @override
    def __hash__(self) -> int:
        """Hash by identity."""
        return id(self)


def _operand(one: Any) -> int | float:
    """Return what an operand of a ufunc holds now."""
    if not isinstance(one, _Cell):
        return float(one)
    if one.value is None:
        raise NotImplementedError("memory is read that nothing was written to")
    return one.value
