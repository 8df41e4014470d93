"""Which kernel answers which function of numpy."""

from __future__ import annotations

import inspect
import string
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np

from tapetensor.arguments import as_target_shape
from tapetensor.arrays.stand_ins import Captured, Level, Recorded, UnrecordedError
from tapetensor.higher_order import kernels
from tapetensor.kernels import (
    arithmetic,
    elementwise,
    indexing,
    linear_algebra,
    reductions,
    scan,
    shape,
)
from tapetensor.tape.pullbacks import Kernel


class UnsupportedError(UnrecordedError):
    """A function was called with options that its kernel does not have; it is named next door."""


def with_numbers(operands: tuple[Any, ...], dtype: np.dtype[Any]) -> tuple[Any, ...]:
    """Return the operands with Python's numbers, which impose no dtype, as arrays of `dtype`."""
    return tuple([_as_array(x, dtype) if isinstance(x, int | float) else x for x in operands])


def _as_array(number: Any, dtype: np.dtype[Any]) -> Any:
    """Return a number as an array; one that a program will compute has no value to make it of."""
    captured = isinstance(number, Captured)
    return number.array.astype(dtype) if captured else np.asarray(number, dtype)


def _as_axes(axis: Any, ndim: int) -> tuple[int, ...]:
    """Return what numpy takes for the axes of a reduction, counted from the front and sorted."""
    if axis is None:
        return tuple(range(ndim))
    axes = axis if isinstance(axis, tuple) else (axis,)
    return tuple(sorted([one % ndim for one in axes]))


_names_of = cache(inspect.getfullargspec)


def answer(function: Callable[..., Any], level: Level, *arguments: Any, **options: Any) -> Any:
    """Return what one of numpy's functions gives, by the kernel that is written for it.

    Raises:
        UnsupportedError: if there is none that is called so.
    """
    by_kernel = FUNCTIONS[function]
    known = _names_of(by_kernel.func if isinstance(by_kernel, partial) else by_kernel)
    unknown = [one for one in options if one not in (*known.args, *known.kwonlyargs)]
    if unknown and known.varkw is None:
        raise UnsupportedError(", ".join(unknown))
    return by_kernel(level, *arguments, **options)


def _check_own_dtype(x: Any, dtype: Any) -> None:
    if dtype not in (None, x.dtype):
        raise UnsupportedError("another dtype")


def _reduced(
    kernel: Kernel,
    level: Level,
    x: Any,
    axis: Any = None,
    dtype: Any = None,
    keepdims: bool = False,
    initial: Any = None,
) -> Any:
    _check_own_dtype(x, dtype)
    if initial is not None and kernel is not reductions.max:
        raise UnsupportedError("initial")
    if initial is not None and x.size == 0:
        how: Any = {"axis": axis, "keepdims": keepdims, "initial": initial}
        return level.array(np.max(np.empty(x.shape, x.dtype), **how))
    result = level.run(kernel, (x,), _as_axes(axis, x.ndim), keepdims)
    return result if initial in (None, -np.inf) else np.maximum(result, initial)


def _constant(
    function: Callable[..., Any], level: Level, like: Any, *arguments: Any, **options: Any
) -> Any:
    # Of the value, so that where levels nest it is an array of the outer one as well.
    return level.array(function(level.lift(like).value, *arguments, **options))


def _full_like(level: Level, like: Any, fill: Any, order: Any = "K", shape: Any = None) -> Any:
    new_shape = like.shape if shape is None else shape
    return np.copy(np.broadcast_to(level.lift(*with_numbers((fill,), like.dtype)), new_shape))


def _copyto(level: Level, written: Any, values: Any) -> None:
    target: Any = written
    if not isinstance(written, Recorded):
        raise UnsupportedError("a given array")
    target[...] = values


def _reshape(level: Level, x: Any, new_shape: Any) -> Any:
    given = new_shape if isinstance(new_shape, tuple) else (new_shape,)
    return x.view(shape.reshape, as_target_shape("numpy.reshape", given, x.size, x.shape))


def _transpose(level: Level, x: Any, axes: Any = None) -> Any:
    order = tuple(range(x.ndim))[::-1] if axes is None else axes
    return x.view(shape.permute_dims, tuple([axis % x.ndim for axis in order]))


