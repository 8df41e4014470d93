"""Schedules, moving averages, and parameters as one array."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any
from typing import Literal as L

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import losses, nn
from tapetensor.optim import Sgd, exponential_moving_average, schedules
from tests.optim.models import Model, gradients_of


def values(schedule: schedules.Schedule, steps: int) -> list[float]:
    return [schedule(step) for step in range(steps)]


def test_a_cosine_starts_ends_and_stays_exactly_where_it_says() -> None:
    schedule = schedules.cosine(0.3, steps=10, final_lr=0.1)

    assert schedule(0) == pytest.approx(0.3, rel=1e-15)
    assert schedule(5) == pytest.approx(0.2, rel=1e-15)
    assert [schedule(step) for step in (10, 11, 10**9)] == [0.1] * 3
    assert schedule(3) == pytest.approx(0.2 + 0.1 * math.cos(0.3 * math.pi), rel=1e-15)
    falling = values(schedule, 11)
    assert falling == sorted(falling, reverse=True)


def test_a_warm_up_rises_in_equal_steps_to_where_the_next_schedule_begins() -> None:
    rising = schedules.warm_up(schedules.cosine(1.0, steps=4), steps=4)

    assert values(rising, 4) == pytest.approx([0.2, 0.4, 0.6, 0.8], rel=1e-15)
    assert values(rising, 9)[4:] == values(schedules.cosine(1.0, steps=4), 5)


def test_one_cycle_rises_to_its_top_and_falls_far_below_its_beginning() -> None:
    schedule = schedules.one_cycle(2.0, steps=101, rise=51 / 101)

    assert schedule(0) == pytest.approx(0.08, rel=1e-15)
    assert schedule(50) == 2.0
    assert [schedule(100), schedule(1000)] == [8e-6, 8e-6]
    rising, falling = values(schedule, 51), values(schedule, 101)[50:]
    assert rising == sorted(rising)
    assert falling == sorted(falling, reverse=True)


def test_an_optimizer_that_takes_its_rate_from_a_schedule_follows_it() -> None:
    model = Model(p=tt.zeros((1,)))
    optimizer, schedule = Sgd(model), schedules.step_decay(1.0, every=2, factor=0.25)
    for _ in range(5):
        optimizer.lr = schedule(optimizer.steps)
        optimizer.step(gradients_of(model, p=[1.0]))

    assert optimizer.steps == 5
    assert model["p"].item() == -(1.0 + 1.0 + 0.25 + 0.25 + 0.0625)


@pytest.mark.parametrize("wrong", [-0.1, math.nan, math.inf])
@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda x: schedules.constant(x), "constant: lr"),
        (lambda x: schedules.step_decay(x, every=1), "step_decay: lr"),
        (lambda x: schedules.step_decay(1.0, every=1, factor=x), "step_decay: factor"),
        (lambda x: schedules.cosine(x, steps=1), "cosine: lr"),
        (lambda x: schedules.cosine(1.0, steps=1, final_lr=x), "cosine: final_lr"),
        (lambda x: schedules.one_cycle(x, steps=1), "one_cycle: lr"),
        (lambda x: schedules.one_cycle(1.0, steps=1, rise=x), "one_cycle: rise"),
    ],
)
def test_a_number_outside_its_range_is_refused(
    make: Callable[[Any], Any], name: str, wrong: float
) -> None:
    with pytest.raises(tt.ArgumentValueError, match=f"^{name} must be"):
        make(wrong)


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda x: schedules.step_decay(1.0, every=x), "step_decay: every"),
        (lambda x: schedules.cosine(1.0, steps=x), "cosine: steps"),
        (lambda x: schedules.warm_up(schedules.constant(1.0), steps=x), "warm_up: steps"),
        (lambda x: schedules.one_cycle(1.0, steps=x), "one_cycle: steps"),
    ],
)
def test_a_number_of_steps_is_a_positive_int(make: Callable[[Any], Any], name: str) -> None:
    for wrong in (0, -1):
        with pytest.raises(tt.ArgumentValueError, match=f"^{name} must (not )?be"):
            make(wrong)
    for no_int in (1.0, "1", True):
        with pytest.raises(tt.ArgumentTypeError, match=f"^{name} must be"):
            make(no_int)


def test_a_warm_up_to_a_number_is_refused() -> None:
    number: Any = 0.1
    with pytest.raises(tt.ArgumentTypeError, match=r"^warm_up: after .*schedules.constant\(0.1\)"):
        schedules.warm_up(number, steps=2)


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


def test_buffers_are_those_of_the_model_and_what_is_held_stays_as_it_is(
    rng: np.random.Generator,
) -> None:
    model = tt.build(Net, rng=rng)
    average = copy.deepcopy(model)
    view = average.hidden.weight.numpy()
    before = view.copy()
    moved(model, rng)
    exponential_moving_average(average, model, decay=0.9)
    then = model.norm.running_mean.numpy().copy()
    model.norm.forward(tt.normal((8, 4), rng=rng).trace())

    np.testing.assert_array_equal(average.norm.running_mean.numpy(), then)
    assert not np.array_equal(model.norm.running_mean.numpy(), then)
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
    for decay in (1.0, -0.1, float("nan")):
        with pytest.raises(tt.ArgumentValueError, match=r"decay must be in \[0, 1\), got"):
            exponential_moving_average(layer((3, 4)), model, decay=decay)
    np.testing.assert_array_equal(model.weight.numpy(), before)


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
