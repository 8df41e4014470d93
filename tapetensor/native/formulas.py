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
    formula = _Formula(count, dtype)
    try:
        result = function(*[_Cell(formula, place) for place in range(count)])
    except (TypeError, ValueError, AttributeError, NotImplementedError):
        return None
    parts = formula.parts
    if not parts or not isinstance(result, _Cell) or result.value != count + len(parts) - 1:
        return None
    return tuple(parts)


class _Formula:
    def __init__(self, count: int, dtype: DType) -> None:
        self.count = count
        self.dtype = dtype
        self.parts: list[Part] = []

    def add(self, ufunc: np.ufunc, operands: tuple[int | float, ...]) -> int:
        self.parts.append(Part(ufunc, operands))
        return self.count + len(self.parts) - 1


class _Cell(NDArrayOperatorsMixin):
    """A stand-in for an array of the step: it holds one value after another.

    Args:
        formula: what is written down.
        value: the number of the value that it holds, or a constant; None before anything is
            written to it.
    """

    def __init__(self, formula: _Formula, value: int | float | None) -> None:
        self._formula = formula
        self.value = value
        self.dtype = formula.dtype

    @override
    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        """Write down a ufunc."""
        (out,) = options.pop("out", (None,))
        if method != "__call__" or options:
            raise NotImplementedError(f"np.{ufunc.__name__}.{method}")
        operands = tuple([_operand(one) for one in inputs])
        target = _Cell(self._formula, None) if out is None else out
        target.value = self._formula.add(ufunc, operands)
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
            return _Cell(self._formula, float(args[1]))
        if options or function not in known:
            raise NotImplementedError(function.__name__)
        return _Cell(self._formula, known[function])

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
