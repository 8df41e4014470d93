"""Functions that make plain tensors from sizes, numbers, arrays, files and random generators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, overload

import numpy as np

from tapetensor.arguments import as_number, as_shape, as_size, check_rng
from tapetensor.arrays.array import (
    Array,
    Dispatched,
    as_dtype,
    as_floating_dtype,
    check_dispatched,
    check_shape,
    check_unmasked,
    is_array,
    is_numpys,
)
from tapetensor.arrays.libraries import like
from tapetensor.arrays.stand_ins import Captured, CapturedArray
from tapetensor.errors import ArgumentTypeError, ArgumentValueError, DTypeError
from tapetensor.tape import NoneTape
from tapetensor.tape.history import OWN, next_id
from tapetensor.tensor.base import wrap
from tapetensor.tensor.operands import as_scalar
from tapetensor.tensor.tensor import Tensor
from tapetensor.typing import D, F, N, S

# What values of other libraries are told by, and how they become arrays of numpy's.
_OF_OTHERS = {
    "numpy": "; write tt.from_numpy(x.numpy()), of a tensor of PyTorch's x.detach().cpu().numpy()",
    "to_numpy": "; write tt.from_numpy(x.to_numpy(np.float32)), of whole numbers np.int64",
}

# What `from_numpy` takes; a tensor is none of them.
_Values: TypeAlias = np.ndarray[Any, Any] | np.generic | Sequence[Any]


@overload
def zeros(shape: S) -> Tensor[S, NoneTape, np.float32]: ...
@overload
def zeros(shape: S, dtype: type[D]) -> Tensor[S, NoneTape, D]: ...
@overload
def zeros(shape: list[int]) -> Tensor[Any, NoneTape, np.float32]: ...
@overload
def zeros(shape: list[int], dtype: type[D]) -> Tensor[Any, NoneTape, D]: ...
def zeros(
    shape: tuple[int, ...] | list[int], dtype: type[np.generic] = np.float32
) -> Tensor[Any, NoneTape, Any]:
    """Return a tensor of zeros.

    Args:
        shape: a tuple of sizes; of a list type checkers know no size.
        dtype: float32 unless given.

    >>> import tapetensor as tt
    >>> tt.zeros((2,))
    Tensor([0., 0.], shape=(2,), dtype=float32, NoneTape)
    """
    return _made("zeros", np.zeros, as_shape("zeros", shape), as_dtype("zeros", dtype))


@overload
def ones(shape: S) -> Tensor[S, NoneTape, np.float32]: ...
@overload
def ones(shape: S, dtype: type[D]) -> Tensor[S, NoneTape, D]: ...
@overload
def ones(shape: list[int]) -> Tensor[Any, NoneTape, np.float32]: ...
@overload
def ones(shape: list[int], dtype: type[D]) -> Tensor[Any, NoneTape, D]: ...
def ones(
    shape: tuple[int, ...] | list[int], dtype: type[np.generic] = np.float32
) -> Tensor[Any, NoneTape, Any]:
    """Return a tensor of ones.

    Args:
        shape: a tuple of sizes; of a list type checkers know no size.
        dtype: float32 unless given.

    >>> import tapetensor as tt
    >>> tt.ones((2,))
    Tensor([1., 1.], shape=(2,), dtype=float32, NoneTape)
    """
    return _made("ones", np.ones, as_shape("ones", shape), as_dtype("ones", dtype))


@overload
def full(shape: S, value: float) -> Tensor[S, NoneTape, np.float32]: ...
@overload
def full(shape: S, value: float, dtype: type[D]) -> Tensor[S, NoneTape, D]: ...
@overload
def full(shape: list[int], value: float) -> Tensor[Any, NoneTape, np.float32]: ...
@overload
def full(shape: list[int], value: float, dtype: type[D]) -> Tensor[Any, NoneTape, D]: ...
def full(
    shape: tuple[int, ...] | list[int], value: float, dtype: type[np.generic] = np.float32
) -> Tensor[Any, NoneTape, Any]:
    """Return a tensor with the same number everywhere.

    Args:
        shape: a tuple of sizes; of a list type checkers know no size.
        value: the number.
        dtype: float32 unless given.

    >>> import tapetensor as tt
    >>> tt.full((2,), 7.0)
    Tensor([7., 7.], shape=(2,), dtype=float32, NoneTape)
    """
    number = as_scalar("full", "value", value)
    sizes, scalar_type = as_shape("full", shape), as_dtype("full", dtype)
    if isinstance(number, Captured) and scalar_type.kind == "f":
        # numpy would write the number, which is not known yet, into memory of its own.
        captured: Any = number.array
        filled = np.broadcast_to(captured, sizes).astype(scalar_type, order="C")
        return wrap(Tensor, filled, next_id(), None)
    if scalar_type.kind in "iu" and isinstance(number, float):
        if not number.is_integer():
            raise ArgumentValueError(
                f"full: {value!r} is not an integer, and dtype is {scalar_type}"
            )
        # Of an int numpy says if the dtype does not hold it; a float it would wrap around.
        number = int(number)
    return _made("full", np.full, sizes, number, scalar_type)


@overload
def arange(size: N) -> Tensor[tuple[N], NoneTape, np.int64]: ...
@overload
def arange(size: N, dtype: type[D]) -> Tensor[tuple[N], NoneTape, D]: ...
def arange(size: int, dtype: type[np.generic] = np.int64) -> Tensor[Any, NoneTape, Any]:
    """Return the numbers from 0 to ``size - 1``.

    Args:
        size: how many.
        dtype: int64 unless given.

    >>> import tapetensor as tt
    >>> tt.arange(3)
    Tensor([0, 1, 2], shape=(3,), dtype=int64, NoneTape)
    """
    count, scalar_type = as_size("arange", "size", size), as_dtype("arange", dtype)
    if scalar_type.kind == "b" and count > 2:
        raise DTypeError(f"arange: a bool counts to 1, not to {count - 1}; compare integers")
    if scalar_type.kind in "iu" and count > 0 and count - 1 > np.iinfo(scalar_type).max:
        raise ArgumentValueError(f"arange: {scalar_type} cannot count to {count - 1}")
    return _made("arange", np.arange, count, None, 1, scalar_type)


@overload
def eye(size: N) -> Tensor[tuple[N, N], NoneTape, np.float32]: ...
@overload
def eye(size: N, dtype: type[D]) -> Tensor[tuple[N, N], NoneTape, D]: ...
def eye(size: int, dtype: type[np.generic] = np.float32) -> Tensor[Any, NoneTape, Any]:
    """Return the identity matrix.

    Args:
        size: the number of rows and columns.
        dtype: float32 unless given.

    >>> import tapetensor as tt
    >>> tt.eye(2)
    Tensor([[1., 0.],
            [0., 1.]], shape=(2, 2), dtype=float32, NoneTape)
    """
    count, scalar_type = as_size("eye", "size", size), as_dtype("eye", dtype)
    return _made("eye", np.eye, count, None, 0, scalar_type)


@overload
def normal(
    shape: S, *, rng: np.random.Generator, mean: float = 0.0, std: float = 1.0
) -> Tensor[S, NoneTape, np.float32]: ...
@overload
def normal(
    shape: S, dtype: type[F], *, rng: np.random.Generator, mean: float = 0.0, std: float = 1.0
) -> Tensor[S, NoneTape, F]: ...
def normal(
    shape: tuple[int, ...] | list[int],
    dtype: type[np.generic] = np.float32,
    *,
    rng: np.random.Generator,
    mean: float = 0.0,
    std: float = 1.0,
) -> Tensor[Any, NoneTape, Any]:
    """Return a tensor of independent normal samples.

    Args:
        shape: a tuple of sizes.
        dtype: float32 unless given.
        rng: where the samples come from.
        mean: the mean.
        std: the standard deviation, >= 0.

    >>> import tapetensor as tt
    >>> tt.normal((2, 3), rng=np.random.default_rng(0)).shape
    (2, 3)
    """
    deviation = as_number("normal", "std", std, at_least=0)
    centre = as_number("normal", "mean", mean)
    sizes = as_shape("normal", shape)
    check_rng("normal", rng)
    samples: Any = _drawn("normal", rng.standard_normal, sizes, dtype)
    drawn: Tensor[Any, NoneTape, Any] = wrap(Tensor, samples * deviation + centre, next_id(), None)
    return drawn


@overload
def uniform(
    shape: S, *, rng: np.random.Generator, low: float = 0.0, high: float = 1.0
) -> Tensor[S, NoneTape, np.float32]: ...
@overload
def uniform(
    shape: S, dtype: type[F], *, rng: np.random.Generator, low: float = 0.0, high: float = 1.0
) -> Tensor[S, NoneTape, F]: ...
def uniform(
    shape: tuple[int, ...] | list[int],
    dtype: type[np.generic] = np.float32,
    *,
    rng: np.random.Generator,
    low: float = 0.0,
    high: float = 1.0,
) -> Tensor[Any, NoneTape, Any]:
    """Return a tensor of independent samples, uniform in ``[low, high)``.

    Where few numbers of the dtype lie between the two, a sample may be rounded up to `high`.

    Args:
        shape: a tuple of sizes.
        dtype: float32 unless given.
        rng: where the samples come from.
        low: the lower bound.
        high: the upper bound, not below `low`; the dtype holds both and their difference.

    >>> import tapetensor as tt
    >>> tt.uniform((2, 3), rng=np.random.default_rng(0)).shape
    (2, 3)
    """
    bottom, top = as_number("uniform", "low", low), as_number("uniform", "high", high)
    if bottom > top:
        raise ArgumentValueError(f"uniform: low must not exceed high, got {low!r} and {high!r}")
    sizes = as_shape("uniform", shape)
    check_rng("uniform", rng)
    scalar_type = as_floating_dtype("uniform", "samples", dtype)
    width = top - bottom
    if max(-bottom, top, width) > float(np.finfo(scalar_type).max):
        raise ArgumentValueError(f"uniform: {scalar_type} cannot span {low!r} to {high!r}")
    samples: Any = _drawn("uniform", rng.random, sizes, scalar_type)
    drawn: Tensor[Any, NoneTape, Any] = wrap(Tensor, samples * width + bottom, next_id(), None)
    return drawn


@overload
def from_numpy(array: np.ndarray[Any, np.dtype[D]]) -> Tensor[Any, NoneTape, D]: ...
@overload
def from_numpy(array: np.ndarray[Any, np.dtype[D]], shape: S) -> Tensor[S, NoneTape, D]: ...
@overload
def from_numpy(array: _Values, shape: S, dtype: type[D]) -> Tensor[S, NoneTape, D]: ...
@overload
def from_numpy(array: _Values, *, dtype: type[D]) -> Tensor[Any, NoneTape, D]: ...
@overload
def from_numpy(array: list[Any], shape: S) -> Tensor[S, NoneTape, np.float32]: ...
@overload
def from_numpy(array: list[Any]) -> Tensor[Any, NoneTape, np.float32]: ...
def from_numpy(
    array: _Values,
    shape: tuple[int, ...] | list[int] | None = None,
    dtype: type[np.generic] | None = None,
) -> Tensor[Any, NoneTape, Any]:
    """Return a tensor with a copy of the elements of an array (or of nested lists).

    It is a copy, so that a later write to the array changes no recorded op.

    Args:
        array: a numpy array, or nested lists of numbers.
        shape: the shape, which gives the tensor its static dims and is checked. Without it
            the dims are `Any` to the type checker.
        dtype: the dtype to convert to. Without it an array keeps its own, lists give float32.

    Raises:
        ShapeError: if the array does not have that shape.
        ArgumentValueError: if the lists are ragged or hold something else than numbers, or if an
            integer dtype does not hold one of the numbers.
        DTypeError: if a tensor cannot have that dtype.
        ArgumentTypeError: if `array` is neither an array nor lists, or is masked.

    >>> import tapetensor as tt
    >>> tt.from_numpy(np.array([[1.0, 2.0]], dtype=np.float32), (1, 2))
    Tensor([[1., 2.]], shape=(1, 2), dtype=float32, NoneTape)
    """
    if isinstance(array, CapturedArray):
        # Its elements are not known yet.
        data = array.astype(as_dtype("from_numpy", array.dtype if dtype is None else dtype)).copy()
        if shape is not None:
            check_shape("from_numpy", data, as_shape("from_numpy", shape))
        return wrap(Tensor, data, next_id(), None)
    if not isinstance(array, np.ndarray | np.generic | list | tuple):
        cure = "; for arrays of other libraries there is tt.from_array" if is_array(array) else ""
        if not isinstance(array, Tensor | type):
            # A DataFrame, a Series, an Index; a tensor of PyTorch.
            for method, text in _OF_OTHERS.items():
                cure = text if callable(getattr(array, method, None)) else cure
        raise ArgumentTypeError(
            f"from_numpy: expected a numpy array or nested lists, got {type(array).__name__}{cure}"
        )
    if not isinstance(array, np.ndarray) and _holds_tensor(array):
        raise ArgumentTypeError(
            "from_numpy: there are tensors in the list, whose gradients would be lost; write "
            "tt.stack(...), or their detach().numpy()"
        )
    check_unmasked("from_numpy", "the array", array)
    if dtype is None:
        # Lists have no dtype of their own.
        dtype = getattr(array, "dtype", np.float32)
    target = as_dtype("from_numpy", dtype)
    try:
        # First without a dtype: numpy would turn None into a number that was never there.
        found = np.asarray(array)
        if found.dtype == object:
            raise TypeError("its elements are objects; of a table write x.to_numpy(np.float32)")
        if found.dtype.kind not in "fiub":
            raise TypeError(f"its elements are {found.dtype}")
        if found.dtype.kind == "f" and target.kind in "iu" and not np.isfinite(found).all():
            raise ValueError(f"{target} holds no NaN and no infinity")
        if target.kind in "iu" and found.size and not np.can_cast(found.dtype, target):
            _check_range(found, target)
        data = np.array(found, dtype=target, order="C")
    except (ValueError, TypeError) as error:
        raise ArgumentValueError(f"from_numpy: not an array of numbers ({error})") from None
    if shape is not None:
        check_shape("from_numpy", data, as_shape("from_numpy", shape))
    return wrap(Tensor, data, next_id(), None)


@overload
def from_array(array: Dispatched[D]) -> Tensor[Any, NoneTape, D]: ...
@overload
def from_array(array: Dispatched[D], shape: S) -> Tensor[S, NoneTape, D]: ...
def from_array(
    array: Any, shape: tuple[int, ...] | list[int] | None = None
) -> Tensor[Any, NoneTape, Any]:
    """Return a tensor with a copy of an array of any library that follows numpy's protocols.

        x = tt.from_array(cupy.ones((2, 3), cupy.float32), (2, 3))

    The copy lies where the array lies, and so do the results of ops on it. `from_numpy` takes lists
    and converts dtypes; `Tensor.to` moves a tensor from library to library.

    Args:
        array: an array of CuPy or numpy, or of another library with `__array_ufunc__` and
            `__array_function__`.
        shape: the shape, which gives the tensor its static dims and is checked. Without it
            the dims are `Any` to the type checker.

    Raises:
        ArgumentTypeError: if it is no such array, or is masked.
        ShapeError: if the array does not have that shape.
        DTypeError: if a tensor cannot have its dtype.

    >>> import tapetensor as tt
    >>> tt.from_array(np.array([1.0, 2.0]), (2,))
    Tensor([1., 2.], shape=(2,), dtype=float64, NoneTape)
    """
    check_dispatched("from_array", array)
    as_dtype("from_array", array.dtype)
    if shape is not None:
        check_shape("from_array", array, as_shape("from_array", shape))
    # numpy's scalars become 0-d arrays.
    copy = np.array(array) if is_numpys(array) else array.copy()
    return wrap(Tensor, copy, next_id(), None)


def _holds_tensor(values: object) -> bool:
    if isinstance(values, list | tuple):
        return any(map(_holds_tensor, values))
    return isinstance(values, Tensor)


def _check_range(array: Array, target: np.dtype[Any]) -> None:
    # numpy would wrap them around.
    lowest, highest = int(array.min()), int(array.max())
    limits = np.iinfo(target)
    if lowest < limits.min or highest > limits.max:
        raise ValueError(f"{target} does not hold all numbers from {lowest} to {highest}")


def zeros_beside(x: Tensor[Any, Any, Any], shape: tuple[Any, ...]) -> Tensor[Any, NoneTape, Any]:
    """Return zeros of the dtype of `x`, where `x` lies."""
    return constant_beside(x, np.zeros(shape, x.dtype))


def constant_beside(x: Tensor[Any, Any, Any], values: Array) -> Tensor[Any, NoneTape, Any]:
    """Return the elements of a numpy array, of the dtype of `x`, where `x` lies."""
    data = like(values.astype(x.dtype, copy=False), x._array)
    return wrap(Tensor, data, next_id(), None)


def _made(op: str, make: Callable[..., Array], *arguments: object) -> Tensor[Any, Any, Any]:
    """Return a tensor of numbers that one of numpy's functions makes, its refusals in our words."""
    numbers = wrap(Tensor, _array(op, make, *arguments), next_id(), None)
    # It comes of no data, so that what a model makes of it and its own is as its own.
    numbers.history = OWN
    return numbers


