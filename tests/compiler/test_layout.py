"""Where values lie: among the gradients of an optimizer, in larger arrays, or by themselves."""

# Lambdas have no annotations.
# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from typing import Literal as L

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import nn, optim


class Two(nn.Module):
    """Two weights."""

    first: tt.Tensor2D[L[3], L[4]]
    second: tt.Tensor2D[L[3], L[4]]


def _side_by_side(first: Any, second: Any, x: Any) -> Any:
    return (tt.concat([first, second]) * x[:6]).square().sum()


def _transposed(first: Any, second: Any, x: Any) -> Any:
    return (first.transpose() * x[:4, :3]).square().sum() + second.square().sum()


def _one_gradient_for_both(first: Any, second: Any, x: Any) -> Any:
    return ((first + second) * x[:3]).square().sum()


def _reshaped(first: Any, second: Any, x: Any) -> Any:
    return (first.exp().reshape((12,)) * x[0, 0]).sum() + second.exp().sum()


def _reshaped_and_transposed(first: Any, second: Any, x: Any) -> Any:
    return (first.reshape((4, 3)).transpose() * x[:3]).exp().sum() + second.exp().sum()


def _in_part(first: Any, second: Any, x: Any) -> Any:
    return (first[0] * x[0]).exp().sum() + second.exp().sum()


def _multiplied(first: Any, second: Any, x: Any) -> Any:
    return (first.transpose() @ second @ x[:4]).square().sum()


def _and_nothing(grads: Any, model: Any) -> Any:
    return ()


def _and_a_gradient(grads: Any, model: Any) -> Any:
    return (grads[model.first],)


def _and_what_came_of_both(grads: Any, model: Any) -> Any:
    return grads[model.first] * model.first, model.second * 2.0, grads[model.second] * 0.5


@pytest.mark.parametrize("returned", [_and_nothing, _and_a_gradient, _and_what_came_of_both])
@pytest.mark.parametrize(
    "loss_of",
    [
        _side_by_side,
        _transposed,
        _one_gradient_for_both,
        _reshaped,
        _reshaped_and_transposed,
        _in_part,
        _multiplied,
    ],
)
@pytest.mark.parametrize("make", [optim.Sgd, optim.Adam])
def test_wherever_gradients_lie_training_is_eager_training(
    make: Any, loss_of: Callable[[Any, Any, Any], Any], returned: Callable[..., Any]
) -> None:
    def train(model: Any, optimizer: Any, x: Any) -> Any:
        loss = loss_of(model.first.trace(), model.second.trace(), x)
        grads = loss.backward(wrt=model)
        optimizer.step(grads)
        return returned(grads, model)

    compiled = tt.compile(train)
    results: list[Any] = []
    for call in (train, compiled):
        rng = np.random.default_rng(0)
        model = Two(first=tt.normal((3, 4), rng=rng), second=tt.normal((3, 4), rng=rng))
        optimizer, found = make(model, lr=0.01), []
        for _ in range(3):
            result = call(model, optimizer, tt.normal((7, 4), rng=rng) * 0.3)
            found += [one.numpy().copy() for one in result]
        results.append([*found, model.first.numpy(), model.second.numpy()])

    for one, other in zip(*results, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
