"""A gradient arrives, or an error does: none is lost in silence."""

from __future__ import annotations

import copy
import gc
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import data, distributed, losses, nn, optim

X = tt.from_numpy([[0.5, -1.0, 2.0], [1.5, 0.25, -0.75]])
Y = tt.from_numpy([[1.0, 0.0, 0.5], [0.0, 1.0, 0.25]])


class Model(nn.Module):
    """Two layers, of which the first is met in many ways below."""

    hidden: Any
    out: Any

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        self.hidden = nn.Linear(3, 3, rng=rng)
        self.out = nn.Linear(3, 3, rng=rng)

    def forward(self, x: Any) -> Any:
        return self.out.forward(self.hidden.forward(x).tanh())


def tied(model: Model) -> Any:
    return losses.mse(model.forward(X.trace()) @ model.hidden.weight.transpose(), Y)


def dropped_owner(model: Model) -> Any:
    h = model.hidden.forward(X.trace())
    return losses.mse(model.hidden.forward(h.with_empty_tape()), Y)


def dropped_owner_deep(model: Model) -> Any:
    h = model.hidden.forward(X.trace())
    for _ in range(3):
        h = model.hidden.forward(h.with_empty_tape().with_empty_tape()).tanh()
    return losses.mse(h, Y)


def through_a_list(model: Model) -> Any:
    penalties = [w.square().sum() for w in model.parameters().values()]
    total = penalties[0]
    for one in penalties[1:]:
        total = total + one
    return losses.mse(model.forward(X.trace()), Y) + 0.1 * total


def before_the_trace(model: Model) -> Any:
    h = model.hidden.forward(X)
    return losses.mse(model.hidden.forward(h.trace()), Y)


def checkpointed(model: Model) -> Any:
    def part(x: Any) -> Any:
        return model.hidden.forward(x) * model.hidden.weight.exp().sum()

    return losses.mse(tt.checkpoint(part, X.trace()), Y)


def a_penalty_on_a_plain_gradient(model: Model) -> Any:
    slope = tt.grad(lambda x: model.forward(x).sum(), X)
    return losses.mse(model.forward(X.trace()), Y) + slope.square().sum()


def inside_of_grad(model: Model) -> Any:
    slope = tt.grad(lambda x: (model.forward(x) * model.hidden.weight.exp().sum()).sum(), X.trace())
    return slope.square().sum()


def doubled(x: Any) -> Any:
    def kernel(x: Any) -> Any:
        return x * 2.0, (lambda g: g * 2.0,)

    return tt.custom_op(kernel, x, shape=x.shape)


LOSING: dict[str, Callable[[Model], Any]] = {
    "a penalty": lambda m: losses.mse(m.forward(X.trace()), Y) + m.hidden.weight.square().sum(),
    "a penalty first": lambda m: (
        m.hidden.weight.square().sum() + losses.mse(m.forward(X.trace()), Y)
    ),
    "tied weights": tied,
    "one branch": lambda m: (m.forward(X.trace()) - m.forward(Y)).square().mean(),
    "half of a discriminator": lambda m: (
        losses.mse(m.forward(X.trace()), Y) + losses.mse(m.forward(X.detach()), Y)
    ),
    "a gate": lambda m: losses.mse(m.forward(X.trace()) * (-m.hidden.bias).exp(), Y),
    "a stack": lambda m: tt.stack([m.forward(X.trace()), m.forward(Y)]).square().mean(),
    "a choice": lambda m: tt.where(X > 0.0, m.forward(X.trace()), m.hidden.weight[:2]).sum(),
    "a custom op": lambda m: m.forward(X.trace()).sum() + doubled(m.hidden.weight).sum(),
    "a conversion": lambda m: (
        m.forward(X.trace()).astype(np.float64).sum() + m.hidden.weight.astype(np.float64).sum()
    ),
    "a plain owner put back": lambda m: (
        m.forward(X.trace()).sum() * m.hidden.weight.retaped(tt.NoneTape).exp().sum()
    ),
    **{
        one.__name__: one
        for one in (
            dropped_owner,
            dropped_owner_deep,
            through_a_list,
            before_the_trace,
            checkpointed,
            a_penalty_on_a_plain_gradient,
            inside_of_grad,
        )
    },
}


def step(model: Model, grads: tt.Gradients) -> None:
    optim.Sgd(model, lr=0.1).step(grads)


