"""A plan loses no gradient in silence: what it knew when it was captured, it asks again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import optim
from tapetensor.compiler import plans
from tapetensor.errors import TraceError
from tapetensor.tape.history import MOST_IDS
from tests.tape.losing import Model, X, step

doubled_by_plan: Any = tt.compile(lambda f: f * 2.0)


product_by_plan: Any = tt.compile(lambda x, f: x * f)


def hands_on_a_plain_handle(model: Model) -> Any:
    compiled: Any = tt.compile(lambda h: h.retaped(tt.NoneTape).exp())
    return (model.forward(X.trace()) * compiled(model.hidden.forward(X.trace()))).sum()


@pytest.mark.parametrize(
    "loss",
    [
        lambda m: (m.forward(X.trace()) * doubled_by_plan(m.hidden.forward(X))).sum(),
        lambda m: (m.forward(X.trace()) * doubled_by_plan(m.hidden.forward(X).trace())).sum(),
        lambda m: product_by_plan(m.out.forward(X.trace()), m.forward(X)).sum(),
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
        return model.forward(h).sum().backward(wrt=model)

    for _ in range(2):
        assert len(gradients(other.forward(X.trace()))) == 4
    with pytest.raises(TraceError, match="compute all of it inside"):
        gradients(model.forward(X.trace()))


def test_what_gradients_lack_goes_through_plans_with_them() -> None:
    model, total = Model(), tt.Gradients()
    merge: Any = tt.compile(lambda one, other: one.merge(other))
    carry: Any = tt.compile(lambda grads: model.forward(X.trace(grads)).sum().backward())
    for _ in range(2):
        grads = (model.forward(X.trace()) * model.hidden.forward(X)).sum().backward()
        merge(total, grads)
        for store in (total, carry(grads)):
            with pytest.raises(tt.MissingGradientError, match=r"hidden\.weight"):
                step(model, store)
            # Of X, too, the gradient lacks a part here, which nobody asks for.
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


def test_a_value_that_a_plan_computes_from_itself_for_ever_has_a_bounded_history() -> None:
    state: Any = tt.ones((3,))
    rate = state
    decayed: Any = tt.compile(lambda state, rate: state * rate)
    for _ in range(2000):
        state = decayed(state, rate)
    earlier: list[Any] = [state.history]
    depth = 0
    while earlier:
        depth, earlier = depth + 1, [one for one in earlier[-1][3] if isinstance(one, list)]
    assert 0 < depth <= MOST_IDS
