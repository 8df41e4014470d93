"""The methods of numpy's arrays, for tracers: most by way of numpy's functions."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Never

import numpy as np
from typing_extensions import override

from tapetensor.arrays.libraries import Home, Library
from tapetensor.arrays.stand_ins import CapturedArray
from tapetensor.compiler.trace.functions import METHODS
from tapetensor.compiler.trace.node import Keywords, Shape
from tapetensor.compiler.trace.number import NumberTracer
from tapetensor.compiler.trace.operations import write_sorted
from tapetensor.compiler.trace.refusals import NoAttributeError, trace_error


class ArrayMethods(CapturedArray):
    """What numpy's arrays can do that needs no memory and no nodes."""

    __slots__ = ()

    is_scalar: bool

    def __getattr__(self, name: str) -> Any:
        """Return a method that numpy has a function for as well; refuse what is not here."""
        if not hasattr(self.dtype.type if self.is_scalar else np.ndarray, name):
            raise AttributeError(name)
        if name in METHODS:
            return partial(getattr(np, name), self)
        error = self.refusal(
            f"{name} of an array cannot be traced; write it with functions of numpy, or return "
            "the array and do it outside"
        )
        raise NoAttributeError(*error.args)

    @override
    def to(self, library: Library) -> Any:
        """Return this array, for a plan runs on numpy's; refuse to move it elsewhere."""
        if library is np or isinstance(library, Home):
            return self
        raise trace_error("a tensor is moved to another library; move it outside")

    def __copy__(self) -> Any:
        """Return a copy, as `copy` does."""
        return self.copy()

    def __deepcopy__(self, memo: object) -> Any:
        """Return a copy, as `copy` does."""
        return self.copy()

    @override
    def __reduce__(self) -> Never:
        """Refuse: there are no values."""
        self.__array__()

    def flatten(self, order: Any = "C") -> Any:
        """Return a copy without axes but one."""
        return np.ravel(self, order).copy()

    def fill(self, value: Any) -> None:
        """Write one value everywhere."""
        self[...] = value

    def sort(self, *args: Any, **options: Any) -> None:
        """Sort in place."""
        self.write(write_sorted, *args, *([Keywords(options)] if options else []))

    def item(self) -> NumberTracer:
        """Return the only element as a number of the program."""
        whole: Any = self
        return NumberTracer(whole)

    @property
    def real(self) -> Any:
        """The real part, which is a view of the array."""
        return np.real(self)

    @property
    def imag(self) -> Any:
        """The imaginary part, which is a view of the array."""
        return np.imag(self)

    @property
    def itemsize(self) -> int:
        """The bytes of an element."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """The bytes of all elements."""
        return self.size * self.dtype.itemsize

    @property
    def strides(self) -> Shape:
        """The steps in memory from element to element."""
        return self.laid_out().strides

    @override
    def __pow__(self, other: Any) -> Any:
        """Return powers; numpy's operator squares what its function does not."""
        if other.__class__ is int and other == 2 and self.dtype.kind == "b" and not self.is_scalar:
            return np.square(self)
        return super().__pow__(other)

    def __len__(self) -> int:
        """Return the size of the first axis."""
        if self.shape == ():
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __round__(self, digits: int | None = None) -> Any:
        """Return a scalar with so many digits; refuse to make a number of Python's of it."""
        if not self.is_scalar:
            raise TypeError("type numpy.ndarray doesn't define __round__ method")
        return self.__array__() if digits is None else np.round(self, digits)

    @override
    def __hash__(self) -> int:
        """Refuse: arrays have none, and that of a scalar depends on its value."""
        if not self.is_scalar:
            raise TypeError("unhashable type: 'numpy.ndarray'")
        self.__array__()

    def __bool__(self) -> Never:
        """Refuse: the answer depends on values, and there are none."""
        raise self.refusal(
            "a condition depends on the values of a tensor; "
            "write tt.where(mask, a, b) to choose by value"
        )

    def __array__(self, *_: object, **__: object) -> Never:
        """Refuse: there are no values."""
        raise self.refusal(
            "the values of a tensor are read (by printing it, float(), a numpy function without "
            "dispatch or by writing it into an array of numpy's); return the tensor and read it "
            "outside, or make the array that is written into of an argument, as np.zeros_like(x)"
        )

    __float__ = __int__ = __index__ = __complex__ = __array__
    __str__ = __format__ = __repr__ = __array__


def _rebinding(name: str) -> Callable[..., Any]:
    """Return the operator of a name, which leaves a scalar as it is and gives another."""
    operator = getattr(CapturedArray, name)

    def in_place(self: ArrayMethods, other: Any) -> Any:
        return NotImplemented if self.is_scalar else operator(self, other)

    return in_place


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul",
              "and", "or", "xor", "lshift", "rshift"):  # fmt: skip
    setattr(ArrayMethods, f"__i{_name}__", _rebinding(f"__i{_name}__"))
