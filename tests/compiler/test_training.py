"""Whole training steps, compiled: the same models, state and randomness as in eager mode."""

# Lambdas have no annotations.
# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from typing import Literal as L

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import NoneTape, Tensor0D, Tensor1D, Tensor2D, losses, nn, optim
from tapetensor.typing import B, T


class Mlp(nn.Module):
    hidden: nn.Linear[L[6], L[16]]
    norm: nn.BatchNorm1d[L[16]]
    drop: nn.Dropout
    out: nn.Linear[L[16], L[4]]

    def forward(self, x: Tensor2D[B, L[6], T]) -> Tensor2D[B, L[4], T]:
        return self.out.forward(self.drop.forward(self.norm.forward(self.hidden.forward(x)).relu()))


def _model() -> Mlp:
    rng = np.random.default_rng(3)
    return Mlp(
        hidden=nn.Linear(6, 16, rng=rng),
        norm=nn.BatchNorm1d(16),
        drop=nn.Dropout(0.25, rng=rng),
        out=nn.Linear(16, 4, rng=rng),
    )


def _batch(seed: int = 0) -> tuple[Tensor2D[L[8], L[6]], Tensor1D[L[8], NoneTape, np.int64]]:
    rng = np.random.default_rng(seed)
    x: Any = tt.from_numpy(rng.standard_normal((8, 6)).astype(np.float32))
    labels: Any = tt.from_numpy(rng.integers(0, 4, 8))
    return x, labels


def train_step(
    model: Mlp,
    optimizer: optim.Optimizer,
    x: Tensor2D[B, L[6]],
    labels: Tensor1D[B, NoneTape, np.int64],
) -> Tensor0D[NoneTape]:
    loss = losses.cross_entropy(model.forward(x.trace()), labels)
    value, tape = loss.split_tape()
    optimizer.step(value.put_tape(tape).backward(wrt=model))
    return value


def _state(model: nn.Module) -> dict[str, Any]:
    return {
        name: tensor.numpy().copy()
        for name, tensor in {**model.parameters(), **model.buffers()}.items()
    }


def test_compiled_and_eager_steps_can_take_turns() -> None:
    eager, mixed = _model(), _model()
    eager_optimizer, mixed_optimizer = optim.Adam(eager), optim.Adam(mixed)
    compiled = tt.compile(train_step)

    for step in range(10):
        x, labels = _batch(step)
        train_step(eager, eager_optimizer, x, labels)
        (compiled if step % 2 else train_step)(mixed, mixed_optimizer, x, labels)

    for name, array in _state(eager).items():
        np.testing.assert_allclose(_state(mixed)[name], array, rtol=1e-5, atol=1e-6)


def test_two_optimizers_of_one_parameter_keep_their_order() -> None:
    def run(model: nn.Linear[int, int], optimizers: list[optim.Optimizer]) -> Any:
        gradients = model.forward(tt.ones((4, 3)).trace()).square().sum().backward(wrt=model)
        for optimizer in optimizers:
            optimizer.step(gradients)
        return model.weight.detach()

    results = []
    for call in (run, tt.compile(run)):
        model = nn.Linear(3, 2, rng=np.random.default_rng(1))
        first, second = optim.Sgd(model, lr=0.1), optim.Sgd(model, lr=0.1, weight_decay=0.5)
        results.append([call(model, [first, second]).numpy(), model.weight.numpy()])

    (returned, kept), (found, found_kept) = results
    np.testing.assert_allclose(found, returned, rtol=1e-6)
    np.testing.assert_allclose(found_kept, kept, rtol=1e-6)


def test_a_tape_from_before_a_compiled_step_sees_the_values_from_before() -> None:
    model = _model()
    optimizer = optim.Sgd(model, lr=0.5)
    compiled = tt.compile(train_step)
    compiled(model, optimizer, *_batch())
    weight = model.out.weight.numpy().copy()
    hidden: Tensor2D[L[1], L[16]] = tt.ones((1, 16))
    y = model.out.forward(hidden.trace()).sum()

    compiled(model, optimizer, *_batch(2))

    gradient = y.backward()[hidden]
    np.testing.assert_allclose(gradient.numpy()[0], weight.sum(axis=0), rtol=1e-6)


def test_a_view_of_a_parameter_is_never_written_to() -> None:
    model = _model()
    optimizer = optim.Sgd(model, lr=0.5)
    compiled = tt.compile(train_step)

    views = []
    for step in range(4):
        compiled(model, optimizer, *_batch(step))
        views.append((model.out.weight.numpy(), model.out.weight.numpy().copy()))

    for view, copy in views:
        np.testing.assert_array_equal(view, copy)


def test_a_gradient_that_is_read_after_the_step_is_still_itself() -> None:
    def run(layer: Any, optimizer: Any, x: Any) -> Any:
        gradients = layer.forward(x.trace()).square().sum().backward(wrt=layer)
        optimizer.step(gradients)
        return layer.weight.detach() * gradients[layer.weight].square()

    x = tt.normal((4, 3), rng=np.random.default_rng(0))
    found = []
    for call in (run, tt.compile(run)):
        layer = nn.Linear(3, 2, rng=np.random.default_rng(1))
        optimizer = optim.Sgd(layer, lr=0.1)
        found.append([call(layer, optimizer, x).numpy() for _ in range(3)])

    np.testing.assert_allclose(found[1], found[0], rtol=1e-5)


def test_gradients_that_come_in_are_clipped_where_they_are() -> None:
    model = _model()
    clip = tt.compile(lambda grads: grads.clip_by_global_norm(0.01))
    for seed in range(2):
        x, labels = _batch(seed)
        loss = losses.cross_entropy(model.forward(x.trace()), labels)
        grads = loss.backward(wrt=model)
        clip(grads)
        assert np.isclose(grads.global_norm(), 0.01)


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


def _in_part_for_every_row(first: Any, second: Any, x: Any) -> Any:
    return (first[:1] * x[:5]).exp().sum() + second.exp().sum()


def _in_part_of_a_part(first: Any, second: Any, x: Any) -> Any:
    return (first[:2][:, 1:] * x[:2, 1:]).exp().sum() + second[None][:, :, ::2].exp().sum()


def _in_parts_that_overlap(first: Any, second: Any, x: Any) -> Any:
    differences = (first[:, 1:] - first[:, :-1] * x[:3, 1:]).square().sum()
    return differences + (second[1:2] * x[:1]).exp().sum() + (second[::-1] * x[:3]).sum()


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
        _in_part_for_every_row,
        _in_part_of_a_part,
        _in_parts_that_overlap,
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
