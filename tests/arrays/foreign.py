"""A library of arrays that is as strict as CuPy: what it refuses, and what it lacks.

Its arrays cannot become numpy's but by `get()`, and do not mix with numpy's but for numbers and
indices. Of numpy's functions it has those that CuPy 13 has, with CuPy's arguments.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Never

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from typing_extensions import override

Array = np.ndarray[Any, np.dtype[Any]]

# CuPy's functions by what they take, for those that are reached; test_cupy compares.
SIGNATURES: dict[str, Callable[..., Any]] = {
    "all": lambda a, axis=None, out=None, keepdims=False: None,
    "any": lambda a, axis=None, out=None, keepdims=False: None,
    "argmax": lambda a, axis=None, dtype=None, out=None, keepdims=False: None,
    "argmin": lambda a, axis=None, dtype=None, out=None, keepdims=False: None,
    "argsort": lambda a, axis=-1, kind=None: None,
    "asarray": lambda a, dtype=None, order=None, *, blocking=False: None,
    "broadcast_to": lambda array, shape: None,
    "cholesky": lambda a: None,
    "clip": lambda a, a_min, a_max, out=None: None,
    "concatenate": lambda tup, axis=0, out=None, *, dtype=None, casting="same_kind": None,
    "copy": lambda a, order="K": None,
    "copyto": lambda dst, src, casting="same_kind", where=None: None,
    "cumsum": lambda a, axis=None, dtype=None, out=None: None,
    "det": lambda a: None,
    "diff": lambda a, n=1, axis=-1, prepend=None, append=None: None,
    "eigh": lambda a, UPLO="L": None,  # noqa: N803  # CuPy's name
    "einsum": lambda *operands, **kwargs: None,
    "empty_like": lambda prototype, dtype=None, order="K", subok=None, shape=None: None,
    "expand_dims": lambda a, axis: None,
    "flatnonzero": lambda a: None,
    "full_like": lambda a, fill_value, dtype=None, order="K", subok=None, shape=None: None,
    "inv": lambda a: None,
    "max": lambda a, axis=None, out=None, keepdims=False: None,
    "min": lambda a, axis=None, out=None, keepdims=False: None,
    "moveaxis": lambda a, source, destination: None,
    "ones_like": lambda a, dtype=None, order="K", subok=None, shape=None: None,
    "pinv": lambda a, rcond=1e-15: None,
    "qr": lambda a, mode="reduced": None,
    "reshape": lambda a, newshape, order="C": None,
    "roll": lambda a, shift, axis=None: None,
    "shape": lambda a: None,
    "slogdet": lambda a: None,
    "solve": lambda a, b: None,
    "squeeze": lambda a, axis=None: None,
    "stack": lambda tup, axis=0, out=None, *, dtype=None, casting="same_kind": None,
    "sum": lambda a, axis=None, dtype=None, out=None, keepdims=False: None,
    "svd": lambda a, full_matrices=True, compute_uv=True: None,
    "swapaxes": lambda a, axis1, axis2: None,
    "take": lambda a, indices, axis=None, out=None: None,
    "take_along_axis": lambda a, indices, axis: None,
    "transpose": lambda a, axes=None: None,
    "tril": lambda m, k=0: None,
    "unique": lambda ar, return_index=False, return_inverse=False, return_counts=False: None,
    "where": lambda condition, x=None, y=None: None,
    "zeros_like": lambda a, dtype=None, order="K", subok=None, shape=None: None,
}
# Those that take indices, which may be numpy's, by the position of these.
_INDICES = {"take": 1, "take_along_axis": 1}
# That which makes a new array of one of numpy's, or of numbers.
_CREATE = "asarray"
# ufunc.reduce exists for these, and takes no `initial`; reduceat for add alone.
_REDUCED = {"add", "multiply"}
_METHODS = {"__call__", "outer", "at", "reduce", "accumulate", "reduceat"}


class ForeignArray(NDArrayOperatorsMixin):
    """An array of the library; `get` is the only way to its numbers."""

    # What its library is called.
    __module__ = "foreign"
    __slots__ = ("_host",)
    # How often an element was read as a Python number, for which a device must be waited for.
    reads: ClassVar[int] = 0

    def __init__(self, host: Any) -> None:
        self._host: Array = np.asarray(host)

    shape = property(lambda self: self._host.shape)
    ndim = property(lambda self: self._host.ndim)
    size = property(lambda self: self._host.size)
    dtype = property(lambda self: self._host.dtype)
    T = property(lambda self: ForeignArray(self._host.T))

    def get(self) -> Array:
        """Return a copy of the elements as a numpy array."""
        return self._host.copy()

    def item(self) -> Any:
        """Return the only element as a Python number."""
        ForeignArray.reads += 1
        return self._host.item()

    def tolist(self) -> Any:
        """Return the elements as nested lists."""
        ForeignArray.reads += 1
        return self._host.tolist()

    def copy(self) -> ForeignArray:
        """Return the elements in memory of their own."""
        return ForeignArray(self._host.copy())

    def astype(self, dtype: Any, copy: bool = True) -> ForeignArray:
        """Return the elements converted."""
        return ForeignArray(self._host.astype(dtype, copy=copy))

    def reshape(self, *shape: Any) -> ForeignArray:
        """Return the elements under another shape."""
        return ForeignArray(self._host.reshape(*shape))

    def min(self) -> ForeignArray:
        """Return the smallest element."""
        return ForeignArray(self._host.min())

    def max(self) -> ForeignArray:
        """Return the largest element."""
        return ForeignArray(self._host.max())

    def any(self) -> ForeignArray:
        """Return whether any element is true."""
        return ForeignArray(self._host.any())

    def __len__(self) -> int:
        """Return the size of the first axis."""
        return len(self._host)

    def __iter__(self) -> Iterator[ForeignArray]:
        """Iterate over views of the rows."""
        return (self[row] for row in range(len(self)))

    def __float__(self) -> float:
        """Return the only element."""
        return float(self.item())

    def __int__(self) -> int:
        """Return the only element."""
        return int(self.item())

    def __bool__(self) -> bool:
        """Return the truth of the only element."""
        return bool(self.item())

    def __getitem__(self, index: Any) -> ForeignArray:
        """Return elements, by slices as a view."""
        return ForeignArray(self._host[_as_index(index)])

    def __setitem__(self, index: Any, value: Any) -> None:
        """Write elements."""
        self._host[_as_index(index)] = _host_of(value)

    def __array__(self, *_: Any, **__: Any) -> Never:
        """Refuse, as CuPy."""
        raise TypeError("implicit conversion to a numpy array is not allowed; use .get()")

    @override
    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        name = ufunc.__name__
        if method not in _METHODS:
            return NotImplemented
        if method in ("reduce", "accumulate") and name not in _REDUCED:
            raise NotImplementedError(f"{name}.{method} is not supported")
        if method == "reduceat" and name != "add":
            raise NotImplementedError(f"{name}.{method} is not supported")
        if method == "reduce" and not set(options) <= {"axis", "dtype", "out", "keepdims"}:
            raise TypeError(f"reduce() got an unexpected argument among {list(options)}")
        out = options.pop("out", None)
        if out is not None:
            options["out"] = tuple(map(_host_of, out))
        if method == "at":
            target, index, *values = inputs
            ufunc.at(_host_of(target), _as_index(index), *map(_host_of, values))
            return None
        result = getattr(ufunc, method)(*map(_host_of, inputs), **options)
        return _wrapped(result) if out is None else out[0]

    def __array_function__(
        self, function: Any, types: Any, arguments: tuple[Any, ...], options: dict[str, Any]
    ) -> Any:
        name = function.__name__
        if name not in SIGNATURES or not all(
            issubclass(one, ForeignArray | np.ndarray) for one in types
        ):
            return NotImplemented
        inspect.signature(SIGNATURES[name]).bind(*arguments, **options)
        at = _INDICES.get(name)
        if name == _CREATE:
            return _wrapped(function(*arguments, **options))
        given = [
            _as_index(one) if place == at else _host_of(one) for place, one in enumerate(arguments)
        ]
        return _wrapped(function(*given, **{key: _host_of(one) for key, one in options.items()}))

    @override
    def __repr__(self) -> str:
        return f"foreign({self._host!r})"


def asarray(a: Any) -> ForeignArray:
    """Return an array of this library with the elements of one of numpy's, or itself."""
    return a if isinstance(a, ForeignArray) else ForeignArray(np.array(a))


def _host_of(value: Any) -> Any:
    """Return what numpy computes with here; refuse numpy's arrays, which lie elsewhere."""
    if isinstance(value, ForeignArray):
        return value._host
    if isinstance(value, np.ndarray):
        raise TypeError("Unsupported type <class 'numpy.ndarray'>")
    if isinstance(value, tuple | list):
        return type(value)(_host_of(one) for one in value)
    return value


def _as_index(index: Any) -> Any:
    """Return an index; arrays in it may be numpy's, from which one is made here."""
    if isinstance(index, tuple):
        return tuple([_as_index(one) for one in index])
    return index._host if isinstance(index, ForeignArray) else index


def _wrapped(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return ForeignArray(value)
    if isinstance(value, tuple | list):
        parts = [_wrapped(one) for one in value]
        return value._make(parts) if hasattr(value, "_make") else type(value)(parts)
    return value
