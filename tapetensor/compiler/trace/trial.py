"""numpy's functions that are no ufuncs, tried while they are captured to see what they give."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from functools import cache
from inspect import unwrap
from types import FunctionType
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np

from tapetensor.arrays.array import Array
from tapetensor.arrays.rearranging import shadow
from tapetensor.arrays.stand_ins import Captured, CapturedArray
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
from tapetensor.compiler.trace.ufuncs import told_apart, written
from tapetensor.compiler.trace.view import View, spread, steps_to

if TYPE_CHECKING:
    from tapetensor.compiler.trace.tracer import ArrayTracer


# What a trial may give.
_NUMBERS = (np.ndarray, np.generic, bool, int, float)
# Functions of these modules, and types, may be called as often as anybody likes.
_CALLED = ("numpy", "builtins", "math")
# What hands its operands to the BLAS.
_PRODUCTS = frozenset({np.dot, np.inner, np.tensordot, np.einsum, np.linalg.multi_dot})
_JOINING = frozenset({np.concatenate, np.stack})
# What these write or show are values, or memory that a plan has not.
_READING = frozenset(
    {np.array2string, np.array_repr, np.array_str, np.may_share_memory, np.save, np.savetxt,
     np.savez, np.savez_compressed, np.shares_memory}
)  # fmt: skip
# numpy does not let anybody write into the views that these give.
_READ_ONLY = frozenset(
    {np.diagonal, np.diag, np.linalg.diagonal, np.lib.stride_tricks.sliding_window_view}
)


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
    tracers: list[tuple[ArrayTracer, Array]] = []
    results = _tried(name, function, args, options, tracers)
    arrays: Iterable[Any] = found_in((args, options), CapturedArray)
    found: list[ArrayTracer] = list(arrays)
    many = isinstance(results, tuple | list)
    listed = list(results) if many else [results]
    if not all(isinstance(one, _NUMBERS) for one in listed):
        raise trace_error(f"{name} gives no arrays; call it outside on what the function returns")
    views = [_seen(name, one, tracers) for one in listed]
    if any(one is not None for one in views):
        for place, like in enumerate(listed):
            view = views[place]
            if view is None and like.size == 0:
                # Nobody can tell a view of no elements from a copy.
                views[place] = self.wrap(self.program.constant(like))
            elif view is None:
                raise trace_error(
                    f"{name} gives views beside copies; call it on one array at a time"
                )
            else:
                view.is_read_only |= function in _READ_ONLY and not options.get("writeable")
        return results.__class__(views) if many else views[0]
    # A view of no elements is not told from a copy.
    is_read_only = function in _READ_ONLY and not results.flags.writeable
    has_gaps = any(
        one.root().part is not None or (0 in seen.strides and seen.size) for one, seen in tracers
    )
    if has_gaps or any(one.is_scalar for one in found):
        # A plan holds these as whole arrays, which the function might give a view of.
        function = copied(function)
    if function in _PRODUCTS:
        told_apart(found)
    given = [one for one in found_in((args, options), np.ndarray) if type(one) is np.ndarray]
    known = _given_back(name, listed, given)
    made = self.capture_step(function, args, options, results)
    if known:
        parts = [known.get(place, one) for place, one in enumerate(made if many else [made])]
        return results.__class__(parts) if many else parts[0]
    if is_read_only:
        return made.read_only()
    return NumberTracer(made) if results.__class__ in (bool, int, float) else made


def _joined(function: Any, arrays: Any, axis: Any = 0, *others: Any, **options: Any) -> Any:
    """Return how joined arrays lie, which a few of their elements show; None if a trial must.

    To join all of them takes as long as the step itself.
    """
    is_known = type(axis) is int and not others and not options and type(arrays) in (list, tuple)
    if not is_known or not all(_is_tracer(one) and not one.is_scalar for one in arrays):
        return None
    shown = [one.laid_out() for one in arrays]
    is_repeated = any(0 in one.strides for one in shown)
    if function is np.stack:
        shown = [np.expand_dims(one, axis) for one in shown]
    axes = range(shown[0].ndim)
    kept = {(*one.shape[:axis], 0, *one.shape[axis:][1:]) for one in shown}
    if is_repeated or len(kept) != 1 or not -len(axes) <= axis < len(axes):
        return None
    place = axes[axis]
    few = tuple([slice(None if one == place else 2) for one in axes])
    joined = np.concatenate([one[few] for one in shown], axis)
    shape = list(shown[0].shape)
    shape[place] = joined.shape[place]
    return spread(joined, tuple(shape))


def _given_back(name: str, results: list[Any], given: list[Array]) -> dict[int, Array]:
    """Return the results that are arrays of numpy's which a function was given, by place."""
    known = {id(one) for one in given}
    found = {place: one for place, one in enumerate(results) if id(one) in known}
    others = [one for one in results if id(one) not in known]
    if any(np.may_share_memory(one, each) for one in others for each in given):
        raise trace_error(f"{name} gives a view of an array that is no argument; copy that")
    return found


