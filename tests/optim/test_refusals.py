"""What optimizers refuse, in which words, and that nothing has changed then."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import io, nn
from tapetensor.optim import Adagrad, Adam, AdamW, Optimizer, RMSprop, Sgd, schedules
from tests.optim.models import OPTIMIZERS, Model

NUMBERS = [
    *[(make, name) for make in OPTIMIZERS for name in ("lr", "weight_decay")],
    (Sgd, "momentum"),
    (Adam, "eps"),
    (AdamW, "eps"),
    *[(Adagrad, name) for name in ("eps", "lr_decay", "initial_accumulator_value")],
    *[(RMSprop, name) for name in ("eps", "momentum", "initial_square")],
]


def model() -> Model:
    return Model(p=tt.ones((2,)))


@pytest.mark.parametrize(("make", "name"), NUMBERS)
def test_a_number_is_at_least_zero_and_finite(make: Any, name: str) -> None:
    told = rf"^{make.__name__}: {name} must be "
    for value in (-1e-9, float("nan"), float("inf"), np.float32(-1.0)):
        with pytest.raises(tt.ArgumentValueError, match=told + ">= 0 and finite, got "):
            make(model(), **{name: value})
    for wrong in ("0.1", None, True, [0.1], 1j):
        with pytest.raises(tt.ArgumentTypeError, match=told + "a number, got "):
            make(model(), **{name: wrong})


@pytest.mark.parametrize("wrong", [1.0, -0.1, float("nan")])
def test_a_share_outside_its_range_is_refused(wrong: float) -> None:
    for make in (Adam, AdamW):
        for at, betas in enumerate([(wrong, 0.9), (0.9, wrong)]):
            told = rf"^{make.__name__}: betas\[{at}\] must be in \[0, 1\), got "
            with pytest.raises(tt.ArgumentValueError, match=told):
                make(model(), betas=betas)
    with pytest.raises(tt.ArgumentValueError, match=r"^RMSprop: alpha must be in \[0, 1\), got "):
        RMSprop(model(), alpha=wrong)


@pytest.mark.parametrize("betas", [0.9, (0.9,), (0.9, 0.99, 0.999), None])
def test_betas_that_are_no_pair_are_refused(betas: Any) -> None:
    with pytest.raises(tt.ArgumentTypeError, match="betas must be two numbers"):
        Adam(model(), betas=betas)


@pytest.mark.parametrize(
    ("make", "name"),
    [
        *[(Sgd, name) for name in ("decoupled_weight_decay", "nesterov")],
        (Adam, "amsgrad"),
        (AdamW, "amsgrad"),
        (Adagrad, "decoupled_weight_decay"),
        *[(RMSprop, name) for name in ("centered", "decoupled_weight_decay", "eps_inside_root")],
    ],
)
def test_what_is_no_flag_is_refused(make: Any, name: str) -> None:
    with pytest.raises(tt.ArgumentTypeError, match=f"{name} must be True or False, got 1"):
        make(model(), **{name: 1})


def test_dampening_and_nesterov_need_momentum_and_exclude_each_other() -> None:
    refused: list[tuple[dict[str, Any], str]] = [
        ({"dampening": 0.5, "momentum": 0.0}, "dampening needs momentum > 0"),
        ({"dampening": 0.5, "momentum": 0.9, "nesterov": True}, "dampening needs momentum > 0"),
        ({"dampening": 1.5, "momentum": 0.9}, r"Sgd: dampening must be in \[0, 1\]"),
        ({"nesterov": True}, "nesterov=True needs momentum > 0"),
    ]
    for options, said in refused:
        with pytest.raises(tt.ArgumentValueError, match=said):
            Sgd(model(), **options)


TENSOR: Any = tt.ones((2,))
REFUSED: list[tuple[Any, type[Exception], str]] = [
    (Model(), tt.ArgumentValueError, "the model has no parameters"),
    *[
        (wrong, tt.ArgumentTypeError, "expected a model with .*parameters")
        for wrong in (None, 3, {3: 1.0}, "w", Model, nn.ReLU)
    ],
    *[
        (wrong, tt.ArgumentTypeError, "parameter '.' must be a tensor")
        for wrong in ([1.0], {"p": 1.0}, {"p": np.ones(2)})
    ],
    (Model(p=tt.ones((2,), np.int64)), tt.DTypeError, "not defined for dtype int64"),
    (Model(p=TENSOR.trace()), tt.UntracedTensorError, "parameter 'p' must be a plain value"),
    (
        Model(a=TENSOR, b=TENSOR.with_empty_tape()),
        tt.ArgumentValueError,
        "'a' and 'b' are two handles .*one object",
    ),
]


@pytest.mark.parametrize(("wrong", "error", "message"), REFUSED)
def test_what_has_no_parameters_that_can_be_optimized_is_refused(
    wrong: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=f"^Adam: .*{message}"):
        Adam(wrong)


@pytest.mark.parametrize("make", OPTIMIZERS)
@pytest.mark.parametrize("wrong", [None, {}, 3.0])
def test_what_is_not_gradients_is_refused(make: Any, wrong: Any) -> None:
    parameters = model()
    optimizer: Optimizer = make(parameters)

    with pytest.raises(tt.ArgumentTypeError, match=rf"^{make.__name__}\.step: .*backward"):
        optimizer.step(wrong)
    np.testing.assert_array_equal(parameters["p"].numpy(), [1.0, 1.0])


@pytest.mark.parametrize("wrong", [-1.0, float("nan"), float("inf"), "fast", True])
def test_a_wrong_learning_rate_is_not_taken_over(wrong: Any) -> None:
    optimizer = Adam(model(), lr=0.5)
    schedule: Any = schedules.constant(0.1)

    with pytest.raises((tt.ArgumentValueError, tt.ArgumentTypeError), match=r"^Adam: lr must be"):
        optimizer.lr = wrong
    message = r"^Adam: lr must be a number, got a function; .* optimizer\.lr = schedule\("
    with pytest.raises(tt.ArgumentTypeError, match=message):
        optimizer.lr = schedule
    with pytest.raises(tt.ArgumentTypeError, match=message):
        Adam(model(), lr=schedule)
    assert optimizer.lr == 0.5


@pytest.mark.parametrize(("make", "name"), [(AdamW, "weight_decay"), (Sgd, "momentum")])
def test_what_an_optimizer_is_made_with_is_not_set_later(make: Any, name: str) -> None:
    model = nn.Linear(2, 1, rng=np.random.default_rng(0))
    optimizer = make(model)
    optimizer.lr, optimizer.note = 0.5, "a"

    with pytest.raises(AttributeError, match=f"{name} is what an optimizer is made with") as error:
        setattr(optimizer, name, 0.5)
    assert "io.load_state_dict(another, io.state_dict(this))" in str(error.value)

    optimizer.step(model.forward(tt.ones((1, 2)).trace()).sum().backward(wrt=model))
    another = make(model)
    io.load_state_dict(another, io.state_dict(optimizer))
    assert another.steps == 1
