"""Arrays of other libraries, CuPy's above all: what they are told by, and how they are moved.

A tensor holds any array that follows numpy's dispatch protocols (`__array_ufunc__`,
`__array_function__`), and ops run where that array lies. `tapetensor.from_array`, `Tensor.to` and
`Module.to` are how tensors get there.
"""

from __future__ import annotations

from collections.abc import Iterable
from types import ModuleType
from typing import Any, Protocol, TypeAlias

import numpy as np

from tapetensor.arrays.array import Array, is_array, is_numpys
from tapetensor.arrays.stand_ins import StandIn, captured_among
from tapetensor.errors import ArgumentTypeError, DTypeError, ShapeError


class HasAsarray(Protocol):
    """A module that makes arrays of its library from those of another."""

    def asarray(self, a: Any, /) -> Any:
        """Return an array of this library with the elements of another."""


# A module of arrays: numpy, cupy. Type checkers do not find the functions of every numpy.
Library: TypeAlias = HasAsarray | ModuleType


class Home:
    """The library of an array, which is kept, as far as `moved` needs to know it."""

    __slots__ = ("__name__", "_array")

    def __init__(self, array: Any) -> None:
        self.__name__ = library_of(array)
        self._array = array

    def asarray(self, a: Any, /) -> Any:
        """Return a numpy array as one of that library, or one of that library itself."""
        return like(a, self._array)


def library_of(array: object) -> str:
    """Return the name of the package that an array is from: numpy, cupy."""
    return type(array).__module__.partition(".")[0]


def to_numpy(array: Any) -> Array:
    """Return an array of any library as one of numpy's, which is a copy if it lies elsewhere."""
    # CuPy refuses the implicit way, and so does every library that would have to move memory.
    get = None if is_numpys(array) else getattr(array, "get", None)
    result: Array = np.asarray(array if get is None else get())
    return result


def moved(op: str, array: Any, library: Library) -> Any:
    """Return an array as one of `library`; itself if it is one."""
    if isinstance(array, StandIn):
        return array.to(library)
    if library is np:
        return to_numpy(array)
    name = getattr(library, "__name__", type(library).__name__)
    if not callable(getattr(library, "asarray", None)):
        raise ArgumentTypeError(
            f"{op}: expected a library of arrays, numpy or cupy, say, got {name}; write x.to(cupy)"
        )
    is_there = library_of(array) == name.partition(".")[0]
    result = library.asarray(array if is_there else to_numpy(array))
    if not is_array(result) or result.shape != array.shape:
        raise ArgumentTypeError(
            f"{op}: {name}.asarray returns {type(result).__name__}, which does not follow numpy's "
            "dispatch protocols (__array_ufunc__ and __array_function__); CuPy's arrays do"
        )
    if result.dtype != array.dtype:
        raise DTypeError(f"{op}: {name}.asarray made {result.dtype} of {array.dtype}")
    return result


def like(array: Any, other: Any) -> Any:
    """Return a numpy array as one of the library of `other`; any other array as it is.

    For constants, which a kernel makes with numpy, beside operands, which may lie elsewhere.
    """
    if type(array) is not np.ndarray or is_numpys(other):
        return array
    return np.asarray(array, like=other)


def beside(array: Any, other: Any) -> Any:
    """Return an array of any library as one of the library of `other`."""
    if library_of(array) == library_of(other):
        return array
    return like(to_numpy(array), other)


def beside_captured(array: Any, others: Iterable[object]) -> Any:
    """Return a numpy array as a constant of the program that one of the others is captured for.

    What it computes has no place in an array of numpy's, and is no index of one.
    """
    captured = captured_among(others) if type(array) is np.ndarray else None
    return array if captured is None else like(array, captured)


def check_one_library(op: str, arrays: Iterable[object]) -> None:
    """Raise ArgumentTypeError if the arrays are of several libraries."""
    # Stand-ins are for arrays of any library.
    real = [one for one in arrays if is_array(one) and not isinstance(one, StandIn)]
    names = {library_of(array) for array in real}
    if len(names) > 1:
        other = min(names - {"numpy"})
        raise ArgumentTypeError(
            f"{op}: arrays of {' and '.join(sorted(names))} do not mix; "
            f"move all to one side: x.to({other}), model.to({other})"
        )


def check_matching(op: str, name: str, array: Any, other: str, like: Any) -> None:
    """Raise an error if two arrays, or two tensors, differ in shape, dtype or library."""
    if array.shape != like.shape:
        raise ShapeError(
            f"{op}: {name} has shape {array.shape}, {other} {like.shape}; they must be equal"
        )
    if array.dtype != like.dtype:
        raise DTypeError(
            f"{op}: {name} has dtype {array.dtype}, {other} {like.dtype}; "
            "they must be equal, convert one with astype(...)"
        )
    check_one_library(op, (array, like))
