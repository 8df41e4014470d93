"""Numbers in compiled functions: norms, metrics and `item()`, known when the plan runs."""

# Lambdas have no annotations.
# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import io, losses, optim
from tapetensor.compiler import plans
from tapetensor.errors import ArgumentTypeError, NumericalInstabilityError
from tests.compiler.test_training import _batch, _model, _state


def _vector(*values: float) -> Any:
    return tt.from_numpy(np.array(values))


def clipped(grads: tt.Gradients, model: Any) -> Any:
    return grads.clip_by_global_norm(0.5)


def measured(grads: tt.Gradients, model: Any) -> Any:
    # A function of numpy's takes it as Python's number.
    return np.interp(grads.global_norm(), [0.0, 100.0], [0.0, 100.0]).item()


def scaled(grads: tt.Gradients, model: Any) -> Any:
    norm = grads.global_norm()
    for parameter in model.parameters().values():
        grads.insert(parameter, grads[parameter] * (0.1 / (norm + 1.0)))
    return norm * 2.0


def accumulated(grads: tt.Gradients, model: Any) -> Any:
    sums = tt.GradientAccumulator()
    for name, parameter in model.parameters().items():
        sums.accumulate(name, grads[parameter])
        sums.accumulate(name, grads[parameter] * 0.5)
    sums.normalize()
    norm = sums.apply_clip(0.1)
    for name, parameter in model.parameters().items():
        grads.remove(parameter)
        grads.insert(parameter, sums.get(name))
    return norm


@pytest.mark.parametrize("change", [clipped, measured, scaled, accumulated])
def test_a_hundred_steps_with_norms_are_those_of_eager_mode(
    change: Callable[[tt.Gradients, Any], Any],
) -> None:
    def step(model: Any, optimizer: optim.Optimizer, x: Any, labels: Any) -> Any:
        logits = model.forward(x.trace())
        right = (logits.detach().argmax(-1) == labels).astype(np.float32).mean()
        loss = losses.cross_entropy(logits, labels)
        value = loss.item()
        grads = loss.backward(wrt=model, check_finite=True)
        norm = change(grads, model)
        optimizer.step(grads)
        return {"loss": value, "accuracy": right.item(), "norm": norm, "lr": optimizer.lr}

    eager, planned = _model(), _model()
    of_eager, of_planned = optim.Adam(eager, lr=0.01), optim.Adam(planned, lr=0.01)
    compiled = tt.compile(step)
    for position in range(100):
        of_eager.lr = of_planned.lr = 0.01 / (1 + position)
        expected = step(eager, of_eager, *_batch(position))
        found = compiled(planned, of_planned, *_batch(position))
        assert {type(value) for value in found.values()} == {float}
        np.testing.assert_allclose(list(found.values()), list(expected.values()), rtol=1e-4)

    assert len(plans(compiled)) == 1
    for name, array in _state(eager).items():
        np.testing.assert_allclose(_state(planned)[name], array, rtol=1e-4, atol=1e-5)


def test_a_norm_that_is_not_finite_is_found_at_every_call_and_changes_nothing() -> None:
    model = _model()
    optimizer = optim.Sgd(model, lr=0.5)

    @tt.compile
    def step(x: Any, labels: Any) -> None:
        grads = losses.cross_entropy(model.forward(x.trace()), labels).backward(wrt=model)
        grads.clip_by_global_norm(1.0)
        optimizer.step(grads)

    x, labels = _batch()
    step(x, labels)
    before = _state(model)

    with pytest.raises(NumericalInstabilityError, match="the norm of the gradients is nan"):
        step(x * float("nan"), labels)

    assert optimizer.steps == 1
    for name, array in _state(model).items():
        np.testing.assert_array_equal(array, before[name])


