"""`Linear`: values, gradients at every rank, initialization, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import nn
from tapetensor.errors import ArgumentTypeError, DTypeError, ShapeError
from tests.nn.gradients import check_layer

LEADING: list[tuple[int, ...]] = [(), (5,), (2, 5), (2, 1, 4), (0,), (2, 0)]


@pytest.mark.parametrize("leading", LEADING)
def test_the_value_is_a_product_and_a_shift(
    leading: tuple[int, ...], rng: np.random.Generator
) -> None:
    layer = nn.Linear(3, 4, np.float64, rng=rng)
    x = tt.from_numpy(rng.standard_normal((*leading, 3)))

    y = layer.forward(x)

    assert y.shape == (*leading, 4)
    wanted = x.numpy() @ layer.weight.numpy().T + layer.bias.numpy()
    np.testing.assert_allclose(y.numpy(), wanted, rtol=1e-13)


@pytest.mark.parametrize("leading", LEADING)
def test_the_gradients_by_input_weight_and_bias(
    leading: tuple[int, ...], rng: np.random.Generator
) -> None:
    layer = nn.Linear(3, 4, np.float64, rng=rng)

    check_layer(layer, tt.from_numpy(rng.standard_normal((*leading, 3))), rng)


def test_an_input_that_is_not_contiguous(rng: np.random.Generator) -> None:
    layer = nn.Linear(3, 2, np.float64, rng=rng)
    x = tt.from_numpy(rng.standard_normal((3, 5))).transpose()

    check_layer(layer, x, rng)


def test_weight_and_bias_start_as_those_of_pytorch(rng: np.random.Generator) -> None:
    layer = nn.Linear(100, 400, rng=rng)
    bound = 1.0 / np.sqrt(100.0)

    for tensor in (layer.weight, layer.bias):
        values = tensor.numpy()
        assert values.dtype == np.float32
        assert 0.97 * bound < np.abs(values).max() <= bound
        # The standard deviation of a uniform distribution; 400 samples leave it 10 %.
        np.testing.assert_allclose(values.std(), bound / np.sqrt(3.0), rtol=0.1)
        assert abs(values.mean()) < 0.1 * bound


def test_the_parameters_are_float32_unless_another_dtype_is_given(
    rng: np.random.Generator,
) -> None:
    assert {one.dtype for one in nn.Linear(2, 2, rng=rng).parameters().values()} == {
        np.dtype(np.float32)
    }
    assert {one.dtype for one in nn.Linear(2, 2, np.float64, rng=rng).parameters().values()} == {
        np.dtype(np.float64)
    }


@pytest.mark.parametrize("shape", [(2, 4), (4,), (), (3, 2), (2, 3, 0)])
def test_another_width_is_refused(shape: Any, rng: np.random.Generator) -> None:
    layer: Any = nn.Linear(3, 2, rng=rng)
    x = tt.ones(shape).trace()

    with pytest.raises(ShapeError, match="Linear: the last axis of the input must have size 3"):
        layer.forward(x)
    assert x.owns_tape


@pytest.mark.parametrize("dtype", [np.float64, np.int64, np.bool_])
def test_another_dtype_is_refused(dtype: Any, rng: np.random.Generator) -> None:
    layer: Any = nn.Linear(3, 2, rng=rng)
    message = rf"Linear: the input has dtype {np.dtype(dtype)}, the weights have float32; convert"

    with pytest.raises(DTypeError, match=message):
        layer.forward(tt.ones((2, 3), dtype))


def test_an_array_is_refused(rng: np.random.Generator) -> None:
    layer: Any = nn.Linear(3, 2, rng=rng)

    with pytest.raises(ArgumentTypeError, match=r"Linear: the input must be a tensor, got ndarray"):
        layer.forward(np.ones((2, 3), np.float32))
