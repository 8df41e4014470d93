"""Gradients: exact against the complex step, and against central differences for every tape."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor.testing import check_grad
from tests.ops.calling import (
    gradients_of,
    of_floats,
    on_every,
    reference_of,
    result_of,
    strided,
    tensors_of,
)
from tests.ops.rows import Case
from tests.ops.samples import CASES

_CASES = [case for case in CASES if case.op.is_differentiable]
_EXACT_CASES = [case for case in _CASES if case.op.has_complex_step]
# So small that its square vanishes beside 1, and no difference is taken that could cancel.
_COMPLEX_STEP = 1e-30


@on_every(_EXACT_CASES)
def test_the_gradient_is_that_of_the_complex_step(case: Case, rng: np.random.Generator) -> None:
    cotangent = np.asarray(rng.standard_normal(np.shape(reference_of(case))))
    gradients = gradients_of(case, tensors_of(case.sample), tt.from_numpy(cotangent))

    for position, gradient in zip(case.sample.float_positions, gradients, strict=True):
        direction = np.asarray(rng.standard_normal(case.sample.operands[position].shape))
        stepped = list(case.sample.operands)
        stepped[position] = stepped[position] + 1j * _COMPLEX_STEP * direction
        tangent = np.imag(reference_of(case, stepped)) / _COMPLEX_STEP
        terms = cotangent * tangent

        np.testing.assert_allclose(
            np.sum(gradient * direction),
            np.sum(terms),
            rtol=1e-11,
            atol=1e-13 * (1.0 + np.sum(np.abs(terms))),
        )


@on_every(_CASES)
def test_check_grad_accepts_every_mix_of_plain_and_traced(
    case: Case, rng: np.random.Generator
) -> None:
    operands = tensors_of(case.sample)
    inputs = [operands[position] for position in case.sample.float_positions]

    check_grad(of_floats(case, operands), *inputs, rng=rng)


@on_every(_CASES)
def test_a_gradient_has_the_shape_and_dtype_of_its_operand(case: Case) -> None:
    for dtype in (np.float32, np.float64):
        operands = tensors_of(case.sample, dtype)
        result = result_of(case, operands)
        cotangent = tt.ones(result.shape, result.dtype.type)

        gradients = gradients_of(case, operands, cotangent)

        for position, gradient in zip(case.sample.float_positions, gradients, strict=True):
            assert gradient.shape == operands[position].shape
            assert gradient.dtype == dtype


@on_every(_CASES)
def test_operands_that_are_not_contiguous_get_the_same_gradient(
    case: Case, rng: np.random.Generator
) -> None:
    shape = np.shape(reference_of(case))
    # The cotangent is not contiguous either.
    cotangent = strided(np.asarray(rng.standard_normal(shape)))
    expected = gradients_of(case, tensors_of(case.sample), tt.from_numpy(cotangent.numpy()))

    gradients = gradients_of(case, tensors_of(case.sample, make=strided), cotangent)

    for gradient, value in zip(gradients, expected, strict=True):
        np.testing.assert_allclose(gradient, value, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("through", "exact"), [(np.float32, False), (np.float64, True)], ids=["float32", "float64"]
)
def test_astype_converts_the_cotangent_back(through: Any, exact: bool) -> None:
    x = tt.from_numpy(np.array([0.1, 0.2]))
    cotangent = np.array([0.3, 0.7])

    y = x.trace().astype(through)
    gradient = y.backward(tt.from_numpy(cotangent, dtype=through))[x]

    assert gradient.dtype == np.float64
    assert np.array_equal(gradient.numpy(), cotangent) is exact
    np.testing.assert_allclose(gradient.numpy(), cotangent, rtol=1e-7)


def test_no_gradient_flows_through_integers() -> None:
    x = tt.from_numpy([1.5, 2.5])

    grads = x.trace().astype(np.int64).astype(np.float32).sum().backward()

    assert x not in grads
