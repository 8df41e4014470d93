"""A gradient arrives, or an error does: none is lost in silence."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import distributed
from tests.tape.losing import ASKING, LOSING, RIGHT, Model, X, step


@pytest.mark.parametrize("losing", LOSING)
@pytest.mark.parametrize("asking", ASKING)
def test_who_asks_for_a_gradient_that_lacks_a_part_gets_an_error(losing: str, asking: str) -> None:
    model = Model()
    before = {name: one.numpy().copy() for name, one in model.parameters().items()}

    with pytest.raises(tt.MissingGradientError, match=r"is missing: .* at .*losing.py:"):
        ASKING[asking](model, lambda: LOSING[losing](model))

    for name, one in model.parameters().items():
        np.testing.assert_array_equal(one.numpy(), before[name])


def test_the_error_names_the_parameters_if_a_module_was_given() -> None:
    model = Model()
    with pytest.raises(tt.MissingGradientError, match=r"backward: .* of hidden.weight is missing"):
        LOSING["a penalty"](model).backward(wrt=model)
    with pytest.raises(tt.MissingGradientError, match=r"Sgd.step: .* of hidden.weight is missing"):
        step(model, LOSING["a penalty"](model).backward())


@pytest.mark.parametrize(
    ("right", "asking"),
    [
        (right, asking)
        for right in RIGHT
        for asking in ASKING
        # An optimizer that is made before a capture knows no parameters that are replaced in it.
        if (right, asking) != ("written_by_hand", "a captured step")
    ],
)
def test_a_program_that_loses_nothing_is_not_refused(right: str, asking: str) -> None:
    model = Model()
    ASKING[asking](model, lambda: RIGHT[right](model))


def test_a_handle_may_end_where_nobody_asks_for_what_comes_before() -> None:
    generator, critic = Model(), Model()
    fake = generator.forward(X.trace())
    of_critic = critic.forward(fake.with_empty_tape()).sum().backward(wrt=critic)
    assert len(of_critic) == 4

    with pytest.raises(tt.MissingGradientError, match=r"hidden.weight, .* with_empty_tape at "):
        critic.forward(fake.with_empty_tape()).sum().backward(wrt=generator)
    with pytest.raises(tt.MissingGradientError, match="all that comes before it"):
        critic.forward(fake.with_empty_tape()).sum().backward()
    assert len(critic.forward(fake).sum().backward(wrt=generator)) == 4


def test_a_plain_value_that_is_asked_for_is_a_variable_of_its_own() -> None:
    model = Model()
    h = model.hidden.forward(X)
    grads = (model.forward(X.trace()) * h.trace()).sum().backward(wrt=[X, h])
    assert len(grads) == 2


def test_a_loss_that_was_refused_can_be_asked_for_something_else() -> None:
    model = Model()
    loss = LOSING["a penalty"](model)
    with pytest.raises(tt.MissingGradientError):
        loss.backward(wrt=model.hidden)
    assert len(loss.backward(wrt=model.out)) == 2


def test_an_owner_that_is_dropped_in_a_checkpoint_is_recorded_all_the_same() -> None:
    model = Model()

    def part(x: Any) -> Any:
        h = model.hidden.forward(x)
        return model.hidden.forward(h.with_empty_tape())

    found = tt.checkpoint(part, X.trace()).sum().backward()
    expected = model.hidden.forward(model.hidden.forward(X.trace())).sum().backward()
    for one in (X, *model.hidden.parameters().values()):
        np.testing.assert_allclose(found[one].numpy(), expected[one].numpy(), rtol=1e-6)


def test_a_parameter_of_wrt_without_a_gradient_is_an_error_on_request() -> None:
    w = tt.from_numpy([2.0])
    x = tt.from_numpy([1.0])
    loss = (x.trace() * x).sum()
    with pytest.raises(tt.MissingGradientError, match=r"no gradient reaches the tensor of shape"):
        loss.backward(wrt=[w], unused="error")
    assert len(loss.backward(wrt=[x], unused="error")) == 1
    for loss in ((x.trace() * w.exp()).sum(), (x.trace() * w.exp() * w).sum()):
        with pytest.raises(tt.MissingGradientError, match=r"no gradient reaches|is missing"):
            loss.backward(wrt=[w], unused="error")


def carried_with_leafs(model: Model, grads: tt.Gradients) -> None:
    grads.retain_leafs(model.parameters().values())
    step(model, model.forward(X.trace(grads)).sum().backward())


@pytest.mark.parametrize(
    "way",
    [
        lambda model, grads: [grads.array(one) for one in grads],
        lambda model, grads: step(
            model, distributed.Reducer(model, distributed.alone()).all_reduce(grads)
        ),
        carried_with_leafs,
    ],
)
def test_no_way_to_a_gradient_leads_past_the_question_what_it_lacks(way: Any) -> None:
    model = Model()
    grads = LOSING["a penalty"](model).backward()
    with pytest.raises(tt.MissingGradientError, match="is missing"):
        way(model, grads)


def test_the_error_of_a_reducer_names_the_parameters() -> None:
    model = Model()
    reducer = distributed.Reducer(model, distributed.alone())
    with pytest.raises(tt.MissingGradientError, match=r"of hidden\.weight is missing"):
        reducer.backward(LOSING["a penalty"](model))