def _drawn(op: str, draw: Callable[..., Array], sizes: tuple[int, ...], dtype: Any) -> Array:
    return _array(op, draw, sizes, as_floating_dtype(op, "samples", dtype))


def _array(op: str, make: Callable[..., Array], *arguments: object) -> Array:
    try:
        return make(*arguments)
    except (ValueError, OverflowError) as error:
        raise ArgumentValueError(f"{op}: {error}") from None


@overload
def from_memmap(array: np.ndarray[Any, np.dtype[D]]) -> Tensor[Any, NoneTape, D]: ...
@overload
def from_memmap(array: np.ndarray[Any, np.dtype[D]], shape: S) -> Tensor[S, NoneTape, D]: ...
def from_memmap(array: Any, shape: Any = None) -> Any:
    """Return a tensor over a file that is mapped into memory for reading; nothing is copied.

        x = tt.from_memmap(np.load("images.npy", mmap_mode="r"), (N, 3, 32, 32))

    The tensor borrows the file: its elements are read when an op, or a batch of
    `tapetensor.data.batches`, comes to them, and the system takes their memory back when it needs
    it. So data may be larger than memory. The file must stay as it is for as long as the tensor
    lives; what `from_numpy` makes is a copy, which depends on nobody.

    Args:
        array: a `numpy.memmap`, or a part of one, that nobody can write through: of mode "r".
        shape: the shape, which gives the tensor its static dims and is checked. Without it
            the dims are `Any` to the type checker.

    Raises:
        ArgumentTypeError: if it is no such array.
        ArgumentValueError: if it can be written through.
        ShapeError: if the array does not have that shape.
        DTypeError: if a tensor cannot have its dtype, or it has another order of bytes.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import tapetensor as tt
    >>> with TemporaryDirectory() as folder:
    ...     np.save(Path(folder) / "x.npy", np.ones((4, 2), np.float32))
    ...     x = tt.from_memmap(np.load(Path(folder) / "x.npy", mmap_mode="r"), (4, 2))
    ...     print((x * 2).sum().item())
    16.0
    """
    if not isinstance(array, np.memmap):
        raise ArgumentTypeError(
            f"from_memmap: expected a numpy.memmap, got {type(array).__name__}; write "
            'tt.from_memmap(np.load(path, mmap_mode="r")), or tt.from_numpy(...), which copies'
        )
    dtype = as_dtype("from_memmap", array.dtype)
    if dtype != array.dtype:
        raise DTypeError(
            f"from_memmap: the file has {array.dtype}, in another order of bytes than this machine "
            f"has; write it anew as {dtype}, or copy it with tt.from_numpy(...)"
        )
    file = array.base
    while isinstance(file, np.ndarray):
        file = file.base
    buffer: Any = file
    if array.flags.writeable or buffer is None or not memoryview(buffer).readonly:
        raise ArgumentValueError(
            "from_memmap: the array can be written through, which would change what a tape has "
            'recorded; open it with mode "r", or copy it with tt.from_numpy(...)'
        )
    if shape is not None:
        check_shape("from_memmap", array, as_shape("from_memmap", shape))
    return wrap(Tensor, np.asarray(array), next_id(), None)
