"""Arrays that the library accepts, and the dtypes and shapes that they may have.

An array is numpy's own, or any that follows its dispatch protocols. Shapes are types: `Rank0` to
`Rank6`.
"""

from __future__ import annotations

import contextlib
import math
import mmap
import platform
import sys
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from typing_extensions import TypeAliasType, TypeVar

from tapetensor.errors import ArgumentTypeError, DTypeError, ShapeError

FLOATING = (np.dtype(np.float32), np.dtype(np.float64))


def native(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return a dtype with the order of bytes of this machine, itself if it has that."""
    return dtype if dtype.isnative else dtype.newbyteorder("=")


def as_dtype(op: str, dtype: Any) -> np.dtype[Any]:
    """Return the numpy dtype for `dtype`, which is float32, float64, an integer or bool."""
    try:
        resolved: np.dtype[Any] = np.dtype(dtype)
    except TypeError:
        raise DTypeError(f"{op}: {dtype!r} is not a dtype; write np.float32, say") from None
    if (
        dtype is None
        or not resolved.isnative
        or not (resolved in FLOATING or resolved.kind in "iub")
    ):
        # A checker does not see it, which has one type for both.
        turned = "" if resolved.isnative else ", whose bytes lie the other way round"
        raise DTypeError(
            f"{op}: a tensor cannot have dtype {dtype}{turned}; "
            "use float32 or float64 for values, an integer dtype or bool for indices and masks "
            "(array.astype(np.float32), say)"
        )
    return resolved


def as_floating_dtype(op: str, name: str, dtype: Any) -> np.dtype[Any]:
    """Return the numpy dtype for `dtype`, of what is named: float32 or float64."""
    resolved = as_dtype(op, dtype)
    if resolved not in FLOATING:
        raise DTypeError(f"{op}: {name} are float32 or float64, not {resolved}")
    return resolved


_D_co = TypeVar("_D_co", bound=np.generic, covariant=True)

Array = TypeAliasType("Array", np.ndarray[Any, np.dtype[Any]])
_MANY_BYTES = 1 << 17
# Python knows it since 3.13 only. On Linux the number depends on the processor.
_IS_LINUX = sys.platform == "linux" and platform.machine() in ("x86_64", "aarch64")
_NO_RESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000 if _IS_LINUX else 0)
# What most lists hold.
_NUMBERS = frozenset({int, float, bool})


class Dispatched(Protocol[_D_co]):
    """An array that numpy's functions hand on to its own library; numpy's own are some, too."""

    @property
    def dtype(self) -> np.dtype[_D_co]:
        """The numpy dtype of the elements."""

    @property
    def shape(self) -> Any:
        """The sizes of the axes."""

    @property
    def __array_function__(self) -> Callable[..., Any]:
        """Run a function of numpy's."""


class RefusesUfuncs:
    """The base of what has a shape and a dtype, and answers ufuncs of numpy's by an error alone."""

    __slots__ = ()


def is_numpys(value: object) -> bool:
    """Tell whether a value is an array or a scalar of numpy's own.

    Of a stand-in `isinstance` says so, too, for it is asked in the programs of users.
    """
    return issubclass(type(value), np.ndarray | np.generic)


def is_array(value: object) -> bool:
    """Tell whether numpy's functions take `value` for an array, of whatever library."""
    if is_numpys(value):
        return True
    cls = type(value)
    return (
        getattr(cls, "__array_ufunc__", None) is not None
        and not issubclass(cls, RefusesUfuncs)
        and hasattr(cls, "__array_function__")
        and hasattr(value, "dtype")
        and hasattr(value, "shape")
    )


def is_masked(value: object) -> bool:
    """Tell whether a value is a masked array, or a list that holds one, however deep."""
    cls = type(value)
    if cls is list or cls is tuple:
        items: Any = value
        return any(type(one) not in _NUMBERS and is_masked(one) for one in items)
    # The usual ones first: numpy loads the module of the others when it is asked for.
    is_plain = cls is np.ndarray or not issubclass(cls, np.ndarray)
    return not is_plain and issubclass(cls, np.ma.MaskedArray)


def check_unmasked(op: str, name: str, value: object) -> None:
    """Raise ArgumentTypeError if `value` is a masked array or holds one: the mask would be lost."""
    if is_masked(value):
        raise ArgumentTypeError(
            f"{op}: {name} is a masked array, or holds one, and the mask would be lost; say what "
            "stands where it hides something, masked.filled(0), say, and make the mask an array of "
            "its own: np.ma.getmaskarray(masked)"
        )


def read_only(array: Any) -> Array:
    """Return a view of a numpy array that cannot be written to; another library's array itself.

    Arrays of other libraries are not numpy's to protect.
    """
    if issubclass(type(array), np.ndarray):
        # Of a plain view numpy would set the flag back for anybody, because its base is writeable.
        buffer: Any = array
        array = np.asarray(memoryview(buffer).toreadonly())
    protected: Array = array
    return protected


def in_native_order(array: Any) -> Any:
    """Return an array whose numbers lie as this machine has them; FITS and others turn the bytes.

    A checker does not see the order, which is a part of numpy's dtype and of no scalar type.
    """
    return array if array.dtype.isnative else array.astype(native(array.dtype))


def are_added_in_place(earlier: Array, added: Array) -> bool:
    """Tell whether numpy may write a sum of two arrays over the first, if that is nobody else's.

    A sum of arrays that lie in different orders has one of its own, by which others are added up.
    """
    are_numpys = type(earlier) is np.ndarray and type(added) is np.ndarray
    return are_numpys and earlier.strides == added.strides


def as_array(op: str, name: str, value: object) -> Array:
    """Return an array that is not masked as it is, a scalar of numpy's as one without axes."""
    if not is_array(value):
        raise ArgumentTypeError(f"{op}: {name} must be an array, got {type(value).__name__}")
    check_unmasked(op, name, value)
    array: Any = np.asarray(value) if is_numpys(value) else value
    found: Array = array
    return found


def check_dispatched(op: str, value: object) -> None:
    """Raise ArgumentTypeError if `value` is no array that numpy's functions take as it is."""
    if not is_array(value):
        raise ArgumentTypeError(
            f"{op}: expected an array that follows numpy's dispatch protocols, numpy's or CuPy's, "
            f"say, got {type(value).__name__}; wrap lists with tt.from_numpy(...)"
        )
    check_unmasked(op, "the array", value)


def check_shape(op: str, array: Any, shape: tuple[int, ...]) -> None:
    """Raise ShapeError if an array does not have the shape that its annotation says."""
    if array.shape != shape:
        raise ShapeError(
            f"{op}: the array has shape {array.shape}, the annotation says {tuple(shape)}"
        )


def untouched(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Return zeros that, where they are many, take neither memory nor time until written to."""
    nbytes = math.prod(shape) * dtype.itemsize
    if nbytes < _MANY_BYTES or dtype.hasobject or not hasattr(mmap, "MAP_PRIVATE"):
        return np.zeros(shape, dtype)
    # With the last one nothing is set aside for what is unused: it may be more than there is.
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NO_RESERVE
    region = mmap.mmap(-1, nbytes, flags=flags)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        # Not every system can be advised so.
        with contextlib.suppress(OSError):
            region.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(region, dtype).reshape(shape)


_A = TypeVar("_A", bound=int)
_B = TypeVar("_B", bound=int)
_C = TypeVar("_C", bound=int)
_D = TypeVar("_D", bound=int)
_E = TypeVar("_E", bound=int)
_F = TypeVar("_F", bound=int)

Rank0 = TypeAliasType("Rank0", tuple[()])
Rank1 = TypeAliasType("Rank1", tuple[_A], type_params=(_A,))
Rank2 = TypeAliasType("Rank2", tuple[_A, _B], type_params=(_A, _B))
Rank3 = TypeAliasType("Rank3", tuple[_A, _B, _C], type_params=(_A, _B, _C))
Rank4 = TypeAliasType("Rank4", tuple[_A, _B, _C, _D], type_params=(_A, _B, _C, _D))
Rank5 = TypeAliasType("Rank5", tuple[_A, _B, _C, _D, _E], type_params=(_A, _B, _C, _D, _E))
Rank6 = TypeAliasType("Rank6", tuple[_A, _B, _C, _D, _E, _F], type_params=(_A, _B, _C, _D, _E, _F))
