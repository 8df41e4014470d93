"""A gradient arrives, or an error does: none is lost in silence, in whole or in part."""

from __future__ import annotations

import copy
import gc
import sys
import weakref
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import distributed, losses, nn, optim
from tapetensor.tape.history import MOST_IDS, MOST_KEPT, Ids, shortened
from tapetensor.tape.pullbacks import CONSTANT
from tapetensor.tensor.apply import apply
from tests.tape.losing import ARRIVING, ASKING, COMPLETE, LOSING, Model, X, Y, chain, fit, step


@pytest.mark.parametrize("name", ARRIVING)
def test_a_value_of_a_models_own_tensors_keeps_its_pullbacks_so_the_gradient_arrives(
    name: str,
) -> None:
    model, program = Model(), ARRIVING[name]
    found = program(model).backward()
    asked = program(model).backward(wrt=model)
    rng = np.random.default_rng(1)

    for one in [one for one in model.parameters().values() if one in found]:
        direction = rng.standard_normal(one.shape).astype(np.float32)
        values = one.array
        ahead, behind = [
            changed(program, model, one, values + np.float32(size) * direction)
            for size in (1e-2, -1e-2)
        ]
        slope = (found[one].numpy() * direction).sum()
        np.testing.assert_allclose(slope, (ahead - behind) / 2e-2, rtol=2e-2, atol=5e-3)
        np.testing.assert_array_equal(found[one].numpy(), asked[one].numpy())


def changed(program: Any, model: Model, parameter: Any, values: Any) -> float:
    """Return the loss with other values of a parameter."""
    before, parameter.array = parameter.array, values
    try:
        loss: float = program(model).item()
        return loss
    finally:
        parameter.array = before


@pytest.mark.parametrize("losing", LOSING)
@pytest.mark.parametrize("asking", ASKING)
def test_who_asks_for_a_gradient_that_lacks_a_part_gets_an_error(losing: str, asking: str) -> None:
    model = Model()
    before = {name: one.numpy().copy() for name, one in model.parameters().items()}

    with pytest.raises(tt.MissingGradientError, match=r"is missing: .*; "):
        ASKING[asking](model, lambda: LOSING[losing](model))

    for name, one in model.parameters().items():
        np.testing.assert_array_equal(one.numpy(), before[name])


@pytest.mark.parametrize("complete", [*COMPLETE, *ARRIVING])
@pytest.mark.parametrize(
    "asking", ["wrt", "get", "a captured step", "a loss of a compiled function"]
)
def test_who_asks_for_a_gradient_that_lacks_nothing_gets_it(complete: str, asking: str) -> None:
    model = Model()
    program = {**COMPLETE, **ARRIVING}[complete]
    # An optimizer wants them all.
    ASKING[asking](model, lambda: program(model) + model.forward(X.trace()).sum().square() * 0.0)


def test_the_error_names_the_op_the_parameters_and_the_cures() -> None:
    model = Model()
    match = (
        r"^{}: a part of the gradients of hidden.weight, hidden.bias is missing: linear made a "
        r"plain value .*of it, and ops on plain values that come of data are not recorded; .* "
        r"weight.retaped\(x.tape_type\) or x.trace\(\), or detach\(\) it where it is a constant"
    )
    with pytest.raises(tt.MissingGradientError, match=match.format("backward")):
        LOSING["before_the_trace"](model).backward(wrt=model)
    with pytest.raises(tt.MissingGradientError, match=match.format("Sgd.step")):
        step(model, LOSING["before_the_trace"](model).backward())
    # Of a value of many ops a teacher is more likely to be meant.
    with pytest.raises(
        tt.MissingGradientError, match=r"recorded; detach\(\) .*nn.inference\(model\)"
    ):
        LOSING["one branch"](model).backward(wrt=model)


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
        lambda model, grads: optim.Sgd(model, lr=0.1).step(copy.deepcopy(grads)),
    ],
)
def test_no_way_to_a_gradient_leads_past_the_question_what_it_lacks(way: Any) -> None:
    model = Model()
    grads = LOSING["one branch"](model).backward()
    with pytest.raises(tt.MissingGradientError, match="is missing"):
        way(model, grads)


def test_a_reducer_names_the_parameters_that_lack_a_part() -> None:
    model = Model()
    reducer = distributed.Reducer(model, distributed.alone())
    with pytest.raises(tt.MissingGradientError, match=r"of hidden\.weight, .* is missing"):
        reducer.backward(LOSING["one branch"](model))


@pytest.mark.parametrize("is_first", [False, True])
def test_merged_gradients_lack_what_either_lacked(is_first: bool) -> None:
    model = Model()
    whole, part = fit(model).backward(), LOSING["one branch"](model).backward()
    sum_ = part if is_first else whole
    sum_.merge(whole if is_first else part)

    with pytest.raises(tt.MissingGradientError):
        sum_.get(model.hidden.weight)
    sum_.zero()
    assert sum_[model.hidden.weight].numpy().any() is np.False_


