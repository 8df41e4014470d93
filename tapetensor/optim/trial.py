"""A trial of the update of an optimizer of one's own, before its first step."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapetensor.arrays.array import Array
from tapetensor.errors import ArgumentTypeError, ArgumentValueError


def try_update(
    op: str,
    kernel: Callable[..., None],
    starts: Sequence[float],
    options: Callable[[int], tuple[Any, ...]],
    dtype: np.dtype[Any],
) -> None:
    """Run an update on arrays of its own, and refuse one that breaks the contract of `Optimizer`.

    Args:
        op: the name of the optimizer.
        kernel: the update.
        starts: the first value of each array of state.
        options: what the update is given at the end, by the number of the step.
        dtype: that of the parameters.

    Raises:
        ArgumentTypeError: if it takes another number of arguments, or returns something.
        ArgumentValueError: if it leaves `out` unwritten, writes to the parameter or the gradient,
            or reads the gradient after `out` was written.
    """
    taken = options(1)
    _check_arity(op, kernel, len(starts), taken)
    parameter = np.array([0.5, -0.25, 0.75], dtype)
    gradient = np.array([0.125, 0.5, -0.25], dtype)
    made = [
        _run(op, kernel, parameter, gradient, starts, taken, np.full_like(parameter, fill))
        for fill in (np.nan, 0.0)
    ]
    unwritten = np.isnan(made[0]) & (made[1] == 0.0)
    if unwritten.any():
        raise ArgumentValueError(
            f"{op}: its update writes nothing to {'its argument out' if unwritten.all() else ''}"
            f"{'' if unwritten.all() else 'a part of out'}, which takes the new parameter; write "
            "out[...] = parameter - lr * gradient, not parameter = ..., and return nothing"
        )
    aliased = _run(op, kernel, parameter, gradient, starts, taken, None)
    if not np.array_equal(aliased, made[1], equal_nan=True):
        raise ArgumentValueError(
            f"{op}: its update reads the gradient after it has written to out, which may be the "
            "memory of the gradient; write to out last, or in one expression: "
            "out[...] = parameter - lr * gradient"
        )


def _check_arity(op: str, kernel: Callable[..., None], states: int, taken: tuple[Any, ...]) -> None:
    if not isinstance(taken, tuple):
        raise ArgumentTypeError(
            f"{op}: _options(count) must return a tuple, got {type(taken).__name__}; "
            "write (self.lr,), say"
        )
    try:
        signature = inspect.signature(kernel)
    except (TypeError, ValueError):
        return
    try:
        signature.bind(*[None] * (3 + states + 1 + len(taken)))
    except TypeError as error:
        parts = ["out, parameter, gradient", f"{states} of state" * bool(states), "scratch"]
        parts += [f"{len(taken)} that _options returns"] * bool(taken)
        raise ArgumentTypeError(
            f"{op}: its update takes {signature}, and is given {', '.join(filter(None, parts))}: "
            f"{error}"
        ) from error


def _run(
    op: str,
    kernel: Callable[..., None],
    parameter: Array,
    gradient: Array,
    starts: Sequence[float],
    taken: tuple[Any, ...],
    out: Array | None,
) -> Array:
    """Return what the update writes to `out`, or where its copy of the gradient is, for None."""
    given, flow = parameter.copy(), gradient.copy()
    target = flow if out is None else out
    state = [np.full_like(given, start) for start in starts]
    scratch = np.empty_like(given), np.empty_like(given)
    with np.errstate(all="ignore"):
        returned: object = kernel(target, given, flow, *state, scratch, *taken)  # type: ignore[func-returns-value]  # one of one's own may return something
    if returned is not None:
        raise ArgumentTypeError(
            f"{op}: its update returns {type(returned).__name__}, and must write to its first "
            "argument, out, and return nothing: out[...] = parameter - lr * gradient"
        )
    if not np.array_equal(given, parameter) or (
        out is not None and not np.array_equal(flow, gradient)
    ):
        raise ArgumentValueError(
            f"{op}: its update writes to the parameter or the gradient, which others hold, too; "
            "write to out, and to the arrays of state"
        )
    return target
