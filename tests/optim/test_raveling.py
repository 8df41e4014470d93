"""The parameters of a model as one flat array, and back."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import losses, nn


class Mixed(nn.Module):
    first: nn.Linear[Any, Any]
    again: nn.Linear[Any, Any]
    scale: tt.Tensor0D[tt.NoneTape, np.float64]
    seen: tt.Tensor0D[tt.NoneTape, np.float64] = nn.buffer(nn.init.zeros)


def mixed() -> Mixed:
    layer = nn.Linear(2, 3, rng=np.random.default_rng(0))
    seven = tt.full((), 7.0, np.float64)
    return Mixed(first=layer, again=layer, scale=seven, seen=tt.full((), 5.0, np.float64))


def test_parameters_come_once_each_without_buffers_and_go_back_to_the_bit() -> None:
    model = mixed()
    weights = tt.ravel(model)
    before, ids = weights.numpy(), [one.id for one in model.parameters().values()]
    weights.assign(before * 0.0)
    weights.assign(before)

    assert before.shape == (2 * 3 + 3 + 1,)
    assert before.dtype == np.float64
    assert model.again.weight is model.first.weight
    assert model.first.weight.dtype == np.float32
    assert [one.id for one in model.parameters().values()] == ids
    np.testing.assert_array_equal(weights.numpy(), before)
    np.testing.assert_array_equal(before[:6], model.first.weight.numpy().ravel())


def test_the_objective_is_the_loss_and_its_gradient_at_the_array() -> None:
    rng = np.random.default_rng(0)
    model = nn.Linear(2, 1, np.float64, rng=rng)
    x, y = tt.normal((8, 2), np.float64, rng=rng), tt.normal((8, 1), np.float64, rng=rng)

    def loss_of() -> tt.Tensor0D[tt.OwnedTape, np.float64]:
        return losses.mse(model.forward(x.trace()), y)

    weights = tt.ravel(model)
    objective = weights.objective(loss_of)
    at = np.array([1.0, -2.0, 0.5])
    value, gradient = objective(at)

    assert value == loss_of().item()
    for place in range(3):
        step = 1e-6 * np.eye(3)[place]
        slope = (objective(at + step)[0] - objective(at - step)[0]) / 2e-6
        assert gradient[place] == pytest.approx(slope, rel=1e-6)


def test_what_does_not_fit_is_refused_and_changes_nothing() -> None:
    model = mixed()
    weights = tt.ravel(model)
    before = copy.deepcopy(weights.numpy())
    wrong: Any = [1.0] * 10

    with pytest.raises(tt.ShapeError, match=r"shape \(10,\), the array has \(9,\)"):
        weights.assign(np.ones(9))
    with pytest.raises(tt.ArgumentTypeError, match="an array of numbers, got list"):
        weights.assign(wrong)
    with pytest.raises(tt.ArgumentTypeError, match="a function"):
        weights.objective(wrong)
    with pytest.raises(tt.ArgumentTypeError, match="expected a model, got list"):
        tt.ravel(wrong)
    with pytest.raises(tt.ArgumentValueError, match="a ReLU has no parameters"):
        tt.ravel(nn.ReLU())
    np.testing.assert_array_equal(weights.numpy(), before)
