"""Kernels of those functions of numpy that no op of the library is made of alone."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from tapetensor.arrays.array import Array, is_array, is_numpys
from tapetensor.arrays.libraries import beside_captured, to_numpy
from tapetensor.arrays.stand_ins import Recorded, UnrecordedError, captured_among
from tapetensor.kernels import indexing, shape
from tapetensor.kernels.numerics.along_axes import sum_to, unchanged
from tapetensor.kernels.numerics.recurrence import run_recurrence
from tapetensor.tape import Kernel, Pullbacks


def copy(x: Array) -> tuple[Array, Pullbacks]:
    """The same elements in memory of their own."""
    return np.copy(x), (unchanged,)


def copysign(size: Array, sign: Array) -> tuple[Array, Pullbacks]:
    """``|size|`` with the sign of the other; nothing flows to that."""
    turned = np.copysign(1.0, sign) * np.sign(size)
    return np.copysign(size, sign), (lambda g: sum_to(g * turned, size.shape), np.zeros_like)


def setitem(x: Array, value: Array, index: Any) -> tuple[Array, Pullbacks]:
    """``x`` with ``x[index] = value``, every element written at most once."""
    y = _copy_for(value, x, index)
    y[index] = value

    def pullback_x(g: Array) -> Array:
        kept = np.copy(g)
        kept[index] = 0
        return kept

    return y, (pullback_x, lambda g: sum_to(g[index], value.shape))


def unpermuted(_: Array, value: Array, axes: tuple[int, ...]) -> tuple[Array, Pullbacks]:
    """The array whose axes, permuted, are those of `value`."""
    order = tuple([axes.index(axis) for axis in range(len(axes))])
    return np.transpose(value, order), (None, lambda g: np.transpose(g, axes))


def recurrence(_: Array, values: Array, decay: Array) -> tuple[Array, Pullbacks]:
    """The outputs of `run_recurrence`."""
    h = np.empty_like(values)
    run_recurrence(h, values, decay)

    def adjoint(g: Array) -> Array:
        total = np.empty_like(g)
        run_recurrence(total[::-1], g[::-1], decay[::-1])
        return total

    return h, (None, adjoint, lambda g: adjoint(g)[1:] * h[:-1])


def add_at(x: Array, value: Array, index: Any) -> tuple[Array, Pullbacks]:
    """``x`` with ``np.add.at(x, index, value)``."""
    y = _copy_for(value, x, index)
    np.add.at(y, index, value)
    return y, (unchanged, lambda g: sum_to(g[index], value.shape))


def sum_runs(x: Array, starts: Array) -> tuple[Array, Pullbacks]:
    """``np.add.reduceat(x, starts, axis=0)`` for starts that increase."""
    # Positions are worked out on the host, wherever the values lie.
    first_rows = to_numpy(starts)
    lengths = np.diff(first_rows, append=x.shape[0])
    if not np.all(lengths > 0):
        raise UnrecordedError("uses numpy.add.reduceat with starts that do not increase")
    run_of_row = np.repeat(np.arange(first_rows.size), lengths)

    def pullback(g: Array) -> Array:
        cotangent = np.zeros_like(x)
        cotangent[first_rows[0] :] = np.take(g, run_of_row, axis=0)
        return cotangent

    return np.add.reduceat(x, starts, axis=0), (pullback,)


# What an array becomes when a part of it, which a kernel took with some options, is written to.
PUT_BACK: dict[Kernel, Kernel] = {indexing.getitem: setitem, shape.permute_dims: unpermuted}
# Which kernel answers a function that writes into its first argument.
WRITERS: dict[Callable[..., None], Kernel] = {inspect.unwrap(run_recurrence): recurrence}


def _copy_for(value: Any, x: Array, index: Any) -> Any:
    """Return a copy of `x` that `value` can be written into, also where only that is recorded.

    Or where only the index is captured.
    """
    y = beside_captured(np.copy(x), _parts(index))
    return value.level.array(y) if is_numpys(y) and isinstance(value, Recorded) else y


def check_written_once(shape: tuple[int, ...], index: Any) -> None:
    """Refuse an index that names one element twice: of two values written to it one is lost.

    Raises:
        UnrecordedError: if it does.
    """
    if not has_arrays(index):
        return
    parts = _parts(index)
    captured = captured_among(parts)
    if captured is None:
        _check_places(shape, *parts)
    else:
        captured.capture_check(_check_places, (shape, *parts))


def _check_places(shape: tuple[int, ...], *parts: Any) -> None:
    places = tuple([to_numpy(part) if is_array(part) else part for part in parts])
    written = np.full(shape, -1)
    numbers = np.arange(written[places].size).reshape(written[places].shape)
    written[places] = numbers
    if not np.array_equal(written[places], numbers):
        raise UnrecordedError("assigns to one element twice")


def has_arrays(index: Any) -> bool:
    """Tell whether an index reads copies, not a view."""
    return any(
        isinstance(part, list) or (is_array(part) and not isinstance(part, np.generic))
        for part in _parts(index)
    )


def _parts(index: Any) -> tuple[Any, ...]:
    return index if isinstance(index, tuple) else (index,)
