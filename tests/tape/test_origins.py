"""What plain values remember of what they were computed from."""

from __future__ import annotations

import gc
import sys
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import data, distributed, losses, nn, optim
from tapetensor.tape.origins import Ids, ids_since, origins_from, shortened
from tests.tape.losing import Model, X, Y


def test_origins_keep_nothing_alive_and_do_not_grow() -> None:
    weight = tt.from_numpy(np.ones(1_000, np.float32))
    average = difference = weight

    def steps(count: int) -> None:
        nonlocal weight, average, difference
        for _ in range(count):
            grads = (X.trace().sum() * weight.mean()).backward()
            weight = weight - weight * 1e-3
            average = average * 0.9 + weight * 0.1
            difference = X.sum() - difference
            del grads

    # A history of so many steps has been replaced by what is kept of it.
    steps(1_000)
    gc.collect()
    before = sys.getallocatedblocks()
    steps(300)
    gc.collect()
    # Every object is a block: one that each step left behind would be 300.
    assert sys.getallocatedblocks() - before < 150


def test_of_a_long_history_the_newer_part_is_known() -> None:
    w = tt.from_numpy([2.0])
    value = X.sum()
    for _ in range(2_000):
        value = value * 0.5 + 1.0
    value = value * w
    grads = (X.trace().sum() * value.sum()).backward()
    with pytest.raises(tt.MissingGradientError):
        grads.get(w)


def test_what_is_kept_of_a_history_is_not_walked_id_by_id() -> None:
    # That would take years.
    known = range(1, 10**18)
    assert ids_since(0, shortened(origins_from(Ids(ranges=[known])))).ranges == [known]


def test_rows_remember_what_they_are_rows_of() -> None:
    model = Model()
    features = model.hidden.forward(X)
    for rows in (next(iter(data.batches(features, size=2))), distributed.alone().shard(features)):
        grads = losses.mse(model.forward(rows.trace()), Y).backward()
        with pytest.raises(tt.MissingGradientError, match=r"trace at .*test_origins"):
            grads.get(model.hidden.weight)


def test_a_plain_handle_of_an_owner_that_is_dropped_remembers_its_tape() -> None:
    model = Model()

    def plain_handle(of: tt.Tensor[Any, Any, Any]) -> Any:
        return model.hidden.forward(of).retaped(tt.NoneTape)

    for gate in (plain_handle(X.trace()), plain_handle(X.trace()).exp()):
        with pytest.raises(tt.MissingGradientError, match=r"hidden.weight, hidden.bias is missing"):
            (model.forward(X.trace()) * gate).sum().backward(wrt=model)
    h = model.hidden.forward(X.trace())
    twin = h.retaped(tt.NoneTape)
    assert len((model.out.forward(h) * twin).sum().backward(wrt=model)) == 4


def test_of_a_long_history_the_beginning_is_known() -> None:
    model = Model()
    value = model.hidden.forward(X)
    for step in range(700):
        value = value * 0.99 + tt.from_numpy(np.full((2, 3), 1e-3 * step, np.float32))
    with pytest.raises(tt.MissingGradientError):
        (model.forward(X.trace()) * value).sum().backward(wrt=model)


def test_a_plain_gradient_at_a_computed_point_remembers_what_that_came_of() -> None:
    model = Model()
    slope = tt.grad(lambda h: (h**3).sum(), model.hidden.forward(X))
    with pytest.raises(tt.MissingGradientError):
        (model.forward(X.trace()) * slope).sum().backward(wrt=model)


class Layers(nn.Module):
    """Weights in a list."""

    weights: list[Any]

    def forward(self, x: Any) -> Any:
        return x @ self.weights[0] @ self.weights[1]


def test_what_a_field_holds_is_a_parameter_in_a_list_and_from_a_constructor_too() -> None:
    student = Layers(weights=[X.transpose(), tt.from_numpy([[0.5, 1.0, 2.0], [1.0, 0.0, 1.0]])])
    teacher = Layers(weights=[one * 0.5 for one in student.weights])
    for _ in range(2):
        teacher.weights = [
            mine * 0.9 + one * 0.1
            for mine, one in zip(teacher.weights, student.weights, strict=True)
        ]
        loss = (student.forward(X.trace()) - teacher.forward(X)).square().mean()
        optim.Sgd(student, lr=0.1).step(loss.backward())


@pytest.mark.parametrize("is_first", [False, True])
def test_what_a_tape_lacks_goes_with_it_where_two_meet(is_first: bool) -> None:
    w, x = tt.from_numpy([2.0]), tt.from_numpy([3.0])
    whole, part = (x.trace() * w).sum(), (x.trace() * w.exp()).sum()
    loss = part + whole if is_first else whole + part
    with pytest.raises(tt.MissingGradientError):
        loss.backward().get(w)


