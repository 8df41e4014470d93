"""Calls of compiled functions: what makes a new plan, what is refused, what stays untouched."""

# Lambdas have no annotations.
# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import math
import re
import weakref
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import Tensor1D, nn, optim
from tapetensor.compiler import plans
from tapetensor.errors import AxisError, ShapeError, TraceError, UnusedParametersError
from tests.compiler.test_training import _batch, _model, _state, train_step


def _vector(*values: float) -> Tensor1D[Any]:
    return tt.from_numpy(list(values), shape=(len(values),))


def test_arguments_by_position_and_by_name_nest_in_containers() -> None:
    @dataclass
    class Pair:
        lhs: Any
        rhs: Any

    class Named(NamedTuple):
        total: Any
        parts: list[Any]

    @tt.compile
    def combine(pair: Pair, *, weights: dict[str, Any], data: np.ndarray[Any, Any]) -> Any:
        total = pair.lhs * weights["lhs"] + pair.rhs * weights["rhs"]
        return Named(total, [pair.lhs, {"data": data * 2}, Pair(total, "text")])

    for factor in (1.0, 2.0):
        pair = Pair(_vector(factor), _vector(10.0))
        weights = {"lhs": _vector(3.0), "rhs": _vector(0.5)}

        result = combine(pair, weights=weights, data=np.array([factor]))

        assert result.total.item() == 3 * factor + 5
        assert result.parts[0] is pair.lhs
        assert result.parts[1]["data"].tolist() == [2 * factor]
        assert result.parts[2].lhs is result.total
        assert result.parts[2].rhs == "text"
    assert len(plans(combine)) == 1


def test_one_tensor_given_twice_is_not_taken_for_two() -> None:
    @tt.compile
    def gradients(x: Tensor1D[Any], y: Tensor1D[Any]) -> Any:
        grads = (x.trace() * y).sum().backward()
        return grads[x], grads[y]

    x, y = _vector(3.0), _vector(5.0)

    assert [one.item() for one in gradients(x, y)] == [5.0, 3.0]
    assert [one.item() for one in gradients(x, x)] == [6.0, 6.0]
    assert [one.item() for one in gradients(x, y)] == [5.0, 3.0]


def test_what_are_several_arguments_are_not_taken_for_one_that_is_given_again() -> None:
    class Weight:
        value = 2.0

    compare = tt.compile(lambda x, a, b: x * (3.0 if a is b else a.value * b.value))
    one, other, model = Weight(), Weight(), nn.Linear(1, 1, rng=np.random.default_rng(0))

    assert compare(_vector(1.0), one, other).item() == 4.0
    assert compare(_vector(1.0), one, one).item() == 3.0
    one_tuple, other_tuple = (tuple(map(float, (1, 2))) for _ in range(2))
    scale = tt.compile(lambda x, a, b: x * (a[0] + b[1]))
    for pair in ((one_tuple, other_tuple), (one_tuple, one_tuple)):
        assert scale(_vector(1.0), *pair).item() == 3.0
    assert len(plans(scale)) == 1
    add = tt.compile(lambda a, b: (a * b, a is b))
    for a, b in ((np.ones(1), np.ones(1)), (model.weight.numpy(),) * 2):
        assert add(a, b)[1] is (a is b)
    both = tt.compile(lambda w: (model.weight * w).sum().item() + 0.0 * (w is model.weight))
    weight: Any = tt.ones((1, 1))
    both(weight)
    assert both(model.weight) == (model.weight * model.weight).sum().item()
    assert len(plans(both)) == 2


def test_gradients_come_out_in_the_order_of_eager_mode_whatever_their_ids_are() -> None:
    def names(wrap: Any) -> list[str]:
        for _ in range(5):
            tt.ones(())  # The ids of what follows lie elsewhere.
        model = _model()
        name_of = {one.id: name for name, one in model.parameters().items()}
        gradients = wrap(lambda x: model.forward(x.trace()).sum().backward(wrt=model))
        return [name_of[unique_id] for unique_id in gradients(_batch()[0])]

    found = [names(wrap) for wrap in (tt.compile, lambda function: function) * 4]
    assert found == found[:1] * 8


@pytest.mark.parametrize(
    "read",
    [
        repr,
        float,
        lambda x: f"{x.item():.2f}",
        lambda x: range(x.item()),
        lambda x: math.sqrt(x.item()),
        lambda x: 0 if x.item() > 1 else 1,
        lambda x: x.numpy().tolist(),
    ],
)
def test_reading_values_is_refused(read: Any) -> None:
    def reading(x: Tensor1D[Any]) -> Any:
        read(x * 2.0)
        return x

    # The lambdas stand in this file, too.
    with pytest.raises(TraceError, match=re.escape(__file__) + r":\d+: compile: .*(return|write) "):
        tt.compile(reading)(_vector(1.0))