def _tried(
    name: str,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    options: dict[str, Any],
    tracers: list[tuple[ArrayTracer, Array]],
) -> Any:
    """Return what a function gives for arrays of zeros, or of other values if it must."""
    # What is captured, each with what the function is given for it.
    handed: list[tuple[Any, Any]] = []

    def zeros(value: Any) -> Any:
        given = dummy(value)
        if isinstance(value, Captured):
            handed.append((value, given))
        if _is_tracer(value) and not value.is_scalar:
            given.flags.writeable = False
            tracers.append((value, given))
        elif callable(value) and value.__module__ not in _CALLED:
            raise trace_error(
                f"{name} calls a function whose effects are not known; write it with functions "
                "of numpy that work on whole arrays"
            )
        return given

    def others(value: Any, values: Callable[[Array], Array] = other_values) -> Any:
        given: Any = value
        if isinstance(value, NumberTracer):
            given = value.__class__(1)
        elif _is_known(value):
            given = value.node.detail
        elif _is_tracer(value):
            one = np.ones((), value.dtype)[()]
            given = one if value.is_scalar else values(shadow(value))
        if isinstance(value, Captured):
            handed.append((value, given))
        return given

    def ones(value: Any) -> Any:
        # Weights of an average, or the ends of a geometric sequence, may not be zero.
        return others(value, lambda like: np.broadcast_to(np.ones_like(like), like.shape))

    tries, seen, error = list[Any](), list[set[bool]](), None
    for kind in (zeros, others, ones):
        if kind is ones and tries:
            break
        handed.clear()
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
        else:
            seen.append(_are_seen(handed, tries[-1]))
    if not tries:
        assert error is not None
        if "read-only" in str(error):
            raise trace_error(f"{name} writes into its operand; write x[...] = of what it returns")
        raise error
    # A replay does not call what gives a view: no value may decide which, nor be checked.
    if {True, False} in seen or (error is not None and {True} in seen):
        raise trace_error(
            f"{name} gives a view that may depend on values which are not known yet; pass plain "
            "numbers, choose one of all views by np.stack([...])[k], or call it outside"
        )
    if len(tries) == 2 and looks(tries[0]) != looks(tries[1]):
        raise trace_error(VALUES_DECIDE.format(name))
    return tries[0]


def _known_scalar(value: Any) -> Any:
    """Return a scalar that is a constant as numpy's, for it may be an axis, say."""
    is_one = _is_tracer(value) and value.is_scalar and value.node.kind is Kind.CONSTANT
    return value.read() if is_one else value


def _are_seen(handed: list[tuple[Any, Any]], results: Any) -> set[bool]:
    """Tell of what is captured whether results are views of it; of a known value only if so."""
    made = list(found_in(results, np.ndarray))
    seen = [any(np.may_share_memory(given, one) for one in made) for _, given in handed]
    return {
        is_seen
        for is_seen, (value, given) in zip(seen, handed, strict=True)
        # What has no elements has no say either.
        if is_seen or (np.size(given) and not _is_known(value))
    }


def _is_known(value: Any) -> bool:
    """Tell whether a function is given the values of an array, which is a constant."""
    if not _is_tracer(value) or value.is_scalar or value.node.kind is not Kind.CONSTANT:
        return False
    return value.laid_out() is value.node.detail


def _is_tracer(value: Any) -> TypeGuard[ArrayTracer]:
    return isinstance(value, CapturedArray)


def _seen(name: str, result: Any, tracers: list[tuple[ArrayTracer, Array]]) -> ArrayTracer | None:
    """Return the view that a result of a trial is, of the arrays that it was given."""
    if not isinstance(result, np.ndarray):
        return None
    for tracer, array in tracers:
        if result is array:
            return tracer
        base: Any = result.base
        if not array.size and base is not None and (base is array or base is array.base):
            # Nothing tells where it begins.
            return tracer.viewed(View("reshape", result.shape), result.shape)
        if not np.may_share_memory(result, array):
            continue
        steps = steps_to(array, result)
        if steps is None:
            # Where parts overlap, those of a copy do so, too.
            copy = "" if result.size > array.size else "on a copy or "
            raise tracer.refusal(
                f"{name} gives a view of a kind that cannot be traced; call it {copy}outside, or "
                "write it with slices"
            )
        # Even a view of all elements as they are is another array.
        tracer = tracer.viewed(View("reshape", tracer.shape), tracer.shape)
        for step in steps:
            tracer = tracer.viewed(step, step(shadow(tracer)).shape)
        return tracer
    return None
