"""Kernels write to nothing that is not theirs; `tests/arrays` tries them on other arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

import tapetensor as tt
from tapetensor.arrays.array import Array
from tapetensor.tape.history import next_id
from tapetensor.tensor.base import wrap
from tests.ops.calling import gradients_of, on_every, reference_of, result_of, tensors_of
from tests.ops.rows import Case
from tests.ops.samples import CASES

_CASES = [case for case in CASES if case.op.is_differentiable]


def _tensor_around(array: Any) -> Any:
    return wrap(tt.Tensor, array, next_id(), None)


def _read_only(array: Array) -> Any:
    copy = array.copy()
    copy.setflags(write=False)
    return _tensor_around(copy)


@on_every(_CASES)
def test_kernels_write_neither_to_operands_nor_to_the_cotangent(
    case: Case, rng: np.random.Generator
) -> None:
    shape = np.shape(reference_of(case))
    cotangent = np.asarray(rng.standard_normal(shape))
    operands = tensors_of(case.sample, make=_read_only)
    before = [x.numpy().copy() for x in operands if isinstance(x, tt.Tensor)]

    gradients = gradients_of(case, operands, _read_only(cotangent))

    expected = gradients_of(case, tensors_of(case.sample), tt.from_numpy(cotangent))
    for gradient, value in zip(gradients, expected, strict=True):
        np.testing.assert_array_equal(gradient, value)
    # A write to memory behind a read-only flag would show here.
    after = [x.numpy() for x in operands if isinstance(x, tt.Tensor)]
    for x, y in zip(before, after, strict=True):
        np.testing.assert_array_equal(x, y)


@on_every(_CASES)
def test_a_pullback_can_be_run_again_with_any_cotangent(
    case: Case, rng: np.random.Generator
) -> None:
    operands = tensors_of(case.sample)
    traced = [x.trace() if i in case.sample.float_positions else x for i, x in enumerate(operands)]
    y = result_of(case, traced)
    pullbacks = y.history[2]
    g = np.asarray(rng.standard_normal(y.shape))

    # An op of one operand is recorded without the tuple.
    for pullback in pullbacks if isinstance(pullbacks, tuple) else (pullbacks,):
        if pullback is not None:
            first = np.array(pullback(g))
            np.testing.assert_allclose(pullback(2 * g), 2 * first, rtol=1e-12)
            np.testing.assert_array_equal(pullback(g), first)
