"""Calling an op of the table: its operands as tensors, its result, its gradients."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import numpy as np

import tapetensor as tt
from tapetensor.arrays.array import Array
from tests.ops.rows import Case, Sample, is_float_array


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