ASKING: dict[str, Callable[[Model, Any], Any]] = {
    "an optimizer": lambda model, loss: step(model, loss().backward()),
    "wrt": lambda model, loss: loss().backward(wrt=model),
    "get": lambda model, loss: [*map(loss().backward().get, model.parameters().values())],
    "remove": lambda model, loss: [*map(loss().backward().remove, model.parameters().values())],
    "a merged store": lambda model, loss: step(model, merged(loss().backward())),
    "a copied store": lambda model, loss: step(model, copy.copy(loss().backward())),
    "a carried store": lambda model, loss: step(
        model, model.forward(X.trace(loss().backward())).sum().backward()
    ),
    "a captured step": lambda model, loss: tt.compile(lambda: step(model, loss().backward()))(),
    "gradients of a compiled function": lambda model, loss: step(
        model, tt.compile(lambda: loss().backward())()
    ),
    "a loss of a compiled function": lambda model, loss: step(
        model, replayed(tt.compile(lambda: loss())).backward()
    ),
}


def merged(grads: tt.Gradients) -> tt.Gradients:
    store = tt.Gradients()
    store.merge(grads)
    return store


def replayed(compiled: Callable[[], Any]) -> Any:
    compiled()
    return compiled()


@pytest.mark.parametrize("losing", LOSING)
@pytest.mark.parametrize("asking", ASKING)
def test_who_asks_for_a_gradient_that_lacks_a_part_gets_an_error(losing: str, asking: str) -> None:
    model = Model()
    before = {name: one.numpy().copy() for name, one in model.parameters().items()}

    with pytest.raises(tt.MissingGradientError, match=r"is missing: .* at .*test_lost_gradients"):
        ASKING[asking](model, lambda: LOSING[losing](model))

    for name, one in model.parameters().items():
        np.testing.assert_array_equal(one.numpy(), before[name])


def test_the_error_names_the_parameters_if_a_module_was_given() -> None:
    model = Model()
    with pytest.raises(tt.MissingGradientError, match=r"backward: .* of hidden.weight is missing"):
        LOSING["a penalty"](model).backward(wrt=model)
    with pytest.raises(tt.MissingGradientError, match=r"Sgd.step: .* of hidden.weight is missing"):
        step(model, LOSING["a penalty"](model).backward())


def teacher(model: Model) -> Any:
    other = copy.deepcopy(model)
    return (model.forward(X.trace()) - other.forward(X)).square().mean()


def frozen_part(model: Model) -> Any:
    features = Model().forward(X)
    return losses.mse(model.forward(features.trace()), Y)


def target_of_the_same_model(model: Model) -> Any:
    return losses.mse(model.forward(X.trace()), model.forward(Y))


def teacher_by_hand(model: Model) -> Any:
    other = copy.deepcopy(model)
    other.hidden.weight = other.hidden.weight * 0.9 + model.hidden.weight * 0.1
    return (model.forward(X.trace()) - other.forward(X)).square().mean()


def written_by_hand(model: Model) -> Any:
    """Put back parameters that were computed from those before."""
    for _ in range(3):
        for layer in (model.hidden, model.out):
            layer.weight = layer.weight - layer.weight * 0.001
    return losses.mse(model.forward(X.trace()), Y)


def a_constant_of_the_parted_value(model: Model) -> Any:
    value, tape = model.forward(X.trace()).split_tape()
    gate = value.abs().max() + (value > 0.0).astype(np.float32) - value
    return losses.mse(value.put_tape(tape) / gate, Y)


def shared(model: Model) -> Any:
    h = model.hidden.forward(X.trace())
    del_me, kept = h.share(2)
    del del_me
    return losses.mse(model.out.forward(kept), Y)


def shared_once_more(model: Model) -> Any:
    h = model.hidden.forward(X.trace())
    return losses.mse(model.out.forward(h.share()), Y)


RIGHT: dict[str, Callable[[Model], Any]] = {
    "a traced penalty": lambda m: (
        losses.mse(m.forward(X.trace()), Y) + m.hidden.weight.trace().square().sum()
    ),
    "a retaped penalty": lambda m: (
        losses.mse(m.forward(X.trace()), Y) + m.hidden.weight.retaped(tt.OwnedTape).square().sum()
    ),
    "a detached branch": lambda m: (m.forward(X.trace()) - m.forward(Y).detach()).square().mean(),
    "a detached weight": lambda m: (
        losses.mse(m.forward(X.trace()), Y) + m.hidden.weight.detach().square().sum()
    ),
    "a copied parameter, which is another": lambda m: (
        m.forward(X.trace()).sum() + copy.copy(m.hidden.weight).exp().sum()
    ),
    "a mask": lambda m: tt.where(m.hidden.weight[:2] > 0.0, m.forward(X.trace()), X).sum(),
    "positions": lambda m: m.forward(X.trace()).take(m.hidden.weight.argmax(axis=-1) * 0).sum(),
    "a handle that joins": lambda m: joined(m.hidden.forward(X.trace()), m),
    **{
        one.__name__: one
        for one in (
            teacher,
            frozen_part,
            target_of_the_same_model,
            teacher_by_hand,
            written_by_hand,
            a_constant_of_the_parted_value,
            shared,
            shared_once_more,
        )
    },
}


