"""Values, shapes and dtypes of results are numpy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor.arrays.array import Array
from tests.ops.calling import on_every, reference_of, result_of, strided, tensors_of
from tests.ops.rows import Case, Sample, given, is_float_array
from tests.ops.samples import CASES

_TOLERANCE: dict[type[np.generic], float] = {np.float32: 2e-5, np.float64: 1e-13}


def _has_float_number(sample: Sample) -> bool:
    values = (*sample.operands, *sample.options.values())
    return any(isinstance(value, float | np.floating) for value in values)


_INTEGER_CASES = [
    case for case in CASES if case.op.takes_integers and not _has_float_number(case.sample)
]
_LARGE_CASES = [
    case
    for case in CASES
    if case.op.is_differentiable
    and any(case.sample.operands[position].size > 2 for position in case.sample.float_positions)
]


def _quietly_expected(case: Case, operands: list[Any]) -> Any:
    # The plain formulas warn where the ops do not have to: exp of 1000, the mean of nothing.
    with np.errstate(all="ignore"):
        return reference_of(case, operands)


def _assert_is(result: Any, expected: Array, dtype: Any, tolerance: float) -> None:
    assert isinstance(result, tt.Tensor)
    assert result.shape == np.shape(expected)
    assert result.dtype == dtype
    np.testing.assert_allclose(result.numpy(), expected, rtol=tolerance, atol=tolerance)


@on_every(CASES)
def test_the_result_is_numpys(case: Case) -> None:
    for dtype, tolerance in _TOLERANCE.items():
        result = result_of(case, tensors_of(case.sample, dtype))

        expected_dtype = case.op.result_dtype or dtype
        _assert_is(result, reference_of(case), expected_dtype, tolerance)


@on_every(_INTEGER_CASES)
def test_integers_stay_integers(case: Case) -> None:
    for dtype in (np.int64, np.int32):
        arrays = [
            np.asarray(4 * operand).astype(dtype) if is_float_array(operand) else operand
            for operand in case.sample.operands
        ]
        integers = [tt.from_numpy(x) if isinstance(x, np.ndarray) else x for x in arrays]

        result = result_of(case, integers)

        expected_dtype = case.op.result_dtype or dtype
        _assert_is(result, reference_of(case, arrays), expected_dtype, 0.0)


@on_every(CASES)
def test_operands_that_are_not_contiguous_give_the_same(case: Case) -> None:
    result = result_of(case, tensors_of(case.sample, make=strided))

    _assert_is(result, reference_of(case), result.dtype, _TOLERANCE[np.float64])


@on_every(_LARGE_CASES)
def test_nan_and_infinities_pass_through_as_numpys(case: Case) -> None:
    position = next(i for i in case.sample.float_positions if case.sample.operands[i].size > 2)
    spoiled = case.sample.operands[position].copy()
    spoiled.flat[:3] = np.nan, np.inf, -np.inf
    arrays = list(case.sample.operands)
    arrays[position] = spoiled
    try:
        expected = _quietly_expected(case, arrays)
    except np.linalg.LinAlgError:
        with pytest.raises(tt.ArgumentValueError, match="no answer"):
            result_of(case, tensors_of(given(*arrays)))
        return

    with np.errstate(all="ignore"):
        result = result_of(case, tensors_of(given(*arrays)))

    np.testing.assert_allclose(result.numpy(), expected, rtol=1e-13, atol=1e-13)


def test_the_mean_of_nothing_is_nan_with_numpys_warning() -> None:
    with pytest.warns(RuntimeWarning):
        mean = tt.zeros((0,)).mean()

    assert np.isnan(mean.item())


def test_the_logarithm_of_a_sum_over_nothing_is_minus_infinity() -> None:
    with np.errstate(divide="ignore"):
        result = tt.zeros((2, 0)).logsumexp(axis=-1)

    np.testing.assert_array_equal(result.numpy(), [-np.inf, -np.inf])


@pytest.mark.parametrize(
    ("source", "target"),
    [
        (np.float32, np.float64),
        (np.float64, np.float32),
        (np.float32, np.int64),
        (np.int64, np.float32),
        (np.bool_, np.float32),
        (np.float64, np.bool_),
        (np.int64, np.int8),
    ],
)
def test_astype_converts_as_numpy_does(source: Any, target: Any) -> None:
    array = np.array([0.0, 1.0, -2.5, 3.9]).astype(source)

    result = tt.from_numpy(array).astype(target)

    np.testing.assert_array_equal(result.numpy(), array.astype(target), strict=True)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_stable_functions_neither_overflow_nor_lose_everything(dtype: Any) -> None:
    # Warnings are errors here, so an overflow on the way would fail the test.
    x = tt.from_numpy(np.array([-1000.0, 0.0, 1000.0]), dtype=dtype)
    ln2 = np.log(2.0)
    expected: dict[str, float | list[float]] = {
        "softmax": [0.0, 0.0, 1.0],
        "log_softmax": [-2000.0, -1000.0, 0.0],
        "logsumexp": 1000.0,
        "softplus": [0.0, ln2, 1000.0],
        "sigmoid": [0.0, 0.5, 1.0],
        "silu": [0.0, 0.0, 1000.0],
        "tanh": [-1.0, 0.0, 1.0],
        "gelu": [0.0, 0.0, 1000.0],
    }
    derivative: dict[str, list[float]] = {
        "softplus": [0.0, 0.5, 1.0],
        "sigmoid": [0.0, 0.25, 0.0],
        "silu": [0.0, 0.5, 1.0],
        "tanh": [0.0, 1.0, 0.0],
        "gelu": [0.0, 0.5, 1.0],
        "softmax": [0.0, 0.0, 0.0],
        "log_softmax": [1.0, 1.0, -2.0],
        "logsumexp": [0.0, 0.0, 1.0],
    }
    for name, value in expected.items():
        y = getattr(x.trace(), name)()
        np.testing.assert_allclose(y.detach().numpy(), value, rtol=1e-6, atol=1e-7, err_msg=name)
        gradient = y.sum().backward()[x]
        assert gradient.dtype == dtype
        np.testing.assert_allclose(gradient.numpy(), derivative[name], atol=1e-6, err_msg=name)


@pytest.mark.parametrize("dtype", [np.int64, np.uint64])
def test_a_total_next_to_the_limits_of_64_bits_is_exact(dtype: Any) -> None:
    lowest, highest = np.iinfo(dtype).min, np.iinfo(dtype).max
    up, down = (tt.from_numpy(np.array([end, 0], dtype)) for end in (highest, lowest))

    assert up.sum().item() == up.cumulative_sum(0).numpy()[1] == highest
    assert down.sum().item() == down.cumulative_sum(0).numpy()[1] == lowest
    assert tt.from_numpy(np.array([highest // 5, 5], dtype)).prod().item() == highest // 5 * 5
    compiled: Any = tt.compile(lambda x: x.sum())
    assert compiled(up).item() == highest
    totals: list[Any] = [tt.Tensor.sum, compiled]
    for total in totals:
        with pytest.raises(tt.ArgumentValueError, match=r"sum: u?int64 does not hold .*float64"):
            total(tt.from_numpy(np.array([highest, 1], dtype)))