# Plain values that are not recorded.


def test_a_plain_value_of_data_holds_ids_and_no_arrays() -> None:
    gc.disable()
    try:
        w, x = Model().hidden.weight, X.exp()
        recorded = weakref.ref(x._array)
        y = (x @ w).tanh()
        del x
        assert recorded() is None
        assert y.history is not None
    finally:
        gc.enable()


def test_a_value_of_parameters_keeps_its_pullbacks_for_so_many_steps_and_no_more() -> None:
    w = Model().hidden.weight
    arrays = []
    value = w
    for _ in range(3 * MOST_KEPT):
        value = value.exp() * 0.1
        arrays.append(weakref.ref(value._array))
    gc.collect()
    assert sum(array() is not None for array in arrays) <= 1
    last = chain(w, MOST_KEPT)
    with pytest.raises(tt.MissingGradientError):
        (X.trace().sum() * last.exp().sum()).backward(wrt=w)
    assert (X.trace().sum() * chain(w, MOST_KEPT - 1).sum()).backward(wrt=w)[w].shape == w.shape


def test_a_tensor_is_a_models_own_once_it_is_a_field_or_was_given_to_an_optimizer() -> None:
    class Loose:
        def __init__(self) -> None:
            self.w = tt.from_numpy([2.0])

        def parameters(self) -> dict[str, Any]:
            return {"w": self.w}

    loose, data = Loose(), tt.from_numpy([3.0])
    with pytest.raises(tt.MissingGradientError):
        (data.trace() * loose.w.exp()).sum().backward(wrt=loose.w)
    optim.Sgd(loose, lr=0.1)
    grads = (data.trace() * loose.w.square()).sum().backward(wrt=loose.w)
    assert grads[loose.w].item() == 12.0


def test_a_value_that_was_computed_before_a_loop_is_used_up_by_the_first_step() -> None:
    model = Model()
    penalty = model.hidden.weight.square().sum()
    first, second = fit(model) + penalty, fit(model) + penalty
    first.backward()

    for wrt in (model, None):
        with pytest.raises(
            tt.MissingGradientError,
            match=r"a plain value .*of it that backward\(\) at .*test_gaps.py:\d+ has used up; "
            r"compute it again in each step, write backward\(retain=True\)",
        ):
            second.backward(wrt=wrt, retain=True).get(model.hidden.weight)
    # Nobody else misses anything.
    assert len(second.backward(wrt=model.out)) == 2

    penalty = model.hidden.weight.square().sum()
    for _ in range(2):
        (fit(model) + penalty).backward(wrt=model, retain=True)


def test_a_gradient_that_is_computed_with_is_a_gap_before_all_leafs_of_its_pass() -> None:
    model, other = Model(), Model()
    grads = fit(model).backward()
    slope = grads[model.hidden.weight]

    with pytest.raises(
        tt.MissingGradientError, match=r"a gradient .*that another backward pass gave.*tt\.grad"
    ):
        (model.forward(X.trace()) @ slope).sum().backward(wrt=model.out)
    slope = slope.square().sum()
    with pytest.raises(tt.MissingGradientError, match="sum made a plain value of it"):
        (fit(model) + slope).backward(wrt=model.out)
    assert len((fit(other) + slope).backward(wrt=other)) == 4


def test_an_operand_that_a_kernel_takes_as_a_constant_is_a_gap_for_who_asks_for_it() -> None:
    def weighted(x: Any, _: Any, weights: Any) -> Any:
        return x * weights, (lambda g: g * weights, None, CONSTANT)

    model = Model()
    weights = model.hidden.weight.square()[:2]
    loss = apply(weighted, (model.out.forward(X.trace()), X, weights)).sum()
    for wrt in (model.hidden, None):
        with pytest.raises(
            tt.MissingGradientError, match=r"weighted takes an operand .* as a constant; detach\(\)"
        ):
            loss.backward(wrt=wrt, retain=True).get(model.hidden.weight)
    assert len(loss.backward(wrt=model.out)) == 2


def test_what_has_no_derivative_is_no_gap() -> None:
    w, x = tt.from_numpy([2.5]), tt.from_numpy([3.0])
    rounded = w.astype(np.int64).astype(np.float32)
    assert (x.trace() * w * rounded).sum().backward()[w].item() == 6.0


@pytest.mark.parametrize(
    "computed", [lambda w: w * 0.9, lambda w: w.trace(), lambda w: X.transpose() @ (X @ w)]
)
def test_a_field_takes_a_leaf_and_offers_to_detach_what_was_computed(computed: Any) -> None:
    model = Model()
    value = computed(model.hidden.weight)
    with pytest.raises(tt.BuildError, match=r"weight: a field holds a leaf, .*detach\(\)"):
        model.hidden.weight = value
    assert fit(model).backward(wrt=model)[model.hidden.weight].shape == (3, 3)


