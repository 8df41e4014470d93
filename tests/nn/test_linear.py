"""Layers with one weight or two, tables of rows, and chance."""

from __future__ import annotations

from typing import Any
from typing import Literal as L

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import nn
from tapetensor.errors import AxisError, DTypeError
from tests.nn.gradients import check_layer

LEADING: list[tuple[int, ...]] = [(), (5,), (2, 5), (2, 1, 4), (0,), (2, 0)]


@pytest.mark.parametrize("leading", LEADING)
def test_the_value_is_a_product_and_a_shift(
    leading: tuple[int, ...], rng: np.random.Generator
) -> None:
    layer = nn.Linear(3, 4, np.float64, rng=rng)
    unbiased = nn.UnbiasedLinear(3, 4, np.float64, rng=rng)
    shift: nn.Bias1d[Any, np.float64] = nn.Bias1d(3, np.float64)
    shift.bias = tt.from_numpy(rng.standard_normal(3))
    x = tt.from_numpy(rng.standard_normal((*leading, 3)))

    y = layer.forward(x)

    assert y.shape == (*leading, 4)
    wanted = x.numpy() @ layer.weight.numpy().T + layer.bias.numpy()
    np.testing.assert_allclose(y.numpy(), wanted, rtol=1e-13)
    np.testing.assert_allclose(unbiased.forward(x).numpy(), x.numpy() @ unbiased.weight.numpy().T)
    np.testing.assert_array_equal(shift.forward(x).numpy(), x.numpy() + shift.bias.numpy())


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


def test_what_has_no_bias_or_nothing_else_starts_as_linear_and_as_zeros() -> None:
    unbiased = nn.UnbiasedLinear(30, 4, rng=np.random.default_rng(1))
    linear = nn.Linear(30, 4, rng=np.random.default_rng(1))

    assert np.array_equal(unbiased.weight.numpy(), linear.weight.numpy())
    assert list(unbiased.parameters()) == ["weight"]
    assert nn.Bias1d(3).bias.numpy().tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("shape", [(4, 2), (4, 2, 3), (2, 2, 3, 1), (0, 2)])
def test_a_slope_is_one_for_all_or_one_per_channel(shape: Any, rng: np.random.Generator) -> None:
    one = nn.PReLU(np.float64, init=0.1)
    layer: nn.PReLU1d[Any, np.float64] = nn.PReLU1d(2, np.float64)
    assert layer.weight.numpy().tolist() == [0.25, 0.25]
    layer.weight = tt.from_numpy(np.array([0.1, -0.3]))
    x = tt.from_numpy(rng.standard_normal(shape))

    wanted = np.where(x.numpy() > 0, x.numpy(), 0.1 * x.numpy())
    np.testing.assert_array_equal(one.forward(x).numpy(), wanted)
    assert one.weight.shape == (1,)
    values = np.moveaxis(x.numpy(), 1, -1)
    wanted = np.moveaxis(np.where(values > 0, values, values * layer.weight.numpy()), -1, 1)
    np.testing.assert_array_equal(layer.forward(x).numpy(), wanted)
    check_layer(layer, x, rng)


def table(rng: np.random.Generator) -> nn.Embedding[Any, Any, np.float64]:
    return nn.Embedding(5, 2, np.float64, rng=rng)


def ids(values: Any, dtype: Any = np.int64) -> Any:
    return tt.from_numpy(np.array(values, dtype))


@pytest.mark.parametrize("values", [3, [], [1, 0, 4], [[1, 1], [0, 4], [2, 2]], [[[3]]]])
@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.uint8])
def test_each_id_is_replaced_by_its_row(values: Any, dtype: Any, rng: np.random.Generator) -> None:
    layer = table(rng)

    y = layer.forward(ids(values, dtype))

    assert y.shape == (*np.shape(values), 2)
    assert np.array_equal(y.numpy(), layer.weight.numpy()[np.array(values, dtype)])
    assert not y.owns_tape


