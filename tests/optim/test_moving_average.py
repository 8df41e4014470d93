"""The moving average of a model: its formula to the bit, its buffers, its refusals."""

from __future__ import annotations

import copy
from typing import Any
from typing import Literal as L

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import nn
from tapetensor.optim import exponential_moving_average


class Net(nn.Module):
    hidden: nn.Linear[L[3], L[4]]
    norm: nn.BatchNorm1d[L[4]]


def moved(model: nn.Module, rng: np.random.Generator) -> None:
    """Give all tensors of a model other values."""
    for tensor in {**model.parameters(), **model.buffers()}.values():
        tensor.array = rng.standard_normal(tensor.shape).astype(tensor.dtype)


def test_parameters_move_by_the_formula_to_the_bit(rng: np.random.Generator) -> None:
    model = tt.build(Net, rng=rng)
    average = copy.deepcopy(model)
    expected = {name: one.numpy().copy() for name, one in average.parameters().items()}
    ids = {name: one.id for name, one in average.parameters().items()}
    for _ in range(5):
        moved(model, rng)
        exponential_moving_average(average, model, decay=0.9)
        for name, one in model.parameters().items():
            expected[name] = 0.9 * expected[name] + (1 - 0.9) * one.numpy()
            np.testing.assert_array_equal(average.parameters()[name].numpy(), expected[name])
    assert ids == {name: one.id for name, one in average.parameters().items()}


def test_buffers_are_those_of_the_model_and_stay_so(rng: np.random.Generator) -> None:
    model = tt.build(Net, rng=rng)
    average = copy.deepcopy(model)
    moved(model, rng)
    exponential_moving_average(average, model, decay=0.9)
    then = model.norm.running_mean.numpy().copy()
    model.norm.forward(tt.normal((8, 4), rng=rng).trace())

    np.testing.assert_array_equal(average.norm.running_mean.numpy(), then)
    assert not np.array_equal(model.norm.running_mean.numpy(), then)


def test_the_model_in_training_and_views_of_the_average_stay_as_they_are(
    rng: np.random.Generator,
) -> None:
    model = tt.build(Net, rng=rng)
    average = copy.deepcopy(model)
    view = average.hidden.weight.numpy()
    before = view.copy()
    moved(model, rng)
    exponential_moving_average(average, model, decay=0.5)

    np.testing.assert_array_equal(view, before)
    assert not np.array_equal(average.hidden.weight.numpy(), before)


def test_models_that_do_not_go_together_are_refused_and_nothing_changes(
    rng: np.random.Generator,
) -> None:
    def layer(sizes: tuple[int, int], dtype: Any = np.float32) -> Any:
        return nn.Linear(*sizes, dtype, rng=rng)

    model = layer((3, 4))
    before = model.weight.numpy().copy()
    with pytest.raises(tt.ArgumentValueError, match=r"weight is one tensor in both .*deepcopy"):
        exponential_moving_average(model, model, decay=0.9)
    with pytest.raises(tt.ShapeError, match=r"weight: .* \(4, 3\), the model \(5, 3\)"):
        exponential_moving_average(model, layer((3, 5)), decay=0.9)
    with pytest.raises(tt.DTypeError, match=r"weight: .* float32, the model float64"):
        exponential_moving_average(model, layer((3, 4), np.float64), decay=0.9)
    other: Any = tt.build(Net, rng=rng)
    with pytest.raises(tt.ArgumentValueError, match=r"only one of the two models has bias, hidden"):
        exponential_moving_average(model, other, decay=0.9)
    net: Any = Net
    with pytest.raises(tt.ArgumentTypeError, match=r"expected two models, got type"):
        exponential_moving_average(model, net, decay=0.9)
    with pytest.raises(tt.ArgumentTypeError, match=r"expected two models, got int"):
        exponential_moving_average(3, model, decay=0.9)
    np.testing.assert_array_equal(model.weight.numpy(), before)


@pytest.mark.parametrize("decay", [1.0, -0.1, float("nan")])
def test_a_decay_outside_its_range_is_refused(decay: float, rng: np.random.Generator) -> None:
    model = nn.Linear(2, 2, rng=rng)
    with pytest.raises(tt.ArgumentValueError, match=r"decay must be in \[0, 1\), got"):
        exponential_moving_average(copy.deepcopy(model), model, decay=decay)
