"""Checks: one of a few choices, objects of one kind, numbers and sizes, shapes and axes."""

from __future__ import annotations

import inspect
import math
import operator
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import SupportsIndex, overload

import numpy as np
from typing_extensions import TypeVar

from tapetensor.errors import ArgumentTypeError, ArgumentValueError, AxisError, at_the_call, refusal
from tapetensor.rules.dims import Dim, sized, written
from tapetensor.rules.rearranging import reshape


def as_flag(op: str, name: str, value: object) -> bool:
    """Return `value` if it is True or False."""
    if not isinstance(value, bool | np.bool_):
        raise ArgumentTypeError(f"{op}: {name} must be True or False, got {value!r}")
    return bool(value)


def check_choice(op: str, name: str, value: object, choices: Sequence[str]) -> None:
    """Raise ArgumentValueError if `value` is none of the choices."""
    # By ==, and not by hash: what is given may have none.
    if not isinstance(value, str) or value not in choices:
        named = " or ".join([f'"{choice}"' for choice in choices])
        raise ArgumentValueError(f"{op}: {name} must be {named}, got {value!r}")


def check_kind(op: str, name: str, value: object, kind: type, words: str = "") -> None:
    """Raise ArgumentTypeError if `value` is of another class, by its name or by other `words`."""
    if not isinstance(value, kind):
        article = "an" if kind.__name__[0] in "AEIOU" else "a"
        wanted = words or f"{article} {kind.__name__}"
        raise ArgumentTypeError(f"{op}: {name} must be {wanted}, got {type(value).__name__}")


def check_function(op: str, name: str, value: object, takes: Sequence[str] | None = None) -> None:
    """Raise ArgumentTypeError if `value` cannot be called, or not with what `takes` names."""
    if not callable(value):
        raise ArgumentTypeError(f"{op}: {name} must be a function, got {type(value).__name__}")
    if takes is None:
        return
    try:
        signature = inspect.signature(value)
    except ValueError:  # functions written in C need not tell
        return
    try:
        signature.bind(*takes)
    except TypeError as error:
        raise ArgumentTypeError(
            f"{op}: {name} is called as {name}({', '.join(takes)}), which what was given does not "
            f"take: {error}"
        ) from None


def check_path(op: str, name: str, value: object) -> None:
    """Raise ArgumentTypeError if `value` is no path, ArgumentValueError if it names no file."""
    if not isinstance(value, str | os.PathLike):
        raise ArgumentTypeError(f"{op}: {name} must be a path, got {type(value).__name__}")
    path = os.fspath(value)
    if not path or "\0" in path:
        raise ArgumentValueError(f"{op}: {name} must name a file, got {path!r}")


def check_rng(op: str, rng: object) -> None:
    """Raise ArgumentTypeError if `rng` is not a numpy generator."""
    if not isinstance(rng, np.random.Generator):
        raise ArgumentTypeError(
            f"{op}: rng must be a numpy Generator, got {type(rng).__name__}; "
            "write rng=np.random.default_rng(0)"
        )


_Size = TypeVar("_Size", bound=int)


def as_number(
    op: str,
    name: str,
    value: object,
    *,
    at_least: float | None = None,
    above: float = -math.inf,
    at_most: float | None = None,
    below: float = math.inf,
) -> float:
    """Return `value`, a number of Python's or numpy's, as a float within bounds, or a finite one.

    `above` holds where there is no `at_least`, and `below` where there is no `at_most`, which may
    be `math.inf`.
    """
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise ArgumentTypeError(f"{op}: {name} must be a number, got {value!r}")
    try:
        # A Python float: a scalar of numpy's would impose its own dtype.
        number = float(value)
    except OverflowError:
        raise ArgumentValueError(f"{op}: {name} is too large for a float") from None
    # Written so that a NaN is refused.
    exceeds = number > above if at_least is None else number >= at_least
    if exceeds and (number < below if at_most is None else number <= at_most):
        return number
    low, sign, left = (above, ">", "(") if at_least is None else (at_least, ">=", "[")
    high, right = (below, ")") if at_most is None else (at_most, "]")
    if math.isfinite(high):
        allowed = f"in {left}{low:g}, {high:g}{right}"
    else:
        words = [f"{sign} {low:g}"] * math.isfinite(low) + ["finite"] * (at_most is None)
        allowed = " and ".join(words)
    raise ArgumentValueError(f"{op}: {name} must be {allowed}, got {value!r}")