def test_shape_errors_are_those_of_eager_mode_and_leave_no_plan() -> None:
    add = tt.compile(lambda x, y: x + y)

    with pytest.raises(ShapeError, match=re.escape("add: shapes (2,) and (3,)")):
        add(_vector(1.0, 2.0), _vector(1.0, 2.0, 3.0))
    assert not plans(add)


def test_wrong_labels_are_found_at_every_replay_and_change_nothing() -> None:
    model = _model()
    compiled = tt.compile(train_step)
    optimizer = optim.Adam(model)
    x, labels = _batch()
    compiled(model, optimizer, x, labels)
    before = _state(model)
    draws = model.drop.rng.bit_generator.state

    wrong: Any = tt.from_numpy(np.full(8, 4))
    with pytest.raises(AxisError, match="labels of 4 classes go from 0 to 3, found 4"):
        compiled(model, optimizer, x, wrong)

    assert len(plans(compiled)) == 1
    assert model.drop.rng.bit_generator.state == draws
    for name, array in _state(model).items():
        np.testing.assert_array_equal(array, before[name])


def test_an_error_while_tracing_leaves_the_model_as_it_was() -> None:
    model = _model()
    optimizer = optim.Adam(model)

    def state() -> dict[str, Any]:
        arrays = {**_state(model), **optimizer.state_arrays()}
        return {name: np.copy(array) for name, array in arrays.items()}

    def failing(x: Any, labels: Any) -> None:
        train_step(model, optimizer, x, labels)
        raise KeyError("late")

    before = state()
    with pytest.raises(KeyError, match="late"):
        tt.compile(failing)(*_batch())

    for name, array in state().items():
        np.testing.assert_array_equal(array, before[name])
    train_step(model, optimizer, *_batch())


def test_an_error_of_the_function_is_raised_by_the_function_itself() -> None:
    seen: list[type] = []

    def failing(x: Any) -> Any:
        seen.append(type(x))
        raise KeyError(type(x))

    with pytest.raises(KeyError) as raised:
        tt.compile(failing)(np.ones(3))

    assert raised.value.args == (np.ndarray,)
    # It is told of no capture, and what it changed is put back.
    assert raised.value.__context__ is None
    assert seen == []


class _Doubled(nn.Module):
    inner: nn.Linear[Any, Any, Any]

    def __init__(self, seed: int) -> None:
        self.inner = nn.Linear(2, 3, rng=np.random.default_rng(seed))

    @tt.compile
    def forward(self, x: Any) -> Any:
        return self.inner.forward(x) * 2.0


def test_models_of_one_kind_share_the_plan_of_a_method_which_keeps_none_alive() -> None:
    models = [_Doubled(seed) for seed in range(20)]
    x = _batch()[0][:, :2]

    for model in models:
        expected = (model.inner.forward(x) * 2.0).numpy()
        np.testing.assert_array_equal(model.forward(x).numpy(), expected)

    assert len(plans(_Doubled.forward)) == 1
    kept = [weakref.ref(model) for model in models]
    del model, models
    assert not any(one() for one in kept)


def test_a_model_that_is_given_beside_an_optimizer_is_trained_by_its_own() -> None:
    def step(model: Any, optimizer: Any, x: Any) -> None:
        optimizer.step(model.forward(x.trace()).mean().backward(wrt=model))

    def models() -> list[Any]:
        return [nn.Linear(4, 2, rng=np.random.default_rng(seed)) for seed in range(3)]

    x, compiled = tt.ones((2, 4)), tt.compile(step)
    pairs = [[(model, optim.Adam(model)) for model in models()] for _ in range(2)]

    for _ in range(3):
        for one, other in zip(*pairs, strict=True):
            compiled(one[0], one[1], x)
            step(other[0], other[1], x)

    for (found, _), (expected, _) in zip(*pairs, strict=True):
        np.testing.assert_array_equal(found.weight.numpy(), expected.weight.numpy())
    with pytest.raises(UnusedParametersError):
        compiled(pairs[0][0][0], pairs[0][1][1], x)


def test_only_functions_are_compiled() -> None:
    with pytest.raises(tt.ArgumentTypeError, match="must be a function, got int"):
        tt.compile(3)  # type: ignore[type-var]  # what is refused
