"""Kernels are plain numpy: they write to nothing that is not theirs and use numpy's dispatch only.

A tensor is wrapped around the array that a kernel is to be tried on, so the table drives these
tests as well.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.lib.mixins import NDArrayOperatorsMixin
from typing_extensions import override

import tapetensor as tt
from tapetensor.gradients import Array
from tapetensor.ids import next_id
from tapetensor.tensor.base import wrap
from tests.ops.calling import gradients_of, reference_of, result_of, tensors_of
from tests.ops.rows import Case, is_float_array
from tests.ops.samples import CASES

_CASES = [case for case in CASES if case.op.is_differentiable]


class DispatchedArray(NDArrayOperatorsMixin):
    """An array that numpy reaches through its protocols only, as a lazy or a GPU array would be.

    It has the attributes that a kernel may read, and the few methods that numpy has no function
    for; anything else is an AttributeError, and turning it into a numpy array is refused.
    """

    # Before ndarray's, so that a mix of both comes here.
    __array_priority__ = 1000

    def __init__(self, array: Array) -> None:
        self.wrapped = array
        self.shape = array.shape
        self.ndim = array.ndim
        self.size = array.size
        self.dtype = array.dtype

    @property
    def T(self) -> DispatchedArray:  # noqa: N802  # numpy's name
        return DispatchedArray(self.wrapped.T)

    def astype(self, dtype: Any) -> DispatchedArray:
        return DispatchedArray(self.wrapped.astype(dtype))

    def __getitem__(self, index: Any) -> Any:
        return _wrapped(self.wrapped[_unwrapped(index)])

    def __setitem__(self, index: Any, value: Any) -> None:
        self.wrapped[_unwrapped(index)] = _unwrapped(value)

    def __array__(self, *_: Any, **__: Any) -> Array:
        raise AssertionError("a kernel turned its operand into a numpy array")

    def __bool__(self) -> bool:
        raise AssertionError("a kernel asked for the value of an element")

    @override
    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        return _wrapped(getattr(ufunc, method)(*_unwrapped(inputs), **_unwrapped(options)))

    def __array_function__(self, function: Any, _: Any, arguments: Any, options: Any) -> Any:
        return _wrapped(function(*_unwrapped(arguments), **_unwrapped(options)))


def _unwrapped(value: Any) -> Any:
    if isinstance(value, DispatchedArray):
        return value.wrapped
    if isinstance(value, tuple | list):
        return type(value)(_unwrapped(one) for one in value)
    if isinstance(value, dict):
        return {key: _unwrapped(one) for key, one in value.items()}
    return value


def _wrapped(value: Any) -> Any:
    return (
        DispatchedArray(np.asarray(value)) if isinstance(value, np.ndarray | np.generic) else value
    )


def _tensor_around(array: Any) -> Any:
    return wrap(tt.Tensor, array, next_id(), None)


def _read_only(array: Array) -> Any:
    copy = array.copy()
    copy.setflags(write=False)
    return _tensor_around(copy)


def _dispatched_floats(case: Case) -> list[Any]:
    # Indices and masks stay numpy's: a program is traced for given ones.
    return [
        _tensor_around(DispatchedArray(operand.copy()))
        if is_float_array(operand)
        else tt.from_numpy(operand)
        if isinstance(operand, np.ndarray)
        else operand
        for operand in case.sample.operands
    ]


@pytest.mark.parametrize("case", _CASES, ids=lambda case: case.name)
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


@pytest.mark.parametrize("case", _CASES, ids=lambda case: case.name)
def test_a_pullback_can_be_run_twice(case: Case, rng: np.random.Generator) -> None:
    operands = tensors_of(case.sample)
    traced = [x.trace() if i in case.sample.float_positions else x for i, x in enumerate(operands)]
    y, tape = result_of(case, traced).split_tape()
    _, pullbacks, _ = tape.records[max(tape.records)]
    g = np.asarray(rng.standard_normal(y.shape))

    # An op of one operand is recorded without the tuple.
    for pullback in pullbacks if isinstance(pullbacks, tuple) else (pullbacks,):
        if pullback is not None:
            first = np.array(pullback(g))
            np.testing.assert_array_equal(pullback(g), first)


@pytest.mark.parametrize("case", _CASES, ids=lambda case: case.name)
def test_kernels_run_on_any_array_that_dispatches_as_numpys(
    case: Case, rng: np.random.Generator
) -> None:
    cotangent = np.asarray(rng.standard_normal(np.shape(reference_of(case))))
    plain = tensors_of(case.sample)

    result = result_of(case, _dispatched_floats(case))
    gradients = gradients_of(
        case, _dispatched_floats(case), _tensor_around(DispatchedArray(cotangent))
    )

    np.testing.assert_array_equal(_unwrapped(result._data), result_of(case, plain).numpy())
    expected = gradients_of(case, plain, tt.from_numpy(cotangent))
    for gradient, value in zip(gradients, expected, strict=True):
        assert isinstance(gradient, DispatchedArray)
        # Sums over rows add up in another order on numpy's own arrays.
        np.testing.assert_allclose(gradient.wrapped, value, rtol=1e-13, atol=1e-15)


def test_a_dispatched_array_notices_a_kernel_that_is_not_pure() -> None:
    x = DispatchedArray(np.ones(2))

    with pytest.raises(AssertionError, match="turned its operand"):
        np.asarray(x)
    with pytest.raises(AttributeError):
        x.sum()  # type: ignore[attr-defined]  # there is no such method, which is the point
