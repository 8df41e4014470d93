"""Learning rates that depend on the step: pure functions of a number, counted from 0.

    schedule = schedules.warm_up(schedules.cosine(lr=3e-4, steps=9_000), steps=1_000)
    ...
    optimizer.lr = schedule(optimizer.steps)
    optimizer.step(grads)

A schedule keeps no state. So a training that is resumed from a file, which holds the optimizer's
`steps`, has the right rate. Any function of the step that returns a number >= 0 is a schedule.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

from tapetensor.arguments import as_number, as_size, check_function
from tapetensor.errors import ArgumentTypeError

# The number of the step, from 0, in; the learning rate out.
Schedule: TypeAlias = Callable[[int], float]


def constant(lr: float) -> Schedule:
    """Return a schedule that is `lr` at every step.

    Args:
        lr: >= 0.

    Raises:
        ArgumentValueError: if a number is outside its range.
        ArgumentTypeError: if an argument is of the wrong kind.

    >>> constant(0.1)(1000)
    0.1
    """
    rate = as_number("constant", "lr", lr, at_least=0)
    return _of_steps("constant", lambda step: rate)


def step_decay(lr: float, every: int, factor: float = 0.1) -> Schedule:
    """Return a schedule that multiplies the rate by `factor` once in `every` steps.

        lr * factor**(step // every)

    Args:
        lr: the learning rate at the beginning, >= 0.
        every: the number of steps in which it stays the same, >= 1.
        factor: the factor after so many steps, >= 0.

    Raises:
        ArgumentValueError: if a number is outside its range.
        ArgumentTypeError: if an argument is of the wrong kind.

    >>> schedule = step_decay(lr=1.0, every=2, factor=0.5)
    >>> [schedule(step) for step in range(5)]
    [1.0, 1.0, 0.5, 0.5, 0.25]
    """
    rate = as_number("step_decay", "lr", lr, at_least=0)
    length = as_size("step_decay", "every", every, low=1)
    left = as_number("step_decay", "factor", factor, at_least=0)
    return _of_steps("step_decay", lambda step: rate * left ** (step // length))


def cosine(lr: float, steps: int, final_lr: float = 0.0) -> Schedule:
    """Return a schedule that falls along half a period of a cosine, and stays at the end.

        final_lr + (lr - final_lr) * (1 + cos(pi * step / steps)) / 2

    Args:
        lr: the learning rate at the beginning, >= 0.
        steps: the step in which the end is reached, >= 1.
        final_lr: the learning rate from that step on, >= 0.

    Raises:
        ArgumentValueError: if a number is outside its range.
        ArgumentTypeError: if an argument is of the wrong kind.

    Source: Loshchilov & Hutter (2017), "SGDR: stochastic gradient descent with warm restarts",
        equation 5.

    >>> schedule = cosine(lr=1.0, steps=2)
    >>> [schedule(step) for step in range(4)]
    [1.0, 0.5, 0.0, 0.0]
    """
    start = as_number("cosine", "lr", lr, at_least=0)
    end = as_number("cosine", "final_lr", final_lr, at_least=0)
    length = as_size("cosine", "steps", steps, low=1)
    return _of_steps("cosine", lambda step: _along_cosine(start, end, step / length))


def warm_up(after: Schedule, steps: int) -> Schedule:
    """Return a schedule that rises in a straight line to the beginning of `after`, which follows.

        after(0) * (step + 1) / (steps + 1)     for step < steps
        after(step - steps)                     then

    Args:
        after: the schedule that follows; its step 0 comes after the warm-up.
        steps: how many steps the warm-up takes, >= 1.

    Raises:
        ArgumentValueError: if `steps` is not positive.
        ArgumentTypeError: if an argument is of the wrong kind.

    Source: Goyal et al. (2017), "Accurate, large minibatch SGD: training ImageNet in 1 hour",
        section 2.2.

    >>> schedule = warm_up(constant(1.0), steps=3)
    >>> [schedule(step) for step in range(5)]
    [0.25, 0.5, 0.75, 1.0, 1.0]
    """
    length = as_size("warm_up", "steps", steps, low=1)
    if not callable(after):
        raise ArgumentTypeError(
            f"warm_up: after must be a schedule, schedules.constant({after!r}), say"
        )
    check_function("warm_up", "after", after, ("step",))

    def schedule(step: int) -> float:
        if step < length:
            return after(0) * (step + 1) / (length + 1)
        return after(step - length)

    return _of_steps("warm_up", schedule)


def one_cycle(
    lr: float,
    steps: int,
    rise: float = 0.3,
    initial_factor: float = 0.04,
    final_factor: float = 4e-6,
) -> Schedule:
    """Return a schedule that rises to `lr` and falls far below its beginning, both by a cosine.

    From ``lr * initial_factor`` it reaches ``lr`` at step ``rise * steps - 1``, and
    ``lr * final_factor`` at step ``steps - 1``, where it stays. The defaults are PyTorch's.

    Args:
        lr: the highest learning rate, >= 0.
        steps: how many steps the cycle takes, >= 1.
        rise: the share of them in which it rises, in (0, 1).
        initial_factor: in units of `lr`, >= 0.
        final_factor: in units of `lr`, >= 0.

    Raises:
        ArgumentValueError: if a number is outside its range.
        ArgumentTypeError: if an argument is of the wrong kind.

    Source: Smith & Topin (2018), "Super-convergence: very fast training of neural networks using
        large learning rates".

    >>> schedule = one_cycle(lr=1.0, steps=5, rise=0.6, initial_factor=0.5, final_factor=0.0)
    >>> [schedule(step) for step in range(6)]
    [0.5, 0.75, 1.0, 0.5, 0.0, 0.0]
    """
    top = as_number("one_cycle", "lr", lr, at_least=0)
    length = as_size("one_cycle", "steps", steps, low=1)
    share = as_number("one_cycle", "rise", rise, above=0, below=1)
    start = top * as_number("one_cycle", "initial_factor", initial_factor, at_least=0)
    end = top * as_number("one_cycle", "final_factor", final_factor, at_least=0)
    # A cycle of few steps may begin beyond the top.
    peak = share * length - 1

    def schedule(step: int) -> float:
        if step < peak:
            return _along_cosine(start, top, step / peak)
        return _along_cosine(top, end, (step - peak) / (length - 1 - peak))

    return _of_steps("one_cycle", schedule)


def _of_steps(op: str, schedule: Schedule) -> Schedule:
    """Return a schedule that refuses what is no number of a step."""
    return lambda step: schedule(as_size(op, "step", step))


def _along_cosine(start: float, end: float, share: float) -> float:
    """Return what lies between `start` and `end`; `end` beyond a share of 1."""
    # Not by the formula at the end: its rounding would leave a trace.
    return end if share >= 1 else end + (start - end) * (1 + math.cos(math.pi * share)) / 2