def test_rows_are_of_what_they_are_rows_of() -> None:
    model = Model()
    features = model.hidden.forward(X)
    for rows in (
        next(iter(tt.data.batches(features, size=2))),
        distributed.alone().shard(features),
        copy.copy(features),
    ):
        grads = losses.mse(model.forward(rows.trace()), Y).backward()
        with pytest.raises(tt.MissingGradientError, match="is missing"):
            grads.get(model.hidden.weight)


# Long histories of plain values: bounded memory, and no leaf is forgotten.


def test_what_plain_values_came_of_keeps_nothing_alive_and_does_not_grow() -> None:
    weight = tt.from_numpy(np.ones(1_000, np.float32))
    average = difference = weight

    def steps(count: int) -> None:
        nonlocal weight, average, difference
        for _ in range(count):
            grads = (X.trace().sum() * weight).mean().backward()
            weight = weight - grads[weight] * 1e-3
            average = average * 0.9 + weight * 0.1
            difference = X.sum() - difference

    # A history of so many steps has been replaced by what is kept of it.
    steps(1_000)
    gc.collect()
    before = sys.getallocatedblocks()
    steps(1_000)
    gc.collect()
    # Every object is a block. A history grows to a bound, and is cut down to a part of it.
    assert sys.getallocatedblocks() - before < 4 * MOST_IDS


def test_a_long_history_knows_what_it_begins_with_and_what_came_later() -> None:
    model, w = Model(), tt.from_numpy([2.0])
    value = model.hidden.forward(X)
    for _ in range(2 * MOST_IDS):
        value = value * 0.99 + tt.from_numpy([1e-3])
    value = value * w
    loss = (model.forward(X.trace()) * value).sum()

    for one in (w, model.hidden.weight):
        with pytest.raises(tt.MissingGradientError):
            loss.backward(wrt=one)
    assert len(loss.backward(wrt=model.out)) == 2


def test_a_long_history_claims_nothing_of_models_that_took_no_part_in_it() -> None:
    other, model, later = Model(), Model(), tt.from_numpy([1.0])
    average = other.hidden.forward(X).mean()
    for _ in range(3_000):
        average = average * 0.9 + tt.from_numpy([1.0]).sum() * 0.1
        later = later - tt.from_numpy([1e-3]) * 0.5
    grads = (model.forward(X.trace()) * average * later).sum().backward()
    assert len([grads[one] for one in (*model.parameters().values(), later)]) == 5
    for parameter in other.hidden.parameters().values():
        with pytest.raises(tt.MissingGradientError):
            grads.get(parameter)


def test_what_is_kept_of_a_history_is_not_walked_id_by_id() -> None:
    # That would take years.
    known = range(1, 10**18)
    assert shortened(Ids(ranges=[known])) == (known,)


def test_what_is_computed_from_a_detached_value_by_a_models_own_is_recorded() -> None:
    model = Model()
    # The next step of a recurrence that is cut off; a discriminator on what was generated.
    carried = model.forward(X.trace()).detach()
    weight = model.hidden.weight
    scale = tt.full((1,), 2.0)

    loss = (carried @ weight.transpose()).sum() + scale.trace().sum()

    expected = np.tile(carried.numpy().sum(axis=0), (weight.shape[0], 1))
    np.testing.assert_allclose(loss.backward()[weight].numpy(), expected, rtol=1e-5)


def test_rows_that_plain_ids_choose_from_a_table_get_their_gradients() -> None:
    table = nn.Embedding(10, 3, rng=np.random.default_rng(0))
    ids, x = tt.from_numpy(np.array([1, 1, 4]), (3,)), tt.ones((3, 3))
    expected = np.zeros((10, 3))
    expected[[1, 4]] = [[2.0], [1.0]]

    for rows in (table.forward(ids), table.weight[ids], table.weight.take(ids)):
        grads = (rows.expand_dims(0) + x.trace()).sum().backward(wrt=table)
        np.testing.assert_array_equal(grads[table.weight].numpy(), expected)


def test_plain_values_let_go_of_the_ids_and_masks_that_they_are_made_with() -> None:
    table = nn.Embedding(10, 3, rng=np.random.default_rng(0))
    ids, mask = tt.from_numpy(np.arange(4), (4,)), tt.from_numpy(np.arange(3) > 0, (3,))
    watched = [weakref.ref(one._array) for one in (ids, mask)]

    made: list[Any] = [table.forward(ids), tt.where(mask, table.weight, table.weight * 2.0)]
    for _ in range(4):
        made = [one.tanh() for one in made]
    del ids, mask
    gc.collect()

    assert [one() for one in watched] == [None, None]
    with pytest.raises(tt.MissingGradientError, match="tanh made a plain value"):
        made[0].trace().sum().backward(wrt=table)
