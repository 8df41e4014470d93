"""numpy's functions that are no ufuncs, and its rules for operands, for tracers."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy._core import _methods

from tapetensor.arrays.array import Array
from tapetensor.arrays.stand_ins import REARRANGED, Captured
from tapetensor.compiler.trace.node import Kind, Shape, found_in, shape_of_all
from tapetensor.compiler.trace.number import dummy
from tapetensor.compiler.trace.operations import alike, select, unwritten
from tapetensor.compiler.trace.refusals import trace_error
from tapetensor.compiler.trace.ufuncs import as_operand, computed_like
from tapetensor.compiler.trace.view import View

# Whether `np.where` makes another number of one that is too large for the other choice.
_WRAPS_AROUND = np.lib.NumpyVersion(np.__version__) < "2.5.0"

if TYPE_CHECKING:
    from tapetensor.compiler.trace.tracer import ArrayTracer


# The error for a result that a plan has no place for.
VALUES_DECIDE = (
    "{} gives a shape or a dtype that depends on the values; choose by np.where(mask, a, b), or "
    "call it outside on what the function returns"
)


def _broadcast_to(self: ArrayTracer, array: ArrayTracer, shape: Shape) -> ArrayTracer:
    wanted = np.broadcast_to(array.laid_out(), shape).shape
    seen = array.viewed(View("broadcast_to", wanted), wanted)
    seen.is_read_only = True
    return seen


def _constant(self: ArrayTracer, a: Any) -> Any:
    if isinstance(a, Captured):
        return a
    array = np.asarray(a)
    return self.wrap(self.operand(array, array.dtype), array)


def _filled(
    fill: Callable[..., Array], self: ArrayTracer, a: ArrayTracer, *args: Any, **options: Any
) -> Any:
    like = np.empty_like(a.laid_out(), *args, **options)
    # That of zeros is an empty text, and numbers of Python's that do not fit raise an error.
    constant = self.program.constant(fill(dtype=like.dtype))
    return self.wrap(self.program.broadcast(constant, like.shape), like)


def _empty_like(self: ArrayTracer, prototype: ArrayTracer, *args: Any, **options: Any) -> Any:
    like = np.empty_like(prototype.laid_out(), *args, **options)
    # A detail of its own keeps it from being merged with another such array.
    own = object()
    made = self.program.add(Kind.ELEMENTWISE, unwritten, (), like.shape, like.dtype, own)
    return self.wrap(made, like)


def _full_like(
    self: ArrayTracer, a: ArrayTracer, fill_value: Any, *args: Any, **options: Any
) -> Any:
    if not isinstance(fill_value, Captured):
        fill = partial(np.full, np.shape(fill_value), fill_value)
        return _filled(fill, self, a, *args, **options)
    like = np.empty_like(a.laid_out(), *args, **options)
    value: Any = fill_value.array.astype(like.dtype)
    return np.broadcast_to(value, like.shape).copy()


def _where(self: ArrayTracer, mask: Any, *choices: Any) -> ArrayTracer:
    if len(choices) != 2:
        raise trace_error(VALUES_DECIDE.format("np.where(mask)"))
    if any(isinstance(one, type) for one in choices):
        raise trace_error("np.where of classes cannot be traced; choose among numbers")
    mask, choices = as_operand(mask), tuple(map(as_operand, choices))
    dtype = np.result_type(
        *[np.dtype(one.dtype) if hasattr(one, "dtype") else one for one in choices]
    )
    if _WRAPS_AROUND:
        choices = tuple(
            (one.array if isinstance(one, Captured) else np.asarray(one)).astype(dtype)
            if one.__class__ is int
            else one
            for one in choices
        )
    operands = (
        self.operand(mask, np.dtype(np.bool_)),
        *[self.operand(one, dtype) for one in choices],
    )
    # Without axes, too, it is an array.
    like = np.asarray(computed_like((mask, *choices), shape_of_all(operands)))
    return self.wrap(self.program.elementwise(select, operands, dtype, like), like)


def _expand_dims(a: Any, axis: Any) -> Any:
    # numpy makes an array of a scalar, also where it gets no axis.
    array = a.as_scalar(False) if getattr(a, "is_scalar", False) else a
    return REARRANGED[np.expand_dims](array, axis)


# Written by other functions of numpy.
REWRITTEN: dict[Any, Callable[..., Any]] = {
    **REARRANGED,
    np.expand_dims: _expand_dims,
    # These call the method of their first argument.
    **{
        one: inspect.unwrap(one)
        for one in (np.all, np.any, np.clip, np.max, np.min, np.prod, np.reshape, np.sum,
                    np.transpose)
    },
}  # fmt: skip
FUNCTIONS: dict[Any, Callable[..., Any]] = {
    np.asarray: _constant,
    np.broadcast_to: _broadcast_to,
    # An axis may be captured, too, whose value counts.
    np.size: lambda self, a, axis=None: np.size(dummy(a), axis),
    np.ones_like: partial(_filled, partial(np.ones, ())),
    np.zeros_like: partial(_filled, partial(np.zeros, ())),
    np.empty_like: _empty_like,
    np.full_like: _full_like,
    np.where: _where,
}
# These read no elements.
KNOWN_BY_SHAPE = frozenset(
    {np.shape, np.ndim, np.iscomplexobj, np.isrealobj, np.einsum_path, np.result_type,
     np.can_cast, np.common_type}
)  # fmt: skip
# numpy's methods of these names are its functions; others are functions of their own.
METHODS: dict[str, Callable[..., Any]] = {
    **{
        name: getattr(np, name)
        for name in ("argmax", "argmin", "argpartition", "argsort", "choose", "compress", "cumprod",
                     "cumsum", "diagonal", "dot", "mean", "nonzero", "ravel", "repeat", "round",
                     "searchsorted", "squeeze", "std", "swapaxes", "take", "trace", "var")
    },
    **{name: vars(_methods)[f"_{name}"] for name in ("all", "any", "clip", "prod", "sum")},
    "max": vars(_methods)["_amax"],
    "min": vars(_methods)["_amin"],
}  # fmt: skip
# These write into their first argument.
WRITING = frozenset(
    {np.copyto, np.put, np.place, np.putmask, np.put_along_axis, np.fill_diagonal}
)  # fmt: skip

# The others show it where they are tried on two kinds of values.
SHAPE_DEPENDS_ON_VALUES = frozenset(
    {np.unique, np.nonzero, np.flatnonzero, np.argwhere, np.compress, np.extract,
     np.intersect1d, np.setdiff1d, np.setxor1d, np.union1d, np.trim_zeros,
     np.unique_all, np.unique_counts, np.unique_inverse, np.unique_values, np.linalg.eig,
     np.linalg.eigvals, np.real_if_close, *[getattr(np.emath, name) for name in np.emath.__all__]}
)  # fmt: skip


def other_values(array: Array) -> Array:
    """Return an array of the shape and the dtype of another, with ones among its zeros."""
    if array.ndim > 1:
        pattern = np.eye(*array.shape[-2:])
    else:
        pattern = 1.0 - np.arange(array.size).reshape(array.shape) % 2
    return np.broadcast_to(np.array(pattern, array.dtype), array.shape)


def shaped(function: Callable[..., Any], arguments: Any, results: Any) -> Callable[..., Any]:
    """Return a function as a step; one of numpy's sees to its shape if it may be given an axis."""
    module = getattr(function, "__module__", None) or "numpy"
    if isinstance(function, np.ufunc) or not module.startswith("numpy"):
        return function
    numbers: Iterable[Any] = found_in(arguments, Captured)
    may_be_axes = [one for one in numbers if not one.array.shape and one.array.dtype.kind in "iu"]
    return alike(function, results) if may_be_axes else function


def is_basic(index: Any) -> bool:
    """Tell whether numpy answers an index with a view."""
    return all(
        one is None or one is ...
        or (isinstance(one, slice | int | np.integer) and not isinstance(one, bool | Captured))
        for one in with_dots(index)
    )  # fmt: skip


def with_dots(index: Any) -> tuple[Any, ...]:
    """Return an index by which numpy gives a view even of a single element, and no scalar."""
    parts = index if isinstance(index, tuple) else (index,)
    return parts if any(one is ... for one in parts) else (*parts, ...)
