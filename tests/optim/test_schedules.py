"""Schedules of the learning rate: their values at every step, and what they refuse."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

import tapetensor as tt
from tapetensor.optim import Sgd, schedules
from tests.optim.models import Model, gradients_of


def values(schedule: schedules.Schedule, steps: int) -> list[float]:
    return [schedule(step) for step in range(steps)]


def test_a_constant_is_the_same_at_every_step() -> None:
    assert values(schedules.constant(0.25), 3) == [0.25] * 3


def test_a_step_decay_falls_by_its_factor_at_every_so_many_steps() -> None:
    schedule = schedules.step_decay(0.8, every=3, factor=0.5)

    assert values(schedule, 8) == [0.8, 0.8, 0.8, 0.4, 0.4, 0.4, 0.2, 0.2]


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


def test_a_cycle_needs_steps_to_rise_in() -> None:
    with pytest.raises(tt.ArgumentValueError, match=r"^one_cycle: rise must be in \(0, 1\), got 0"):
        schedules.one_cycle(1.0, steps=10, rise=0)


def test_a_warm_up_to_a_number_is_refused() -> None:
    number: Any = 0.1
    with pytest.raises(tt.ArgumentTypeError, match=r"^warm_up: after .*schedules.constant\(0.1\)"):
        schedules.warm_up(number, steps=2)
