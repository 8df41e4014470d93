"""numpy's functions that are no ufuncs, tried while they are captured to see what they give."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache
from inspect import unwrap
from types import FunctionType
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np

from tapetensor.arrays.array import Array
from tapetensor.arrays.stand_ins import CapturedArray, shadow
from tapetensor.compiler.trace.functions import (
    FUNCTIONS,
    KNOWN_BY_SHAPE,
    REWRITTEN,
    SHAPE_DEPENDS_ON_VALUES,
    VALUES_DECIDE,
    WRITING,
    other_values,
)
from tapetensor.compiler.trace.node import Kind, found_in, replaced
from tapetensor.compiler.trace.number import NumberTracer, dummy
from tapetensor.compiler.trace.operations import copied, into, looks
from tapetensor.compiler.trace.refusals import trace_error
from tapetensor.compiler.trace.ufuncs import written
from tapetensor.compiler.trace.view import lying

if TYPE_CHECKING:
    from tapetensor.compiler.trace.tracer import ArrayTracer


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
    if function in WRITING:
        written(args[0], function, args[1:], options, name)
        return None
    if function in SHAPE_DEPENDS_ON_VALUES:
        raise trace_error(VALUES_DECIDE.format(name))
    if function in _READING:
        raise trace_error(f"{name} reads values or memory; return the array, and call it outside")
    if options.get("out") is not None:
        rest = {key: value for key, value in options.items() if key != "out"}
        return written(options["out"], into(function), args, rest, name)
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
    return lying((*shapes[0][:place], total, *shapes[0][place + 1 :]), dtype, None)


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