def test_a_history_that_splits_and_joins_is_walked_once() -> None:
    w = tt.from_numpy([1.0])
    value = w
    for _ in range(600):
        value = value * 0.5 + value * 0.5
    grads = (tt.from_numpy([1.0]).trace() * value).sum().backward()
    with pytest.raises(tt.MissingGradientError):
        grads.get(w)


def test_a_value_of_many_beginnings_knows_them_all_after_further_steps() -> None:
    parts = [tt.from_numpy([float(one)]) for one in range(600)]
    value = tt.concat([part.trace() for part in parts]).retaped(tt.NoneTape) * 2.0 + 1.0
    grads = (X.trace().sum() * value.sum()).backward()
    for part in parts:
        with pytest.raises(tt.MissingGradientError):
            grads.get(part)


def test_a_parameter_that_a_program_computes_itself_stays_one_after_many_steps() -> None:
    w = tt.from_numpy([2.0])
    for _ in range(100):
        grads = ((X.trace().sum() * w).sum() + w.square().exp().sum()).backward()
        with pytest.raises(tt.MissingGradientError):
            grads.get(w)
        w = w - w * 1e-4


def test_what_a_long_history_starts_from_is_known_though_it_was_computed() -> None:
    w = tt.from_numpy([2.0]) * 0.5
    value = w
    for _ in range(700):
        value = value * 0.5
    grads = ((X.trace().sum() * w).sum() + value.sum()).backward()
    with pytest.raises(tt.MissingGradientError):
        grads.get(w)


def test_of_very_many_beginnings_none_is_forgotten() -> None:
    parts = [tt.from_numpy([float(one)]) for one in range(700)]
    penalty = parts[0].sum()
    for part in parts[1:]:
        penalty = penalty + part.square().sum()
    grads = (X.trace().sum() + penalty).backward()
    for part in parts:
        with pytest.raises(tt.MissingGradientError):
            grads.get(part)


def test_a_long_history_claims_nothing_of_models_that_took_no_part_in_it() -> None:
    other, model, later = Model(), Model(), tt.from_numpy([1.0])
    average = other.hidden.forward(X).mean()
    for _ in range(3_000):
        data = tt.from_numpy([1.0]).sum()
        average = average * 0.9 + data * 0.1
        later = later - tt.from_numpy([1e-3]) * 0.5
    grads = (model.forward(X.trace()) * average * later).sum().backward()
    assert len([grads[one] for one in (*model.parameters().values(), later)]) == 5
    for parameter in other.hidden.parameters().values():
        with pytest.raises(tt.MissingGradientError):
            grads.get(parameter)


def test_a_plain_handle_of_a_handle_remembers_what_its_owner_came_of() -> None:
    w, x = tt.from_numpy([2.0]), tt.from_numpy([3.0])
    owner = (x.trace() * w).exp()
    plain = owner.with_empty_tape().retaped(tt.NoneTape)
    with pytest.raises(tt.MissingGradientError):
        (x.trace() * plain * w).sum().backward().get(w)


def test_a_plain_handle_remembers_nothing_that_did_not_lead_to_it() -> None:
    w, c, x = (tt.from_numpy([one]) for one in (2.0, 3.0, 4.0))
    _, tape = (x.trace() * w.exp()).split_tape()
    plain = (c.put_tape(tape) * 2.0).retaped(tt.NoneTape)
    assert (x.trace() * w * plain).sum().backward()[w].item() == 24.0


def test_gradients_that_are_set_to_zero_lack_nothing() -> None:
    w, x = tt.from_numpy([2.0]), tt.from_numpy([3.0])
    grads = (x.trace() * w * w.exp()).sum().backward()
    with pytest.raises(tt.MissingGradientError):
        grads.get(w)
    grads.zero()
    assert grads[w].item() == 0.0
    assert (x.trace(grads) * w).sum().backward()[w].item() == 3.0


def test_what_has_no_derivative_ends_a_history() -> None:
    w, x = tt.from_numpy([2.5]), tt.from_numpy([3.0])
    rounded = w.astype(np.int64).astype(np.float32)
    assert (x.trace() * w * rounded).sum().backward()[w].item() == 6.0


@pytest.mark.parametrize("is_older", [False, True])
def test_a_running_mean_of_data_claims_nothing_of_the_model(is_older: bool) -> None:
    mean = tt.zeros((2,))
    weight = tt.ones((2,))
    if not is_older:
        mean = tt.zeros((2,))
    for _ in range(1500):
        prediction = weight.trace() * 2.0
        mean = mean * 0.9 + tt.ones((2,)) * 0.1
        grads = (prediction - mean).square().sum().backward(wrt=[weight])
        assert grads[weight].shape == (2,)