def joined(h: Any, model: Model) -> Any:
    twin = h.with_empty_tape().with_empty_tape()
    return losses.mse(model.out.forward(twin) + h, Y)


@pytest.mark.parametrize("right", RIGHT)
@pytest.mark.parametrize("asking", ASKING)
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


def test_handles_that_share_a_record_are_right_each_alone_and_all_together() -> None:
    x = tt.from_numpy([0.5, 2.0])

    def heads(pick: Callable[[Any, Any, Any], Any]) -> Any:
        a, b, c = (x.trace().square() * x).share(3)
        return pick(a.sin().sum(), b.exp().sum(), c.sum()).backward()[x].numpy()

    alone = [heads(lambda *of: of[0]), heads(lambda *of: of[1]), heads(lambda *of: of[2])]
    np.testing.assert_allclose(alone[2], 3 * x.numpy() ** 2, rtol=1e-6)
    both = heads(lambda a, b, c: a + b)
    np.testing.assert_allclose(both, alone[0] + alone[1], rtol=1e-5)
    np.testing.assert_allclose(heads(lambda a, b, c: c + (b + a)), sum(alone), rtol=1e-5)


def test_a_further_handle_leaves_the_tensor_as_it_is() -> None:
    x = tt.from_numpy([3.0])
    y = x.trace().square()
    handle = y.share()
    assert handle.id == y.id
    assert y.sum().backward()[x].item() == 6.0
    assert (handle * 2.0).sum().backward()[x].item() == 12.0
    with pytest.raises(tt.MovedTensorError, match="'sum' took its tape"):
        y.exp()


def test_handles_of_a_plain_tensor_are_plain() -> None:
    a, b = X.share(2)
    assert (a.owns_tape, b.owns_tape, X.share().owns_tape) == (False, False, False)
    assert a.id == b.id == X.id


@pytest.mark.parametrize(("n", "error"), [(0, tt.ArgumentValueError), (1.5, tt.ArgumentTypeError)])
def test_a_number_of_handles_that_is_none_is_refused(n: Any, error: type[Exception]) -> None:
    y = X.trace().exp()
    with pytest.raises(error, match="share: n"):
        y.share(n)
    assert y.owns_tape


def test_many_handles_of_a_long_tape_take_no_memory_of_its_length() -> None:
    y = X.trace()
    for _ in range(2_000):
        y = y.sin()
    gc.collect()
    tracemalloc.start()
    try:
        handles = [y.share() for _ in range(500)]
        size, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert size < 1_000_000
    total = y
    for one in handles:
        total = total + one
    assert len(total.sum().backward()) == 1


def test_origins_keep_nothing_alive_and_do_not_grow() -> None:
    weight = tt.from_numpy(np.ones(1_000, np.float32))
    average = weight

    def steps(count: int) -> None:
        nonlocal weight, average
        for _ in range(count):
            grads = (X.trace().sum() * weight.mean()).backward()
            weight = weight - weight * 1e-3
            average = average * 0.9 + weight * 0.1
            del grads

    steps(700)
    gc.collect()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        steps(700)
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 100_000


def test_of_a_long_history_the_newer_part_is_known() -> None:
    w = tt.from_numpy([2.0])
    value = X.sum()
    for _ in range(2_000):
        value = value * 0.5 + 1.0
    value = value * w
    grads = (X.trace().sum() * value.sum()).backward()
    with pytest.raises(tt.MissingGradientError):
        grads.get(w)


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


def test_rows_remember_what_they_are_rows_of() -> None:
    model = Model()
    features = model.hidden.forward(X)
    for rows in (next(iter(data.batches(features, size=2))), distributed.alone().shard(features)):
        grads = losses.mse(model.forward(rows.trace()), Y).backward()
        with pytest.raises(tt.MissingGradientError, match=r"trace at .*test_lost_gradients"):
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
    assert train.traces == 1  # type: ignore[attr-defined]  # of what compile returns
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


def test_the_error_of_a_reducer_names_the_parameters() -> None:
    model = Model()
    reducer = distributed.Reducer(model, distributed.alone())
    with pytest.raises(tt.MissingGradientError, match=r"of hidden\.weight is missing"):
        reducer.backward(LOSING["a penalty"](model))
