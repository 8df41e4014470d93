"""Every op of the table over arrays that are not numpy's, and cannot become so."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tests.arrays.foreign import ForeignArray
from tests.arrays.placing import abroad, home
from tests.higher_order.test_every_op import FIRST_CASES, gradient_sum
from tests.ops.calling import gradients_of, on_every, reference_of, result_of, tensors_of
from tests.ops.rows import Case
from tests.ops.samples import CASES

# How a moved tensor is moved: whatever it is over, it is asked to go to numpy.
_MOVES = {"to"}
_CASES = [case for case in CASES if case.op.name not in _MOVES]
_DIFFERENTIABLE = [case for case in _CASES if case.op.is_differentiable]


def _is_of_integers(operand: Any) -> bool:
    return isinstance(operand, tt.Tensor | np.ndarray) and operand.dtype.kind in "iu"


# The values of indices are looked at, and whether a matrix is singular.
_OF_FLOATS = [
    case
    for case in _DIFFERENTIABLE
    if case.op.name not in ("getitem", "det")
    and not any(map(_is_of_integers, case.sample.operands))
]


def _arrays(result: Any) -> list[np.ndarray[Any, Any]]:
    parts = result if isinstance(result, tuple | list) else [result]
    return [home(part) for part in parts]


@on_every(_CASES)
def test_an_op_gives_what_it_gives_over_numpy(case: Case) -> None:
    expected = result_of(case, tensors_of(case.sample))

    result = result_of(case, tensors_of(case.sample, make=abroad))

    if not isinstance(expected, tt.Tensor | tuple | list):
        assert result == expected
        return
    ours = expected if isinstance(expected, tuple | list) else [expected]
    for array, one in zip(_arrays(result), ours, strict=True):
        assert array.dtype == one.dtype
        np.testing.assert_allclose(array, one.numpy(), rtol=1e-12, atol=1e-14)


@on_every(_DIFFERENTIABLE)
def test_the_gradients_are_those_over_numpy(case: Case, rng: np.random.Generator) -> None:
    cotangent = np.asarray(rng.standard_normal(np.shape(reference_of(case))))
    expected = gradients_of(case, tensors_of(case.sample), tt.from_numpy(cotangent))

    gradients = gradients_of(case, tensors_of(case.sample, make=abroad), abroad(cotangent))

    for gradient, value in zip(gradients, expected, strict=True):
        assert isinstance(gradient, ForeignArray) == (value is not None)
        if value is not None:
            assert gradient.dtype == value.dtype
            np.testing.assert_allclose(gradient.get(), value, rtol=1e-12, atol=1e-14)


@on_every(_OF_FLOATS)
def test_no_op_on_floats_waits_for_the_value_of_an_element(case: Case) -> None:
    operands = tensors_of(case.sample, make=abroad)
    y = result_of(case, operands)
    before = ForeignArray.reads

    gradients_of(case, operands, y)

    assert ForeignArray.reads == before


@on_every([case for case in FIRST_CASES if case.op.name != "to"])
def test_the_second_derivatives_are_those_over_numpy(case: Case) -> None:
    f, inputs = gradient_sum(case, np.random.default_rng(0))
    g, there = gradient_sum(case, np.random.default_rng(0), make=abroad)

    expected: Any = tt.grad(f, *inputs)
    found: Any = tt.grad(g, *there)

    pairs = [(found, expected)] if len(inputs) == 1 else list(zip(found, expected, strict=True))
    for one, other in pairs:
        np.testing.assert_allclose(home(one), other.numpy(), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("size", [1 << 13, (1 << 20) + 3])
@pytest.mark.parametrize(
    "op", ["relu", "sigmoid", "tanh", "exp", "square", "silu", "gelu", "softplus", "__neg__"]
)
def test_long_arrays_take_no_path_that_is_for_numpy_alone(op: str, size: int) -> None:
    array = np.linspace(-4.0, 4.0, size, dtype=np.float32)
    x, twin = abroad(array), tt.from_numpy(array)

    gradients = getattr(x.trace(), op)().sum().backward()
    expected: Any = getattr(twin.trace(), op)().sum().backward()

    np.testing.assert_allclose(home(gradients[x]), expected[twin].numpy(), rtol=1e-5, atol=1e-6)
