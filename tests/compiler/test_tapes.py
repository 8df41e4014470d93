"""Tensors that own tapes go into compiled functions and come out: the gradients of eager mode."""

# Lambdas have no annotations.
# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import losses, nn, optim
from tapetensor.compiler import plans
from tapetensor.errors import MissingGradientError, TraceError
from tests.compiler.test_numbers import _vector
from tests.compiler.test_training import Mlp, _batch, _model, _state


def loss_of(model: Mlp, x: Any, labels: Any) -> Any:
    return losses.cross_entropy(model.forward(x), labels)


def test_a_hundred_steps_through_a_compiled_loss_are_those_of_eager_mode() -> None:
    eager, planned = _model(), _model()
    compiled = tt.compile(loss_of)
    of_eager, of_planned = optim.Adam(eager, lr=0.01), optim.Adam(planned, lr=0.01)

    for step in range(100):
        x, labels = _batch(step)
        expected = loss_of(eager, x.trace(), labels)
        found = compiled(planned, x.trace(), labels)
        np.testing.assert_allclose(found.item(), expected.item(), rtol=1e-5)
        of_eager.step(expected.backward(wrt=eager))
        of_planned.step(found.backward(wrt=planned))

    assert len(plans(compiled)) == 1
    for name, array in _state(eager).items():
        np.testing.assert_allclose(_state(planned)[name], array, rtol=1e-5, atol=1e-6)


def _two(x: Any) -> Any:
    h = x.exp()
    twin = h
    return (h * 2.0), twin.sin()


def _plain_beside(x: Any) -> Any:
    value, tape = x.exp().split_tape()
    return value, value.put_tape(tape) * 3.0


def _apart(x: Any) -> Any:
    value, tape = x.exp().split_tape()
    return value.trace() * 3.0, value.detach().put_tape(tape)


def _tape_alone(x: Any) -> Any:
    value, tape = x.exp().split_tape()
    return value, value.put_tape(tape)


FUNCTIONS: list[Callable[[Any], Any]] = [
    lambda x: (x.detach(), x.exp()),
    lambda x: tuple(x.sin().split(2)),
    _two,
    _plain_beside,
    _apart,
    _tape_alone,
]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_what_is_computed_from_the_results_has_the_gradients_of_eager_mode(
    function: Callable[[Any], Any],
) -> None:
    compiled = tt.compile(function)
    for scale in (1.0, 1.0, 0.5):
        x, y = _vector(1.0 * scale, 2.0), _vector(3.0, 4.0 * scale)
        gradients = []
        for one in (function, compiled):
            first, second = one(x.trace() * y if scale == 1.0 else x.trace())
            grads = (first * second.sum()).sum().backward()
            gradients.append([grads.get(leaf) for leaf in (x, y)])

        for expected, found in zip(*gradients, strict=True):
            assert (found is None) == (expected is None)
            if expected is not None:
                np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-12)


def test_a_backward_pass_computes_only_what_is_asked_for() -> None:
    x, y = _vector(2.0), _vector(3.0)
    product = tt.compile(lambda x, y: (x * y).sum())
    for _ in range(2):
        assert product(x.trace(), y).backward(wrt=y)[y].item() == 2.0
        assert product(x.trace(), y).backward(wrt=x)[x].item() == 3.0
        with pytest.raises(MissingGradientError):
            product(x.trace(), y).backward(wrt=x)[y]


def test_gradients_that_a_tape_carries_are_added() -> None:
    squared = tt.compile(lambda x: x.square().sum())
    x = _vector(3.0)
    grads = tt.Gradients()
    for _ in range(4):
        grads = squared(x.trace(grads)).backward()

    assert grads[x].item() == 24.0


def test_a_parameter_that_changes_before_the_backward_pass_changes_nothing() -> None:
    model = _model()
    compiled = tt.compile(loss_of)
    optimizer = optim.Sgd(model, lr=0.5)
    x, labels = _batch()
    head = tt.compile(lambda h, labels: losses.cross_entropy(model.out.forward(h), labels))
    hidden: Any = tt.ones((8, 16))
    before = head(hidden.trace(), labels)
    wanted: Any = losses.cross_entropy(model.out.forward(hidden.trace()), labels).backward()

    for _ in range(3):
        optimizer.step(compiled(model, x.trace(), labels).backward(wrt=model))
        head(hidden.trace(), labels)

    found = before.backward()
    for leaf in (hidden, model.out.weight, model.out.bias):
        np.testing.assert_allclose(found[leaf].numpy(), wanted[leaf].numpy(), rtol=1e-5, atol=1e-7)