def test_the_rows_start_normal_with_mean_0_and_std_1(rng: np.random.Generator) -> None:
    values = nn.Embedding(200, 100, rng=rng).weight.numpy()

    assert values.dtype == np.float32
    assert abs(values.mean()) < 0.03
    assert abs(values.std() - 1.0) < 0.03


@pytest.mark.parametrize("wrong", [[0, 5], [-1], [[7]], -6])
def test_an_id_outside_the_table_is_refused(wrong: Any, rng: np.random.Generator) -> None:
    layer, traced = table(rng), ids(wrong).trace()
    low, high = np.min(wrong), np.max(wrong)

    message = f"Embedding: ids of a table with 5 rows range from 0 to 4, these from {low} to {high}"
    with pytest.raises(AxisError, match=message):
        layer.forward(traced)
    assert traced.owns_tape


@pytest.mark.parametrize("dtype", [np.float32, np.bool_])
def test_ids_must_be_integers(dtype: Any, rng: np.random.Generator) -> None:
    traced = ids([1, 0], dtype).trace()

    message = f"Embedding: ids must be integers, got {np.dtype(dtype)}"
    with pytest.raises(DTypeError, match=message):
        table(rng).forward(traced)
    assert traced.owns_tape


def test_the_row_of_padding_begins_with_zeros_and_gets_no_gradient(
    rng: np.random.Generator,
) -> None:
    table = nn.Embedding(5, 3, rng=rng, padding_idx=2)
    ids: Any = tt.from_numpy(np.array([[0, 2], [4, 0]]))
    assert table.weight.numpy()[2].tolist() == [0.0, 0.0, 0.0]

    # Whoever gives that row other values reads them, and still trains the others alone.
    table.weight = tt.ones((5, 3))
    found = table.forward(ids.trace())
    np.testing.assert_array_equal(found.detach().numpy(), np.ones((2, 2, 3)))
    gradient = found.sum().backward(wrt=table)[table.weight].numpy()
    assert gradient[:, 0].tolist() == [2.0, 0.0, 0.0, 0.0, 1.0]


@pytest.mark.parametrize("wrong", [5, -1, 1.0, "0"])
def test_padding_is_a_row_of_the_table(wrong: Any, rng: np.random.Generator) -> None:
    with pytest.raises(tt.TapeTensorError, match="Embedding: padding_idx must"):
        nn.Embedding(5, 3, rng=rng, padding_idx=wrong)


def test_without_a_tape_it_is_the_identity(rng: np.random.Generator) -> None:
    drop = nn.Dropout(0.5, rng=rng)
    state = rng.bit_generator.state
    x = tt.ones((100,))

    assert drop.forward(x) is x
    assert drop.rng.bit_generator.state == state


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_is_kept_is_scaled_and_the_rest_zero(
    p: float, dtype: Any, rng: np.random.Generator
) -> None:
    drop = nn.Dropout(p, rng=rng)

    y = drop.forward(tt.full((100, 100), 3.0, dtype).trace()).detach().numpy()

    assert y.dtype == dtype
    assert set(y.ravel().tolist()) == {0.0, dtype(3.0) * dtype(1.0 / (1.0 - p))}
    np.testing.assert_allclose((y == 0.0).mean(), p, atol=0.02)
    np.testing.assert_allclose(y.mean(), 3.0, rtol=0.1)


def test_one_in_n_is_dropped_and_the_type_says_it() -> None:
    drop = tt.build(nn.DropoutOneIn[L[4]], rng=np.random.default_rng(0))
    x = tt.ones((10_000,))

    y = drop.forward(x.trace())

    assert drop.forward(x) is x
    np.testing.assert_allclose((y.detach().numpy() == 0.0).mean(), 0.25, atol=0.02)
    assert set(y.detach().numpy().ravel().tolist()) == {0.0, float(np.float32(4.0 / 3.0))}
    assert np.array_equal(y.backward(x)[x].numpy(), y.detach().numpy())