def test_an_update_is_taken_back_where_a_later_step_fails() -> None:
    model = _model()
    optimizer = optim.Adam(model, lr=0.1)

    def step(x: Any, labels: Any) -> Any:
        grads = losses.cross_entropy(model.forward(x.trace()), labels).backward(wrt=model)
        optimizer.step(grads)
        return model.forward(x).sum()

    def failing(x: Any, labels: Any) -> Any:
        result = step(x, labels)
        grads = tt.Gradients()
        grads.insert(model.out.bias, model.out.bias.detach() * float("nan"))
        grads.clip_by_global_norm(1.0)
        return result

    tt.compile(step)(*_batch())
    compiled = tt.compile(failing)
    before, state = _state(model), optimizer.state_arrays()
    state = {name: array.copy() for name, array in state.items()}

    for _ in range(2):
        with pytest.raises(NumericalInstabilityError):
            compiled(*_batch())
        for name, array in {**_state(model), **optimizer.state_arrays()}.items():
            np.testing.assert_array_equal(array, {**before, **state}[name])


def test_numbers_are_computed_as_python_computes_them() -> None:
    def numbers(x: Any, i: Any) -> Any:
        a, n, b = x.sum().item(), i.sum().item(), (x.sum() > 0).item()
        total = 0.0
        for one in (a, n, b):
            total += one
        return (
            a, n, b, total, a / n, n / 2, b + b, -a, abs(a), 2 - n, 2 * a, a**2, 1 / a, n * n,
            a > n, n >= 3, b == 1, x * a, a * x, x + n, x / a, 2.0 - x * b, np.sqrt(a) * 1.0,
        )  # fmt: skip

    compiled = tt.compile(numbers)
    for value in (1.5, 2.5):
        args = tt.from_numpy(np.array([value, 1.0], np.float32)), tt.from_numpy(np.array([1, 2]))
        for found, expected in zip(compiled(*args), numbers(*args), strict=True):
            if isinstance(expected, tt.Tensor):
                assert found.dtype == expected.dtype
                np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-6)
            else:
                assert type(found) is type(expected) or isinstance(expected, np.floating)
                assert found == pytest.approx(expected)
    assert len(plans(compiled)) == 1


def test_a_number_that_is_computed_stands_beside_tensors_made_inside_and_fills_them() -> None:
    def made(x: Any) -> Any:
        number, ones = x.sum().item(), tt.ones((2, 3)) * 5.0
        loss = (ones.trace() * number).sum()
        return number * ones, ones / number, tt.full((2, 3), number), loss.backward()[ones]

    compiled = tt.compile(made)
    for value in (1.5, 2.5):
        x = _vector(value, 1.0)
        for found, expected in zip(compiled(x), made(x), strict=True):
            np.testing.assert_array_equal(found.numpy(), expected.numpy())
            assert found.dtype == expected.dtype
    assert len(plans(compiled)) == 1


def test_arrays_become_tensors_and_tensors_arrays_inside() -> None:
    run = tt.compile(lambda array: np.exp(tt.from_numpy(array, dtype=np.float32).square().numpy()))
    for value in (1.0, 2.0):
        found = run(np.array([value]))
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, np.exp(np.float32(value) ** 2), rtol=1e-6)


@pytest.mark.parametrize("is_caught", [False, True])
def test_parameters_without_a_gradient_are_reported_and_nothing_is_updated(is_caught: bool) -> None:
    def step(model: Any, optimizer: optim.Optimizer, x: Any, labels: Any) -> None:
        loss = losses.cross_entropy(model.forward(x.trace()), labels)
        optimizer.step(loss.backward(wrt=model.out))

    def refused(function: Any, *args: Any) -> None:
        with pytest.raises(tt.UnusedParametersError, match=r"hidden\.weight"):
            function(*args)

    model, untouched = _model(), _model()
    optimizer = optim.Adam(model)
    before = io.state_dict(optimizer)
    inside, outside = tt.compile(partial(refused, step)), partial(refused, tt.compile(step))
    for position in range(3):
        (inside if is_caught else outside)(model, optimizer, *_batch(position))

    # Buffers are another matter: the forward pass changes them.
    for name, parameter in untouched.parameters().items():
        np.testing.assert_array_equal(model.parameters()[name].array, parameter.array)
    for name, array in io.state_dict(optimizer).items():
        np.testing.assert_array_equal(array, before[name])