def test_a_backward_pass_inside_takes_a_tape_that_was_just_begun_and_no_other() -> None:
    gradient = tt.compile(lambda x: x.square().sum().backward()[x])
    x = _vector(3.0)
    for _ in range(2):
        assert gradient(x.trace()).item() == 6.0

    for traced in (x.trace() * 1.0, x.trace(tt.Gradients())):
        with pytest.raises(TraceError, match=r"from outside|(recorded|computed) outside"):
            gradient(traced)


def test_grad_differentiates_through_a_compiled_function() -> None:
    cubed = tt.compile(lambda x: (x**3).sum())
    x = _vector(1.0, 2.0)

    assert tt.grad(cubed, x).numpy().tolist() == [3.0, 12.0]
    twice = tt.grad(lambda x: tt.grad(cubed, x).sum(), x)
    assert twice.numpy().tolist() == [6.0, 12.0]


def test_a_parameter_comes_in_beside_the_model_that_the_function_closes_over() -> None:
    model = nn.Linear(5, 3, rng=np.random.default_rng(0))

    def loss_of(weight: Any, x: Any) -> Any:
        return (x @ weight.transpose() + model.bias).square().sum()

    compiled, x = tt.compile(loss_of), tt.ones((4, 5))
    others = tt.ones((3, 5))
    for weight in (model.weight, others, model.weight):
        found, wanted = [one(weight.trace(), x).backward()[weight] for one in (compiled, loss_of)]
        assert np.array_equal(found.numpy(), wanted.numpy())
        assert compiled(weight, x).item() == loss_of(weight, x).item()


class _Holder:
    def __init__(self) -> None:
        self.rate = 2.0
        self.t: Any = tt.ones((4,))


def test_a_stored_tensor_that_owns_a_tape_at_a_later_call_is_another_kind() -> None:
    one = _Holder()

    def store(x: Any) -> Any:
        one.t = one.t * 2.0
        return x + 1.0

    compiled = tt.compile(store)
    for _ in range(3):
        compiled(np.ones(2))
    one.t = traced = one.t.trace()
    compiled(np.ones(2))

    assert one.t.owns_tape
    assert one.t.sum().backward()[traced].tolist() == [2.0] * 4


def test_a_tensor_that_is_read_in_a_context_keeps_its_tape_after_it() -> None:
    one = _Holder()

    def step(x: Any) -> Any:
        with tt.GradientContext():
            read = one.t
        return (read * x).sum()

    leaf = tt.ones((4,))
    for run in (tt.compile(step), step):
        one.t = leaf.trace()
        assert run(3.0).backward()[leaf].tolist() == [3.0] * 4


def _product(a: Any, b: Any) -> Any:
    return (a * b).sum()


def _doubled(a: Any, b: Any) -> Any:
    return (a * 2.0).sum()


@pytest.mark.parametrize("function", [_product, _doubled])
def test_gradients_go_to_the_tensor_of_the_call_whether_it_comes_in_once_or_twice(
    function: Any,
) -> None:
    x, y = _vector(1.0, 2.0), _vector(3.0, 5.0)
    for first in ((x, x), (x, y)):
        compiled = tt.compile(function)
        for traced, plain in (first, (x, y), (x, x), (y, x)):
            expected = function(traced.trace(), plain).backward()
            found = compiled(traced.trace(), plain).backward()
            for one in (x, y):
                wanted, got = expected.get(one), found.get(one)
                assert (wanted is None) is (got is None)
                if wanted is not None and got is not None:
                    np.testing.assert_array_equal(got.numpy(), wanted.numpy())


def test_what_was_computed_may_come_in_as_its_own_target() -> None:
    x = _vector(1.0, 2.0) * 2.0
    loss = tt.compile(lambda a, b: losses.mse(a * 3.0, b))(x.trace(), x)

    np.testing.assert_array_equal(
        loss.backward()[x].numpy(), losses.mse(x.trace() * 3.0, x).backward()[x].numpy()
    )
