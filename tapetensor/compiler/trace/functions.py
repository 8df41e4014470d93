"""numpy's functions that are no ufuncs, for tracers: by rules, or by trying what they give."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterable
from functools import cache, partial
from inspect import unwrap
from types import FunctionType
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np
from numpy._core import _methods

from tapetensor.arrays.array import Array
from tapetensor.arrays.rearranging import REARRANGED, shadow
from tapetensor.arrays.stand_ins import Captured, CapturedArray
from tapetensor.compiler.trace.node import Kind, Shape, View, found_in, lying, replaced
from tapetensor.compiler.trace.number import NumberTracer, dummy
from tapetensor.compiler.trace.operations import alike, copied, looks, select, unwritten, write_all
from tapetensor.compiler.trace.refusals import check_writer, trace_error
from tapetensor.compiler.trace.ufuncs import as_operand

if TYPE_CHECKING:
    from tapetensor.compiler.trace.tracer import ArrayTracer

# Whether `np.where` makes another number of one that is too large for the other choice.
_WRAPS_AROUND = np.lib.NumpyVersion(np.__version__) < "2.5.0"


# The error for a result that a plan has no place for.
VALUES_DECIDE = (
    "{} gives a shape or a dtype that depends on the values; choose by np.where(mask, a, b), or "
    "call it outside on what the function returns"
)


def _broadcast_to(self: ArrayTracer, array: ArrayTracer, shape: Shape) -> ArrayTracer:
    wanted = np.broadcast_to(shadow(array), shape).shape
    return array.viewed(View("broadcast_to", wanted), wanted)


def _constant(self: ArrayTracer, a: Any) -> Any:
    if isinstance(a, Captured):
        return a
    array = np.asarray(a)
    return self.wrap(self.operand(array, array.dtype), array)


def _filled(
    fill: Callable[..., Array], self: ArrayTracer, a: ArrayTracer, *args: Any, **options: Any
) -> Any:
    like = np.empty_like(shadow(a), *args, **options)
    # That of zeros is an empty text, and numbers of Python's that do not fit raise an error.
    constant = self.program.constant(fill(dtype=like.dtype))
    return self.wrap(self.program.broadcast(constant, like.shape), like)


def _copyto(self: ArrayTracer, dst: Any, src: Any, **options: Any) -> None:
    check_writer()
    if options or not isinstance(dst, Captured):
        raise trace_error("np.copyto writes into an array; use np.where, which makes a new one")
    dst.array.write(write_all, src)


def _empty_like(self: ArrayTracer, prototype: ArrayTracer, *args: Any, **options: Any) -> Any:
    like = np.empty_like(shadow(prototype), *args, **options)
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
    like = np.empty_like(shadow(a), *args, **options)
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
    return self.wrap(self.program.elementwise(select, operands, dtype), np.empty(()))


def _expand_dims(a: Any, axis: Any) -> Any:
    # numpy makes an array of a scalar, also where it gets no axis.
    array = a.as_scalar(False) if getattr(a, "is_scalar", False) else a
    return REARRANGED[np.expand_dims](array, axis)


# Written by other functions of numpy.
REWRITTEN: dict[Any, Callable[..., Any]] = {
    **REARRANGED,
    np.expand_dims: _expand_dims,
    np.ravel: lambda a, order="C": np.reshape(a, -1, order),
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
    np.copyto: _copyto,
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
    {np.put, np.place, np.putmask, np.put_along_axis, np.fill_diagonal}
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


# What a trial may give.
_NUMBERS = (np.ndarray, np.generic, bool, int, float)
# Functions of these modules, and types, may be called as often as anybody likes.
_CALLED = ("numpy", "builtins", "math")
_JOINING = frozenset({np.concatenate, np.stack})
# What these write or show are values, or memory that a plan has not.
_READING = frozenset(
    {np.array2string, np.array_repr, np.array_str, np.may_share_memory, np.save, np.savetxt,
     np.savez, np.savez_compressed, np.shares_memory}
)  # fmt: skip
_BYTE = np.dtype(np.uint8)


def capture_function(
    self: ArrayTracer, function: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]
) -> Any:
    """Capture a call of one of numpy's functions that are no ufuncs."""
    args, options = _out_by_name(function, args, options)
    if function in REWRITTEN:
        # These ask their first argument for what numbers do not have.
        first: Any = args[0] if args else None
        if isinstance(first, NumberTracer):
            args = (first.array.as_scalar(False), *args[1:])
        return REWRITTEN[function](*args, **options)
    if function in FUNCTIONS:
        return FUNCTIONS[function](self, *args, **options)
    if function in KNOWN_BY_SHAPE:
        given = replaced((args, options), dummy)
        return function(*given[0], **given[1])
    return capture_by_trial(self, function, args, options)


