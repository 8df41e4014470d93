"""Functions that a plan calls beside numpy's own."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from tapetensor.arrays.array import Array
from tapetensor.compiler.trace.node import DType, Node
from tapetensor.kernels.numerics.choice import blend, can_blend
from tapetensor.tape import Pullbacks
from tapetensor.tape.pullbacks import JointPullbacks, Needed


# By the class of a dtype, too: ``longlong`` equals ``int64``, but has other scalars.
@lru_cache(None, typed=True)
def cast_to(dtype: DType) -> Any:
    """Return the function ``cast(x, out)`` to a dtype, always the same: so equal casts merge."""

    def cast(x: Any, out: Any = None) -> Any:
        if out is None:
            return x.astype(dtype)
        np.copyto(out, x, casting="unsafe")
        return out

    return cast


def select(mask: Any, lhs: Any, rhs: Any, out: Any = None) -> Any:
    """``np.where`` that can write to `out`."""
    if out is None:
        return np.where(mask, lhs, rhs)
    if can_blend(mask, lhs, rhs):
        return blend(mask, lhs, rhs, out)
    np.copyto(out, rhs)
    np.copyto(out, lhs, where=mask)
    return out


def writes_anywhere(node: Node) -> bool:
    """Tell whether numpy computes a value rightly also into memory that is not in order."""
    return node.function not in _ONLY_IN_ORDER


# These functions of numpy 2.4 take the wrong elements of some arrays into memory with gaps.
_ONLY_IN_ORDER = frozenset({np.negative, np.isnan, np.isfinite, np.signbit})


def unwritten(out: Array) -> None:
    """Leave an array as it is: nothing has been written to it yet."""


def read_index(array: Any, index: Any) -> Any:
    """``array[index]``."""
    return array[index]


def write_all(array: Any, value: Any) -> None:
    """``array[...] = value``, which converts as `np.copyto` does not."""
    array[...] = value


def write_index(array: Any, index: Any, value: Any) -> None:
    """``array[index] = value``."""
    array[index] = value


@lru_cache(None, typed=True)
def number_of(dtype: DType) -> Any:
    """Return the function that makes a number of Python's an integer of `dtype`, or raises."""

    def number(value: float) -> Any:
        return np.asarray(dtype.type(value))

    # What raises is known by its module.
    number.__module__ = operator.add.__module__
    return number


def item(array: Any) -> Any:
    """Return an array of one element, or a scalar of numpy's, as Python's number; one is itself."""
    return array if array.__class__ is float else array.item()


def copied(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return `function` with copies of its results, in C order and in memory of their own."""

    def run(*args: Any, **options: Any) -> Any:
        results = function(*args, **options)
        if isinstance(results, tuple | list):
            return [np.array(one, order="C") for one in results]
        return np.array(results, order="C")

    run.__name__ = function.__name__
    # A method of a ufunc does not say where it is from.
    run.__module__ = getattr(function, "__module__", "")
    return run


def run_pullbacks(made: tuple[Array, Pullbacks], g: Array, needed: Needed, *_: Any) -> list[Array]:
    """Return the cotangents that are needed, given what a kernel has returned, in C order.

    What follows are the operands, which the pullbacks may hold.
    """
    pullbacks: Pullbacks = made[1]
    if isinstance(pullbacks, JointPullbacks):
        pullbacks = pullbacks.narrow(needed)
    # Pullbacks know a cotangent that they have seen by its identity, and a plan has its memory
    # written again.
    g = g.view()
    return [
        np.ascontiguousarray(pullback(g))
        for pullback, is_needed in zip(pullbacks, needed, strict=True)
        if pullback is not None and is_needed
    ]


def looks(results: Any) -> Any:
    """Return the shapes and dtypes in a nest of results."""
    if isinstance(results, tuple | list):
        return [looks(one) for one in results]
    array = np.asarray(results)
    return array.shape, array.dtype


def alike(function: Callable[..., Any], results: Any) -> Callable[..., Any]:
    """Return `function`, which raises an error where its results look not as the given ones.

    Then the function that was captured runs itself.
    """
    expected = looks(results)

    def run(*args: Any, **options: Any) -> Any:
        found = function(*args, **options)
        if looks(found) != expected:
            raise ValueError("a number that is not known decides the shape")
        return found

    run.__name__ = function.__name__
    run.__module__ = getattr(function, "__module__", "")
    return run
