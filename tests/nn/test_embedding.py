"""`Embedding`: trained through integer ids."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import nn
from tapetensor.errors import AxisError, DTypeError


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


def test_the_table_learns_through_ids(rng: np.random.Generator) -> None:
    layer, target = table(rng), tt.from_numpy(rng.standard_normal((5, 2)))
    some = ids([0, 2, 2, 4])
    untouched = layer.weight.numpy()[[1, 3]].copy()

    for _ in range(100):
        y = layer.forward(some.trace())
        loss = (y - target.take(some)).square().sum()
        grads = loss.backward(wrt=layer)
        layer.weight = (layer.weight - grads[layer.weight] * 0.1).detach()

    seen = [0, 2, 4]
    np.testing.assert_allclose(layer.weight.numpy()[seen], target.numpy()[seen], atol=1e-6)
    assert np.array_equal(layer.weight.numpy()[[1, 3]], untouched)


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