@pytest.mark.parametrize(
    "formula",
    [
        lambda x, n: np.quantile(x, n),
        lambda x, n: np.percentile(x, n, axis=0),
        lambda x, n: n ** np.float64(1.7),
        lambda x, n: n ** np.float32(1.7),
        lambda x, n: np.float32(1.7) ** n,
        lambda x, n: np.power(n, np.float64(1.7)),
        lambda x, n: +n * x,
        lambda x, n: np.array([+(n > 0.5)]),
        lambda x, n: np.array([sum([n, 0.1, -n, 1e16, n, -1e16])]),
        lambda x, n: np.array([sum([n > 0.5, 2, n], n)]),
    ],
)
def test_a_number_computes_with_numpys_scalars_and_functions_as_pythons_does(formula: Any) -> None:
    def step(x: Any) -> Any:
        return formula(x, x[0].item())

    compiled: Any = tt.compile(step)
    for seed in range(40):
        x = np.random.default_rng(seed).random(5, np.float32)
        found, expected = compiled(x), step(x)
        assert type(found) is type(expected)
        np.testing.assert_allclose(found, expected, rtol=1e-6, strict=True)


@pytest.mark.parametrize(
    "formula",
    [
        lambda x, n: n == 2.0**53,
        lambda x, n: n < 2.0**63,
        lambda x, n: n < 2**63,
        lambda x, n: n * 1.5 >= n,
        lambda x, n: x == n,
        lambda x, n: x.astype(np.int8) < n,
        lambda x, n: x.astype(np.uint64) != n,
        lambda x, n: x.astype(np.float32) == n,
        lambda x, n: x.astype(np.uint8) * n,
        lambda x, n: np.maximum(x.astype(np.int8), n),
        lambda x, n: x.astype(np.int32) + n,
        lambda x, n: x.astype(np.float32) * n,
        lambda x, n: sum([n, 0.5, 1]),
    ],
)
def test_an_integer_of_pythons_is_compared_exactly_and_has_to_fit(formula: Any) -> None:
    def step(x: Any) -> Any:
        return formula(x, x[0].item())

    compiled: Any = tt.compile(step)
    for number in (3, -1, 2**53 + 1, 2**63 - 1, -(2**63), 300):
        x = np.array([number, 2, 5])
        try:
            expected = step(x)
        except OverflowError:
            with pytest.raises(OverflowError):
                compiled(x)
        else:
            found = compiled(x)
            assert type(found) is type(expected)
            np.testing.assert_array_equal(found, expected, strict=True)


@pytest.mark.parametrize(
    "formula",
    [
        lambda t, a: t * a[0],
        lambda t, a: a[0].item() - t,
        lambda t, a: t.astype(np.int32) * (a > 1).sum(),
        lambda t, a: t * (a > 1).sum(),
        lambda t, a: tt.where(t > 0, t, a[0]),
        lambda t, a: tt.maximum(t, a.max()),
        # None of these are numbers.
        lambda t, a: t * a,
        lambda t, a: t + a[0, ...],
        lambda t, a: t * (a[0] > 1),
        lambda t, a: tt.where(t > 0, t, a),
        lambda t, a: tt.maximum(t, a),
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_is_a_number_beside_a_tensor_is_one_in_a_plan_with_the_same_dtype(
    formula: Any, dtype: Any
) -> None:
    def outcome(function: Any) -> Any:
        try:
            found = function(tt.ones((3,)), np.array([1.1, 2.1, 0.3], dtype))
        except ArgumentTypeError as error:
            return str(error)
        return found.dtype, found.numpy().tobytes()

    compiled = tt.compile(formula)

    assert outcome(compiled) == outcome(formula)
    assert len(plans(compiled)) == (not isinstance(outcome(formula), str))
