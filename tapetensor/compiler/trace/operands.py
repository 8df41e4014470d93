"""The operands and arguments of a captured step, as the program has them."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from tapetensor.compiler.trace.methods import ArrayMethods
from tapetensor.compiler.trace.node import DType, Keywords, Kind, Node
from tapetensor.compiler.trace.number import NumberTracer
from tapetensor.compiler.trace.operations import item, number_of


class Operands(ArrayMethods):
    """Gives a program the operands of captured steps."""

    __slots__ = ()

    @abstractmethod
    def ordered(self) -> Node:
        """Return the value with elements of its own, for those who see which elements are one."""

    def operand(self, value: Any, dtype: DType) -> Node:
        """Return the node of an operand; a plain number becomes one of `dtype`."""
        if isinstance(value, Operands):
            return value.node
        if isinstance(value, NumberTracer):
            number = value.array
            if dtype.kind in "iu" and dtype != number.dtype:
                # numpy refuses an integer of Python's that does not fit.
                number = self.capture_step(number_of(dtype), (value,), {})
            return number.astype(dtype).node
        if isinstance(value, np.ndarray):
            return self.program.constant(self.program.snapshot(value))
        return self.program.constant(value, None if hasattr(value, "dtype") else dtype)

    def unwrapped(self, value: Any) -> Any:
        """Return an argument of a step: an array as it lies in memory, a number as Python's own."""
        if not isinstance(value, Operands):
            return self.unordered(value)
        return value.ordered()

    def unordered(self, value: Any) -> Any:
        """Return an argument of a step to which it does not matter which elements are one."""
        if isinstance(value, NumberTracer):
            # With Python's numbers results have other dtypes than with numpy's.
            nodes = (value.array.node, Keywords())
            return self.program.add(Kind.CALL, item, nodes, (), value.array.dtype)
        if isinstance(value, Operands):
            return value.node
        return self.program.snapshot(value) if isinstance(value, np.ndarray) else value