def _broadcast_to(level: Level, x: Any, new_shape: Any) -> Any:
    return x.view(shape.broadcast_to, new_shape)


def _joined(kernel: Kernel, level: Level, arrays: Any, axis: int = 0) -> Any:
    ndim = arrays[0].ndim + (kernel is shape.stack)
    return level.run(partial(kernel, axis=axis % ndim), tuple(arrays))


def _where(level: Level, mask: Any, lhs: Any, rhs: Any) -> Any:
    dtype = next(x.dtype for x in (lhs, rhs) if not isinstance(x, int | float))
    lhs, rhs = with_numbers((lhs, rhs), dtype)
    return level.run(indexing.where, (lhs, rhs, mask))


def _clip(level: Level, x: Any, low: Any = None, high: Any = None) -> Any:
    if not isinstance(low, int | float | None) or not isinstance(high, int | float | None):
        raise UnsupportedError("bounds that are arrays")
    return level.run(elementwise.clip, (x,), low, high)


def _take(level: Level, x: Any, indices: Any, axis: int) -> Any:
    places = np.asarray(indices) if isinstance(indices, range | list) else indices
    return level.run(indexing.take, (x, places), axis % x.ndim)


def _take_along_axis(level: Level, x: Any, indices: Any, axis: int) -> Any:
    return level.run(indexing.take_along_axis, (x, indices), axis % x.ndim)


def _roll(level: Level, x: Any, shift: int, axis: int) -> Any:
    return level.run(shape.roll, (x,), shift, axis)


def _cumsum(level: Level, x: Any, axis: int | None = None, dtype: Any = None) -> Any:
    _check_own_dtype(x, dtype)
    summed = x.reshape(-1) if axis is None else x
    return level.run(scan.cumulative_sum, (summed,), 0 if axis is None else axis % x.ndim)


def _masked(kernel: Kernel, level: Level, x: Any, k: int = 0) -> Any:
    return level.run(kernel, (x,), k)


def _spelled_out(subscripts: str, ranks: list[int]) -> str:
    """Return the subscripts with letters for the dots, which mean the same axes everywhere."""
    if "..." not in subscripts:
        return subscripts
    named = [len(one.replace("...", "")) for one in subscripts.split("->")[0].split(",")]
    extra = {rank - count for rank, count in zip(ranks, named, strict=True)}
    if len(extra) > 1:
        raise UnsupportedError("dots that stand for different numbers of axes")
    spare = [letter for letter in string.ascii_letters if letter not in subscripts]
    return subscripts.replace("...", "".join(spare[: extra.pop()]))


def _einsum(level: Level, subscripts: Any, *operands: Any, optimize: Any = False) -> Any:
    if not isinstance(subscripts, str) or "->" not in subscripts:
        raise UnsupportedError("subscripts that are not letters -> letters")
    inputs, output = _spelled_out(subscripts, [operand.ndim for operand in operands]).split("->")
    shapes = [operand.shape for operand in operands]
    kernel = partial(linear_algebra.einsum, inputs=inputs.split(","), output=output, shapes=shapes)
    result = level.run(kernel, operands)
    if len(operands) == 1:
        # It may be a view.
        operands[0].share_with(result)
    return result


def _run(kernel: Kernel, level: Level, *operands: Any) -> Any:
    return level.run(kernel, operands)


def _slogdet(level: Level, x: Any) -> Any:
    both = level.run(linear_algebra.slogdet, (x,))
    return both[..., 0], both[..., 1]


def _lower(x: Any) -> Any:
    """Return the symmetric matrices of which numpy's LAPACK reads the lower triangles."""
    return np.tril(x) + np.swapaxes(np.tril(x, -1), -1, -2)


def _cholesky(level: Level, x: Any) -> Any:
    return level.run(linear_algebra.cholesky, (_lower(x),))


def _eigh(level: Level, x: Any, uplo: str = "L") -> Any:
    if uplo != "L":
        raise UnsupportedError("the upper triangle")
    both = level.run(linear_algebra.eigh, (_lower(x),))
    return both[..., 0, :], both[..., 1:, :]


