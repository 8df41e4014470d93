"""A plan loses no gradient in silence: what it knew when it was captured, it asks again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import optim
from tapetensor.compiler import plans
from tapetensor.tape.origins import MOST_STEPS
from tests.tape.losing import LOSING, RIGHT, Model, X, step

doubled_by_plan: Any = tt.compile(lambda f: f * 2.0)


product_by_plan: Any = tt.compile(lambda x, f: x * f)


def lends_and_drops(model: Model) -> Any:
    compiled: Any = tt.compile(lambda h: model.out.forward(h.with_empty_tape()))
    return compiled(model.hidden.forward(X.trace())).sum()


def hands_on_a_plain_handle(model: Model) -> Any:
    compiled: Any = tt.compile(lambda h: h.retaped(tt.NoneTape).exp())
    return (model.forward(X.trace()) * compiled(model.hidden.forward(X.trace()))).sum()


@pytest.mark.parametrize(
    "loss",
    [
        lambda m: (m.forward(X.trace()) * doubled_by_plan(m.hidden.forward(X))).sum(),
        lambda m: (m.forward(X.trace()) * doubled_by_plan(m.hidden.forward(X).trace())).sum(),
        lambda m: product_by_plan(m.out.forward(X.trace()), m.forward(X)).sum(),
        lends_and_drops,
        hands_on_a_plain_handle,
    ],
)
def test_a_plan_knows_at_every_call_what_its_arguments_came_of(loss: Any) -> None:
    for model in (Model(), Model()):
        for _ in range(2):
            with pytest.raises(tt.MissingGradientError, match=r"hidden\.weight"):
                loss(model).backward(wrt=model)


def test_a_captured_step_is_captured_anew_for_an_argument_that_came_of_its_parameters() -> None:
    model, other = Model(), Model()
    optimizer = optim.Sgd(model, lr=0.1)

    @tt.compile
    def train(x: Any, features: Any) -> None:
        optimizer.step((model.forward(x.trace()) * features).sum().backward())

    for factor in range(3):
        train(X, other.forward(X) * float(factor))
    assert len(plans(train)) == 1
    with pytest.raises(tt.MissingGradientError, match=r"hidden\.weight"):
        train(X, model.forward(X))


def test_a_captured_backward_knows_at_every_call_what_its_handles_came_of() -> None:
    model, other = Model(), Model()

    @tt.compile
    def gradients(h: Any) -> Any:
        return model.forward(h.with_empty_tape()).sum().backward(wrt=model)

    for _ in range(2):
        assert len(gradients(other.forward(X.trace()))) == 4
    with pytest.raises(tt.MissingGradientError, match=r"hidden\.weight"):
        gradients(model.forward(X.trace()))


def test_a_tape_that_joins_in_a_plan_joins_what_was_lent_of_it() -> None:
    model = Model()
    compiled: Any = tt.compile(lambda h: (model.out.forward(h.with_empty_tape()) * h).sum())
    for _ in range(2):
        assert len(compiled(model.hidden.forward(X.trace())).backward(wrt=model)) == 4


def test_what_gradients_lack_goes_through_plans_with_them() -> None:
    model, total = Model(), tt.Gradients()
    merge: Any = tt.compile(lambda one, other: one.merge(other))
    carry: Any = tt.compile(lambda grads: model.forward(X.trace(grads)).sum().backward())
    for _ in range(2):
        grads = LOSING["a penalty"](model).backward()
        merge(total, grads)
        for store in (total, carry(grads)):
            with pytest.raises(tt.MissingGradientError, match=r"hidden\.weight"):
                step(model, store)
            # Of X, too, the gradient lacks a part here, which nobody asks for.
        step(model, carry(RIGHT["a mask"](model).backward()))
        step(model, carry((model.forward(X.trace()) * (X * 2.0)).sum().backward()))


def test_a_plan_asks_at_every_call_whether_one_argument_came_of_another() -> None:
    @tt.compile
    def gradient(w: Any, v: Any, x: Any) -> Any:
        return (x.trace() * v * w).sum().backward()[w]

    w, u, x = (tt.from_numpy([one]) for one in (2.0, 5.0, 3.0))
    for _ in range(2):
        assert gradient(w, u.exp(), x).item() == pytest.approx(3 * np.exp(5.0), rel=1e-6)
    for one in (w, u):
        with pytest.raises(tt.MissingGradientError):
            gradient(one, one.exp(), x)


def test_a_value_that_was_parted_from_its_tape_is_another_kind_than_one_that_was_computed() -> None:
    def asks(x: Any) -> Any:
        return x[:2].trace().square().sum().backward().get(x)

    compiled = tt.compile(asks)
    parted, _ = tt.ones((3,)).trace().split_tape()
    for _ in range(2):
        assert compiled(parted) is None
        with pytest.raises(tt.MissingGradientError):
            compiled(tt.ones((3,)) * 2.0)


def test_a_value_that_a_plan_computes_from_itself_for_ever_has_a_bounded_history() -> None:
    state = rate = tt.ones((3,))
    decayed: Any = tt.compile(lambda state, rate: state * rate)
    for _ in range(2000):
        state = decayed(state, rate)
    depth, earlier = 0, state.origins
    while isinstance(earlier, tuple):
        depth, earlier = depth + 1, earlier[-1]
    assert 0 < depth <= MOST_STEPS
