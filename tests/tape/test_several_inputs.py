"""A tape on any one of several inputs: what meets it is recorded, and gradients reach both."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import nn

Function = Callable[[Any, Any], Any]

_ATTENTION = nn.Linear(3, 3, dtype=np.float64, rng=np.random.default_rng(1))


def cross_attention(x: Any, memory: Any) -> Any:
    keys = _ATTENTION.forward(memory)
    return (x @ keys.transpose()).softmax(axis=-1)


def add_into(x: Any, y: Any) -> Any:
    """Add what two branches make of two inputs."""
    return x.exp() + y.sin()


FUNCTIONS: list[Function] = [
    add_into,
    cross_attention,
    lambda x, y: tt.concat([x, y], axis=-1).square(),
    lambda x, y: tt.stack([x, y]).square(),
    lambda x, y: tt.einsum("ij,ij->i", x, y),
    lambda x, y: tt.where(tt.ones(x.shape) > 0.0, x * 2.0, y),
    tt.maximum,
]


def outcome(f: Function, traced: tuple[bool, bool]) -> tuple[Any, list[Any]]:
    """Return the result of `f` and the gradient of each input, None where there is none."""
    inputs = [
        tt.from_numpy(np.random.default_rng(seed).standard_normal((3, 3))) for seed in range(2)
    ]
    x, y = (one.trace() if owns else one for one, owns in zip(inputs, traced, strict=True))
    result = f(x, y)
    grads = result.sum().backward()
    return result, [asked(grads, one) for one in inputs]


def asked(grads: tt.Gradients, tensor: Any) -> Any:
    """Return a gradient; None where there is none, or a part of it was not recorded."""
    try:
        return grads.get(tensor)
    except tt.MissingGradientError:
        return None


@pytest.mark.parametrize("f", FUNCTIONS)
def test_the_gradient_of_a_traced_input_does_not_depend_on_the_other(f: Function) -> None:
    _, both = outcome(f, (True, True))

    for position, traced in enumerate([(True, False), (False, True)]):
        _, alone = outcome(f, traced)
        np.testing.assert_array_equal(alone[position].numpy(), both[position].numpy())


@pytest.mark.parametrize("traced", [(True, False), (False, True), (True, True)])
@pytest.mark.parametrize("f", FUNCTIONS)
def test_the_result_owns_the_tape_of_either(f: Function, traced: tuple[bool, bool]) -> None:
    x, y = (tt.ones((3, 3), np.float64) for _ in range(2))

    result = f(x.trace() if traced[0] else x, y.trace() if traced[1] else y)

    assert result.owns_tape
    assert not f(x, y).owns_tape


def test_a_plain_operand_that_meets_the_tape_directly_gets_its_gradient_too() -> None:
    x, y = tt.full((2,), 3.0), tt.full((2,), 5.0)

    pairs: list[tuple[Any, Any]] = [(x.trace(), y), (x, y.trace())]
    for lhs, rhs in pairs:
        grads = (lhs * rhs).sum().backward()

        assert grads[x].numpy().tolist() == [5.0, 5.0]
        assert grads[y].numpy().tolist() == [3.0, 3.0]
