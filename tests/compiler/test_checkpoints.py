"""A checkpoint that is compiled keeps what eager mode keeps, and computes the same."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import io, nn, optim
from tapetensor.compiler import plans

ROWS, WIDTH = 512, 32


def as_it_is(run: Callable[..., Any], *inputs: Any) -> Any:
    return run(*inputs)


def both(step: Callable[..., Any], *args: Any) -> tuple[Any, Any]:
    """Return plans of a step with and without checkpoints, whose results are the same bits."""
    found = []
    for part in (tt.checkpoint, as_it_is):
        compiled = tt.compile(partial(step, part))
        results = [compiled(*args).numpy().copy() for _ in range(2)]
        np.testing.assert_array_equal(*results)
        found.append((plans(compiled)[0], results[0]))
    (with_them, one), (without, other) = found
    np.testing.assert_array_equal(one, other)
    np.testing.assert_allclose(one, step(tt.checkpoint, *args).numpy(), rtol=1e-4, atol=1e-5)
    return with_them, without


def chain(layers: int) -> Any:
    rng = np.random.default_rng(0)
    return [nn.Linear(WIDTH, WIDTH, rng=rng) for _ in range(layers)]


def run_of(layers: Any) -> Callable[[Any], Any]:
    def run(x: Any) -> Any:
        for layer in layers:
            x = layer.forward(x).tanh()
        return x

    return run


def batch(rows: int = ROWS) -> Any:
    return tt.normal((rows, WIDTH), rng=np.random.default_rng(1))


def test_what_a_checkpoint_computes_on_the_way_takes_no_memory_until_it_is_read() -> None:
    layers = chain(16)

    def step(part: Any, x: Any) -> Any:
        h = x.trace()
        for start in range(0, 16, 4):
            h = part(run_of(layers[start : start + 4]), h)
        return h.sum().backward(wrt=[x])[x]

    with_them, without = both(step, batch())
    assert with_them.arena_bytes < 0.6 * without.arena_bytes
    assert len(with_them.steps) > len(without.steps)


def test_a_checkpoint_within_another_is_computed_again_with_it() -> None:
    layers = chain(8)

    def step(part: Any, x: Any) -> Any:
        def outer(x: Any) -> Any:
            return part(run_of(layers[4:]), part(run_of(layers[:4]), x))

        return part(outer, x.trace()).sum().backward(wrt=[x])[x]

    with_them, without = both(step, batch())
    assert len(with_them.steps) > len(without.steps)


def test_a_backward_pass_outside_computes_again_what_the_plan_has_not_kept() -> None:
    layers = chain(8)

    def forward(part: Any) -> Any:
        return tt.compile(lambda x: part(run_of(layers), x).sum())

    x, kept = batch(), []
    gradients = []
    for part in (tt.checkpoint, as_it_is):
        loss = forward(part)(x.trace())
        step = loss.history
        kept.append(sum([one.nbytes for one in held_by(step[2])]))
        gradients.append(loss.backward(wrt=[x])[x].numpy())
    np.testing.assert_array_equal(*gradients)
    assert kept[0] < 0.4 * kept[1]


def held_by(pullbacks: Any) -> list[Any]:
    """Return the arrays that the pullbacks of a compiled function hold."""
    (residuals,) = pullbacks.compute.args
    return [one for one in residuals if isinstance(one, np.ndarray)]


def test_what_was_drawn_and_counted_is_so_once() -> None:
    found = []
    for is_compiled in (True, False):
        rng = np.random.default_rng(0)
        norm: Any = nn.BatchNorm1d(WIDTH)
        layer, drop = nn.Linear(WIDTH, WIDTH, rng=rng), nn.Dropout(0.5, rng=rng)
        model = nn.Sequential(layer, norm, drop)
        optimizer = optim.Adam(model)

        def step(x: Any, model: Any = model, optimizer: Any = optimizer) -> Any:
            hidden = tt.checkpoint(lambda x: model.forward(x).tanh(), x.trace())
            loss = hidden.square().mean()
            optimizer.step(loss.backward(wrt=model))
            return loss.detach()

        run: Any = tt.compile(step) if is_compiled else step
        losses = [run(batch(64)).item() for _ in range(4)]
        found.append((losses, io.state_dict(model), io.state_dict(optimizer)))
    (losses, model_state, state), (plain, plain_model, plain_state) = found
    np.testing.assert_allclose(losses, plain, rtol=1e-5)
    for name, array in (plain_model | plain_state).items():
        np.testing.assert_allclose(
            (model_state | state)[name], array, rtol=1e-4, atol=1e-6, err_msg=name
        )


def image(x: Any) -> Any:
    return tt.max_pool2d(tt.conv2d(x, FILTERS, padding=1).tanh(), 2).square()


def attention(x: Any) -> Any:
    return tt.scaled_dot_product_attention(x, x, x.tanh())


def recurrence(x: Any) -> Any:
    outputs, _ = LSTM.forward(x)
    return outputs.tanh()


def written(x: Any) -> Any:
    return tt.concat([x.sort(axis=-1), x.cumulative_sum(axis=0)[1:3].exp()], axis=0).softmax()


FILTERS: Any = tt.normal((3, 3, 3, 3), rng=np.random.default_rng(2))
LSTM: Any = nn.LSTM(6, 6, rng=np.random.default_rng(3))


@pytest.mark.parametrize(
    ("run", "shape"),
    [(image, (2, 3, 8, 8)), (attention, (2, 5, 6)), (recurrence, (2, 5, 6)), (written, (5, 6))],
)
def test_ops_that_plans_capture_as_a_whole_are_computed_again(
    run: Callable[[Any], Any], shape: tuple[int, ...]
) -> None:
    def step(part: Any, x: Any) -> Any:
        return part(run, part(lambda x: x.tanh() * 2.0, x.trace())).sum().backward(wrt=[x])[x]

    both(step, tt.normal(shape, rng=np.random.default_rng(1)))


def test_a_value_inside_that_is_used_outside_is_there() -> None:
    layers = chain(3)

    def step(part: Any, x: Any) -> Any:
        y = part(run_of(layers), x.trace())
        # The same value, which a program has once.
        hidden = layers[0].forward(x).tanh()
        return (y.detach() * hidden).sum(axis=0) + y.sum().backward(wrt=[x])[x].sum(axis=0)

    both(step, batch())


def test_an_update_between_a_checkpoint_and_its_backward_pass_changes_nothing_of_it() -> None:
    found = []
    for is_compiled in (True, False):
        layers = chain(3)
        optimizer = optim.Sgd(nn.Sequential(*layers), lr=0.5)

        def step(x: Any, layers: Any = layers, optimizer: Any = optimizer) -> Any:
            run = run_of(layers)
            optimizer.step(run((x * 0.5).trace()).square().mean().backward())
            loss = tt.checkpoint(run, x.trace()).square().mean()
            optimizer.step(run((x * 0.3).trace()).square().mean().backward())
            return loss.backward()[x]

        run: Any = tt.compile(step) if is_compiled else step
        found.append([run(batch(8)).numpy().copy() for _ in range(3)])

    compiled, eager = found
    np.testing.assert_allclose(compiled, eager, rtol=1e-5)