def as_int(op: str, name: str, value: object) -> int:
    """Return `value` as a plain int."""
    # What is usual first: Python looks for a protocol in ten times the time.
    if type(value) is int:
        return value
    if isinstance(value, SupportsIndex) and not isinstance(value, bool):
        try:
            return operator.index(value)
        except TypeError:
            pass
    raise ArgumentTypeError(f"{op}: {name} must be an int, got {value!r}")


@overload
def as_size(op: str, name: str, value: _Size, low: int = 0, high: float = sys.maxsize) -> _Size: ...
@overload
def as_size(op: str, name: str, value: object, low: int = 0, high: float = sys.maxsize) -> int: ...
def as_size(op: str, name: str, value: object, low: int = 0, high: float = sys.maxsize) -> object:
    """Return `value` as a plain int from `low` to what an axis can hold, typed as it came."""
    size = as_int(op, name, value)
    if size < low or size < 0:
        allowed = "must not be negative" if size < 0 else f"must be > {low - 1}"
        raise ArgumentValueError(f"{op}: {name} {allowed}, got {size}")
    if size > high:
        raise ArgumentValueError(f"{op}: {name} is more than an array can hold, got {size}")
    return size


def as_shape(op: str, shape: object) -> tuple[int, ...]:
    """Return `shape` as a tuple of non-negative ints."""
    with at_the_call:
        return tuple(as_size(op, "a dim", dim) for dim in _as_tuple(op, shape))


def as_target_shape(op: str, shape: object, size: int, source: tuple[int, ...]) -> tuple[int, ...]:
    """Return `shape`, which may hold one ``-1``, with that worked out for `size` elements."""
    dims = tuple(as_int(op, "a dim", dim) for dim in _as_tuple(op, shape))
    known = math.prod([dim for dim in dims if dim >= 0])
    if dims.count(-1) == 1 and min(dims) == -1 and known > 0 and size % known == 0:
        return tuple(size // known if dim == -1 else dim for dim in dims)
    if min(dims, default=0) >= 0 and known == size:
        return dims
    raise refusal(lambda: reshape(op, sized(source), sized(dims)))


def broadcasts_to(source: tuple[int, ...], target: tuple[int, ...]) -> bool:
    """Tell whether numpy repeats an array of shape `source` to `target`."""
    aligned = target[len(target) - len(source) :] if len(source) <= len(target) else ()
    return len(aligned) == len(source) and all(
        have in (want, 1) for have, want in zip(source, aligned, strict=True)
    )


def normalize_axis(op: str, axis: object, shape: Sequence[Dim | int], extra: int = 0) -> int:
    """Return `axis` counted from the front; the result has so many `extra` axes."""
    index = as_int(op, "axis", axis)
    rank = len(shape) + extra
    if not -rank <= index < rank:
        allowed = f"{-rank} to {rank - 1}" if rank else "none, a 0-d tensor has no axes"
        raise AxisError(
            f"{op}: axis {index} is outside the shape {written(shape)}; allowed: {allowed}"
        )
    return index % rank


def normalize_axes(op: str, axis: object, shape: Sequence[Dim | int]) -> tuple[int, ...]:
    """Return the axes that `axis` names (None names all), counted from the front, in order."""
    if axis is None:
        return tuple(range(len(shape)))
    if not isinstance(axis, tuple):
        return (normalize_axis(op, axis, shape),)
    axes = tuple(normalize_axis(op, one, shape) for one in axis)
    if len(set(axes)) != len(axes):
        raise AxisError(f"{op}: axes {axis} name one axis of {written(shape)} twice")
    return tuple(sorted(axes))


# What can be iterated, and is no row of sizes: some have no order.
_NO_SHAPES = (str, bytes, bytearray, memoryview, AbstractSet, Mapping)


def _as_tuple(op: str, shape: object) -> tuple[object, ...]:
    # What is usual first, which is found in a fraction of the time.
    if isinstance(shape, tuple | list | Iterable) and not isinstance(shape, _NO_SHAPES):
        return tuple(shape)
    raise ArgumentTypeError(f"{op}: a shape is a tuple of ints, got {shape!r}; write (5, 3), say")
