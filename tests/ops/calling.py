"""Calling an op of the table: its operands as tensors, its result, its gradients."""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Callable, Collection, Iterable
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor.arrays.array import Array
from tests.ops.rows import Case, Sample, is_float_array


def on_every(cases: Iterable[Case]) -> Callable[[Callable[..., None]], Any]:
    """Make a test of a case one for each op, which runs it on all cases that the op has here.

    Not a test for each case: what pytest does around one takes longer than most of them. A failure
    says which case it is; a generator `rng` is a fresh one for each. Where all cases of an op are
    skipped, its test is.
    """
    of_ops: dict[str, list[Case]] = {}
    for case in cases:
        of_ops.setdefault(case.op.name, []).append(case)

    def decorated(test: Callable[..., None]) -> Any:
        taken = list(inspect.signature(test).parameters.values())

        @functools.wraps(test)
        def on_all(cases: list[Case], **fixtures: Any) -> None:
            skipped = []
            for case in cases:
                try:
                    test(case, **copy.deepcopy(fixtures))
                except pytest.skip.Exception as reason:
                    skipped.append(reason)
                except BaseException as error:
                    error.add_note(f"This is the case {case.name}.")
                    raise
            if len(skipped) == len(cases):
                raise skipped[0]

        named = inspect.Parameter("cases", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        signature = inspect.Signature([named, *taken[1:]])
        on_all.__signature__ = signature  # type: ignore[attr-defined]  # it is inspect's own name
        return pytest.mark.parametrize("cases", of_ops.values(), ids=of_ops)(on_all)

    return decorated


def tensors_of(
    sample: Sample,
    dtype: type[np.generic] = np.float64,
    make: Callable[[Array], Any] = tt.from_numpy,
) -> list[Any]:
    """Return the operands with every array made a plain tensor, and float arrays of `dtype`."""
    return [
        make(operand.astype(dtype) if is_float_array(operand) else operand)
        if isinstance(operand, np.ndarray)
        else operand
        for operand in sample.operands
    ]


def traced_at(operands: list[Any], positions: Collection[int]) -> list[Any]:
    """Return the operands with those at `positions` traced."""
    return [x.trace() if i in positions else x for i, x in enumerate(operands)]


def result_of(case: Case, operands: list[Any]) -> Any:
    """Return the result of the op."""
    return case.op.call(*operands, **case.sample.options)


def of_floats(case: Case, operands: list[Any]) -> Callable[..., Any]:
    """Return the op as a function of its float operands alone."""

    def f(*inputs: Any) -> Any:
        given = dict(enumerate(operands)) | dict(
            zip(case.sample.float_positions, inputs, strict=True)
        )
        return result_of(case, [*given.values()])

    return f


def reference_of(case: Case, operands: Collection[Any] | None = None) -> Any:
    """Return what numpy makes of the operands; of those of the sample by default."""
    arrays = case.sample.operands if operands is None else operands
    return case.op.reference(*arrays, **case.sample.options)


def gradients_of(
    case: Case, operands: list[Any], cotangent: Any, traced: Collection[int] | None = None
) -> list[Any]:
    """Return the gradient arrays of the float operands, each None where nothing flowed to it.

    Traces those at `traced`, all of them by default.
    """
    positions = case.sample.float_positions
    y = result_of(case, traced_at(operands, positions if traced is None else traced))
    gradients = y.backward(cotangent)
    return [gradients.array(operands[position].id) for position in positions]


def strided(array: Array) -> Any:
    """Return a plain tensor of the elements that is not contiguous, where there are two axes."""
    axes: Any = tuple(reversed(range(array.ndim)))
    return tt.from_numpy(array.T).permute_dims(axes)
