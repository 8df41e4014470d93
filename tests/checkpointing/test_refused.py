"""A second run of a checkpoint that does not repeat the first is refused."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tests.checkpointing.trials import Trial, outcome


def _hidden(value: Any) -> tuple[Callable[[], Any], Callable[[Any], None]]:
    """Return how to read and how to set a value that nobody finds: another thread's, so to say."""
    local = threading.local()
    local.value = value
    return lambda: local.value, lambda new: setattr(local, "value", new)


def _hidden_parameter_times_zero() -> Trial:
    read, _ = _hidden(tt.ones((3, 2), np.float64))
    upper = tt.zeros((2, 3), np.float64)
    return Trial(
        lambda x: x + (x @ read()) @ upper,
        lambda: read().__setattr__("array", np.full((3, 2), 2.0)),
    )


def _hidden_number_times_zero() -> Trial:
    read, write = _hidden(3.0)
    zero = tt.zeros((3,), np.float64)
    return Trial(lambda x: x * read() * zero, lambda: write(4.0))


def _mask_of_a_custom_op() -> Trial:
    read, _ = _hidden(np.array([1.0, 2.0, 3.0]))

    def kernel(x: Any) -> Any:
        scale = read().copy()
        return x * 0.0, (lambda g: g * scale,)

    def change() -> None:
        read()[...] = 5.0

    return Trial(lambda x: tt.custom_op(kernel, x, shape=x.shape), change)


def _advanced_iterator() -> Trial:
    numbers = itertools.count(1)
    zero = tt.zeros((3,), np.float64)
    return Trial(lambda x: x * float(next(numbers)) * zero, lambda: None)


def _swapped_inputs() -> Trial:
    turns = itertools.cycle([False, True])

    def f(x: Any) -> Any:
        one, two = x.split([1, 2], axis=1)
        first = one.sum() * 0.0
        second = two.sum() * 0.0
        return first - second if next(turns) else second - first

    return Trial(f, lambda: None)


def _other_ops() -> Trial:
    turns = itertools.cycle([False, True])
    zero = tt.zeros((3,), np.float64)
    return Trial(lambda x: (x * zero).sin() if next(turns) else (x * zero).tanh(), lambda: None)


def _inner_checkpoint() -> Trial:
    read, write = _hidden(3.0)
    zero = tt.zeros((3,), np.float64)
    return Trial(lambda x: tt.checkpoint(lambda h: h * read() * zero, x) + 1.0, lambda: write(4.0))


def _derivative_inside() -> Trial:
    read, write = _hidden(3.0)
    zero = tt.zeros((3,), np.float64)
    return Trial(
        lambda x: tt.grad(lambda v: (v.exp() * read() * zero).sum(), x), lambda: write(4.0)
    )


@pytest.mark.parametrize(
    "made",
    [
        _derivative_inside,
        _hidden_parameter_times_zero,
        _hidden_number_times_zero,
        _mask_of_a_custom_op,
        _advanced_iterator,
        _other_ops,
        _swapped_inputs,
        _inner_checkpoint,
    ],
)
def test_a_run_that_cannot_be_repeated_is_refused(made: Callable[[], Trial]) -> None:
    with pytest.raises(tt.ArgumentValueError, match=r"in the backward pass f .* than in the forw"):
        outcome(made(), is_checkpointed=True)


def test_the_op_that_differs_first_is_named() -> None:
    with pytest.raises(tt.ArgumentValueError, match="computed something else, first in 'multiply'"):
        outcome(_hidden_number_times_zero(), is_checkpointed=True)


def test_a_large_array_that_f_writes_to_is_refused() -> None:
    total = np.zeros(1 << 18)

    def f(x: Any) -> Any:
        total[...] += 1.0
        return x * 2.0

    with pytest.raises(tt.ArgumentValueError, match="writes to a numpy array of more than a MiB"):
        outcome(Trial(f, lambda: None), is_checkpointed=True)


def test_a_backward_pass_inside_on_the_tape_of_the_input_is_refused() -> None:
    def f(x: Any) -> Any:
        twin = x
        return twin * x.exp().sum().backward().global_norm()

    with pytest.raises(
        tt.UntracedTensorError, match="f runs a backward pass through what it recorded"
    ):
        outcome(Trial(f, lambda: None), is_checkpointed=True)


def test_a_backward_pass_inside_on_a_tape_of_its_own_is_none_of_its_business() -> None:
    def f(x: Any) -> Any:
        return x * x.detach().trace().exp().sum().backward().global_norm()

    trial = Trial(f, lambda: None)
    expected = outcome(trial, is_checkpointed=False)
    assert outcome(trial, is_checkpointed=True) == expected