def _out_by_name(
    function: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments of a call with `out`, and all that follow it, by their names."""
    names = _names_of_arguments(function)
    if "out" not in names[: len(args)]:
        return args, options
    place = names.index("out")
    return args[:place], {**dict(zip(names[place:], args[place:], strict=False)), **options}


@cache
def _names_of_arguments(function: Callable[..., Any]) -> tuple[str, ...]:
    """Return the names of the arguments that may be given by position, as far as they are known."""
    python: Any = unwrap(function)
    if not isinstance(python, FunctionType):
        # Python takes milliseconds to read what functions of C have written down, if they do.
        return ("", "", "out") if function in (np.concatenate, np.dot) else ()
    return python.__code__.co_varnames[: python.__code__.co_argcount]


def capture_by_trial(
    self: ArrayTracer, function: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]
) -> Any:
    """Capture a call of one of numpy's functions: views where it gives views, else a step.

    A trial on arrays that lie in memory as the real ones will do shows which, and another one
    on other values shows whether shapes depend on them.
    """
    name = f"np.{function.__name__}"
    if function in WRITING or options.get("out") is not None:
        check_writer()
        raise trace_error(f"{name} writes into an array; use what a function returns")
    if function in SHAPE_DEPENDS_ON_VALUES:
        raise trace_error(VALUES_DECIDE.format(name))
    if function in _READING:
        raise trace_error(f"{name} reads values or memory; return the array, and call it outside")
    args, options = replaced((args, options), _known_scalar)
    joined = _joined(function, *args, **options) if function in _JOINING else None
    if joined is not None:
        return self.capture_step(function, args, options, joined)
    handed: list[Array] = []
    results = _tried(name, function, args, options, handed)
    many = isinstance(results, tuple | list)
    listed = list(results) if many else [results]
    if not all(isinstance(one, _NUMBERS) for one in listed):
        raise trace_error(f"{name} gives no arrays; call it outside on what the function returns")
    given = [one for one in found_in((args, options), np.ndarray) if type(one) is np.ndarray]
    known = {place: one for place, one in enumerate(listed) if any(one is each for each in given)}
    # A plan writes over its memory, of which a result is to show nothing.
    is_view = any(np.may_share_memory(one, each) for one in listed for each in handed)
    made = self.capture_step(copied(function) if is_view else function, args, options, results)
    if known:
        parts = [known.get(place, one) for place, one in enumerate(made if many else [made])]
        return results.__class__(parts) if many else parts[0]
    return NumberTracer(made) if results.__class__ in (bool, int, float) else made


def _joined(function: Any, arrays: Any, axis: Any = 0, *others: Any, **options: Any) -> Any:
    """Return what joined arrays look like, elements aside; None if a trial must tell.

    To join all of them takes as long as the step itself.
    """
    is_known = type(axis) is int and not others and not options and type(arrays) in (list, tuple)
    if not is_known or not all(_is_tracer(one) and not one.is_scalar for one in arrays):
        return None
    shapes = [one.shape for one in arrays]
    if function is np.stack:
        shapes = [np.expand_dims(np.empty(one, _BYTE), axis).shape for one in shapes]
    axes = range(len(shapes[0]))
    if not -len(axes) <= axis < len(axes):
        return None
    place = axes[axis]
    if len({(*one[:place], 0, *one[place + 1 :]) for one in shapes}) != 1:
        return None
    total = sum([one[place] for one in shapes])
    dtype = np.result_type(*[one.dtype for one in arrays])
    return lying((*shapes[0][:place], total, *shapes[0][place + 1 :]), dtype)


def _tried(
    name: str,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    options: dict[str, Any],
    handed: list[Array],
) -> Any:
    """Return what a function gives for arrays of zeros, or of other values if it must."""

    def zeros(value: Any) -> Any:
        given = dummy(value)
        if _is_tracer(value) and not value.is_scalar:
            given.flags.writeable = False
            handed.append(given)
        elif callable(value) and str(value.__module__) not in _CALLED:
            raise trace_error(
                f"{name} calls a function whose effects are not known; write it with functions "
                "of numpy that work on whole arrays"
            )
        return given

    def others(value: Any, values: Callable[[Array], Array] = other_values) -> Any:
        if isinstance(value, NumberTracer):
            return value.__class__(1)
        if not _is_tracer(value):
            return value
        if value.node.kind is Kind.CONSTANT and not value.is_scalar:
            return value.node.detail
        one = np.ones((), value.dtype)[()]
        return one if value.is_scalar else values(shadow(value))

    def ones(value: Any) -> Any:
        # Weights of an average, or the ends of a geometric sequence, may not be zero.
        return others(value, lambda like: np.broadcast_to(np.ones_like(like), like.shape))

    tries, error = list[Any](), None
    for kind in (zeros, others, ones):
        if kind is ones and tries:
            break
        given = replaced((args, options), kind)
        if kind is zeros and function is np.polyfit:
            # Of these LAPACK prints a complaint.
            continue
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tries.append(function(*given[0], **given[1]))
        except Exception as raised:  # The other values may do.
            error = error or raised
    if not tries:
        assert error is not None
        if "read-only" in str(error):
            raise trace_error(f"{name} writes into its operand; use what it returns")
        raise error
    if len(tries) == 2 and looks(tries[0]) != looks(tries[1]):
        raise trace_error(VALUES_DECIDE.format(name))
    return tries[0]


def _known_scalar(value: Any) -> Any:
    """Return a scalar that is a constant as numpy's, for it may be an axis, say."""
    is_one = _is_tracer(value) and value.is_scalar and value.node.kind is Kind.CONSTANT
    return value.read() if is_one else value


def _is_tracer(value: Any) -> TypeGuard[ArrayTracer]:
    return isinstance(value, CapturedArray)