def _qr(level: Level, x: Any, mode: str = "reduced") -> Any:
    if mode != "reduced":
        raise UnsupportedError(f"mode {mode}")
    both, rows = level.run(linear_algebra.qr, (x,)), x.shape[-2]
    return both[..., :rows, :], np.swapaxes(both[..., rows:, :], -1, -2)


def _svd(level: Level, x: Any, full_matrices: bool = True) -> Any:
    if full_matrices:
        raise UnsupportedError("full matrices")
    parts, rows = level.run(linear_algebra.svd, (x,)), x.shape[-2]
    right = np.swapaxes(parts[..., rows + 1 :, :], -1, -2)
    return parts[..., :rows, :], parts[..., rows, :], right


def _pinv(level: Level, x: Any, rcond: float = 1e-15) -> Any:
    return level.run(linear_algebra.pinv, (x,), rcond)


FUNCTIONS: dict[Callable[..., Any], Callable[..., Any]] = {
    np.broadcast_to: _broadcast_to,
    np.clip: _clip,
    np.concatenate: partial(_joined, shape.concat),
    np.copy: partial(_run, kernels.copy),
    np.copyto: _copyto,
    np.cumsum: _cumsum,
    np.einsum: _einsum,
    np.empty_like: partial(_constant, np.empty_like),
    np.full_like: _full_like,
    np.linalg.cholesky: _cholesky,
    np.linalg.det: partial(_run, linear_algebra.det),
    np.linalg.eigh: _eigh,
    np.linalg.inv: partial(_run, linear_algebra.inv),
    np.linalg.pinv: _pinv,
    np.linalg.qr: _qr,
    np.linalg.slogdet: _slogdet,
    np.linalg.solve: partial(_run, linear_algebra.solve),
    np.linalg.svd: _svd,
    np.max: partial(_reduced, reductions.max),
    np.mean: partial(_reduced, reductions.mean),
    np.min: partial(_reduced, reductions.min),
    np.ones_like: partial(_constant, np.ones_like),
    np.reshape: _reshape,
    np.roll: _roll,
    np.stack: partial(_joined, shape.stack),
    np.sum: partial(_reduced, reductions.sum),
    np.take: _take,
    np.take_along_axis: _take_along_axis,
    np.transpose: _transpose,
    np.tril: partial(_masked, indexing.tril),
    np.triu: partial(_masked, indexing.triu),
    np.where: _where,
    np.zeros_like: partial(_constant, np.zeros_like),
}

# Where an op has numpy's name.
_OF_ONE = (
    *("cos", "cosh", "exp", "expm1", "log", "log10", "log1p", "log2", "reciprocal"),
    *("sin", "sinh", "sqrt", "square", "tan", "tanh"),
)
_OF_TWO = (
    *("add", "divide", "floor_divide", "logaddexp", "maximum", "minimum", "multiply"),
    *("power", "remainder", "subtract"),
)
UFUNCS: dict[Callable[..., Any], Kernel] = {
    **{getattr(np, name): getattr(elementwise, name) for name in _OF_ONE},
    **{getattr(np, name): getattr(arithmetic, name) for name in _OF_TWO},
    **{
        getattr(np, f"arc{name}"): getattr(elementwise, f"a{name}")
        for name in ("cos", "cosh", "sin", "sinh", "tan", "tanh")
    },
    np.absolute: elementwise.abs,
    np.arctan2: arithmetic.atan2,
    np.copysign: kernels.copysign,
    np.matmul: linear_algebra.matmul,
    np.negative: arithmetic.negative,
}

# What they return is an index or a fact, or a constant wherever it has a derivative, which is 0.
FLAT = frozenset(
    {
        np.all,
        np.any,
        np.argmax,
        np.argmin,
        np.argsort,
        np.ndim,
        np.shape,
        np.size,
        np.equal,
        np.floor,
        np.ceil,
        np.greater,
        np.greater_equal,
        np.isfinite,
        np.isinf,
        np.isnan,
        np.less,
        np.less_equal,
        np.not_equal,
        np.rint,
        np.sign,
        np.signbit,
        np.trunc,
    }
)

AT: dict[Callable[..., Any], Kernel] = {np.add: kernels.add_at}

REDUCTIONS: dict[Callable[..., Any], Callable[..., Any]] = {
    np.add: np.sum,
    np.maximum: np.max,
    np.minimum: np.min,
}
