"""Gradients that are missing or not finite: nothing is updated, or what has none is skipped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import io, losses, nn, optim
from tests.io.models import assert_same
from tests.optim.models import (
    OPTIMIZERS,
    SHAPES,
    Array,
    Model,
    assert_close,
    drawn,
    gradients_of,
    small_model,
)
from tests.optim.optimizers import BY_TEXTBOOK

MODES = {mode: make for mode, (make, _) in BY_TEXTBOOK.items()}
# The parameters that have a gradient in a step: all, none, one, neighbours, those at the ends.
PRESENT = [
    list(SHAPES),
    [],
    ["hidden.bias"],
    ["hidden.weight", "hidden.bias"],
    ["hidden.weight", "out.weight"],
    list(SHAPES),
    ["scale", "out.weight"],
    list(SHAPES),
]


class Apart:
    """An optimizer for each parameter, which steps only with a gradient: what is to come out."""

    def __init__(self, model: Model, make: Any) -> None:
        self.models = {
            name: Model(**{name: tt.from_numpy(array)}) for name, array in model.arrays().items()
        }
        self.optimizers = {name: make(one) for name, one in self.models.items()}

    def step(self, gradients: dict[str, Array]) -> None:
        for name, gradient in gradients.items():
            one = self.models[name]
            self.optimizers[name].step(gradients_of(one, **{name: gradient}))

    def arrays(self) -> dict[str, Array]:
        return {name: one.arrays()[name] for name, one in self.models.items()}

    def state(self) -> dict[str, Array]:
        states = [one.state_arrays() for one in self.optimizers.values()]
        return {name: one for state in states for name, one in state.items() if "." in name}


def state_of(optimizer: optim.Optimizer) -> dict[str, Array]:
    return {name: one for name, one in optimizer.state_arrays().items() if "." in name}


@pytest.mark.parametrize("mode", MODES)
def test_each_parameter_is_as_if_it_had_an_optimizer_of_its_own(
    mode: str, tmp_path: Path, rng: np.random.Generator
) -> None:
    make = MODES[mode]
    model = small_model(rng)
    optimizer, apart = make(model), Apart(model, make)
    for at, present in enumerate(PRESENT):
        arrays = drawn(model, rng)
        given = {name: arrays[name] for name in present}
        before = model.arrays()
        optimizer.step(gradients_of(model, **given), unused="skip")
        apart.step(given)

        assert_close(model.arrays(), apart.arrays())
        assert_close(state_of(optimizer), apart.state())
        for name in before.keys() - set(present):
            np.testing.assert_array_equal(model.arrays()[name], before[name])
        if at == 4:
            # Training goes on from a file, with counts that differ.
            io.save(tmp_path / "state.npz", optimizer)
            optimizer = make(model)
            io.load(tmp_path / "state.npz", optimizer)
    assert optimizer.steps == len(PRESENT)


def test_the_error_offers_it() -> None:
    with pytest.raises(tt.UnusedParametersError, match=r'step\(grads, unused="skip"\) leaves them'):
        optim.Sgd([tt.ones((1,))]).step(tt.Gradients())


class Heads(nn.Module):
    """A body and two heads, of which a loss reads one."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.body = nn.Linear(3, 4, np.float64, rng=rng)
        self.left = nn.Linear(4, 2, np.float64, rng=rng)
        self.right = nn.Linear(4, 2, np.float64, rng=rng)

    body: nn.Linear[Any, Any, Any]
    left: nn.Linear[Any, Any, Any]
    right: nn.Linear[Any, Any, Any]


def step_of(model: Heads, optimizer: optim.Optimizer) -> Any:
    def step(x: Any, is_left: bool) -> Any:
        head = model.left if is_left else model.right
        y = head.forward(model.body.forward(x.trace()).tanh())
        loss = losses.mse(y, tt.zeros((5, 2), np.float64))
        value = loss.detach()
        optimizer.step(loss.backward(wrt=optimizer), unused="skip")
        return value

    return step


@pytest.mark.parametrize("mode", MODES)
def test_compiled_steps_skip_what_eager_ones_skip(mode: str) -> None:
    make: Any = MODES[mode]
    found = []
    for is_compiled in (False, True):
        model = Heads(1)
        # The right head has an optimizer of its own, which has nothing to do at times.
        optimizer = make(model)
        step = step_of(model, optimizer)
        step = tt.compile(step) if is_compiled else step
        rng = np.random.default_rng(2)
        rows = [tt.from_numpy(rng.standard_normal((5, 3)), (5, 3)) for _ in range(10)]
        values = [step(x, at % 3 != 1).item() for at, x in enumerate(rows)]
        found.append((values, io.state_dict(model), io.state_dict(optimizer)))
    (values, *eager), (others, *compiled) = found

    np.testing.assert_allclose(others, values, rtol=1e-12)
    for expected, got in zip(eager, compiled, strict=True):
        assert_close(got, expected)
    assert eager[1]["left.weight.step"] == 7
    assert eager[1]["right.weight.step"] == 3


def test_a_compiled_step_of_which_no_parameter_has_a_gradient_counts() -> None:
    model, other = Heads(1), tt.ones((2,))
    optimizer, idle = optim.Adam(model.left), optim.Adam([other])
    x: Any = tt.ones((5, 4), np.float64)

    def step(x: Any) -> None:
        grads = model.left.forward(x.trace()).square().mean().backward()
        optimizer.step(grads, unused="skip")
        idle.step(grads, unused="skip")

    compiled = tt.compile(step)
    for _ in range(3):
        compiled(x)
    assert (optimizer.steps, idle.steps) == (3, 3)
    assert io.state_dict(idle)["0.step"] == 0
    assert other.numpy().tolist() == [1.0, 1.0]


@pytest.mark.parametrize("make", OPTIMIZERS)
def test_nothing_is_updated_and_what_is_missing_or_does_not_fit_is_named(
    make: Any, rng: np.random.Generator
) -> None:
    model = small_model(rng)
    before = model.arrays()
    grads = gradients_of(model, **drawn(model, rng))
    for name in ("hidden.bias", "scale", "out.weight"):
        grads.remove(model[name])
    wrong: Any = {"hidden.bias": np.ones((3,)), "out.weight": np.ones((1, 4), np.float32)}
    grads.accumulate({model[name].id: array for name, array in wrong.items()})
    optimizer = make(model, lr=0.1)
    with pytest.raises(tt.UnusedParametersError, match="nothing was updated") as raised:
        optimizer.step(grads)

    message = str(raised.value)
    assert "scale: no gradient" in message
    assert "hidden.bias: a gradient of shape (3,) for a parameter of shape (2,)" in message
    assert "out.weight: a gradient of dtype float32 for a parameter of dtype float64" in message
    assert raised.value.names == ("hidden.bias", "scale", "out.weight")
    assert optimizer.steps == 0
    assert_same(model.arrays(), before)


@pytest.mark.parametrize("make", OPTIMIZERS)
@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_nothing_is_updated_and_the_parameter_is_named(
    make: Any, wrong: float, rng: np.random.Generator
) -> None:
    model = small_model(rng)
    optimizer = make(model, check_finite=True)
    arrays = drawn(model, rng)
    optimizer.step(gradients_of(model, **arrays))
    before, state = model.arrays(), io.state_dict(optimizer)
    arrays["out.weight"][0, 2] = wrong
    said = r"nothing was updated, for the gradient of out\.weight is not finite: 1 of 4"
    with pytest.raises(tt.NumericalInstabilityError, match=said):
        optimizer.step(gradients_of(model, **arrays))
    only = {"out.weight": arrays["out.weight"]}
    with pytest.raises(tt.NumericalInstabilityError, match=said):
        optimizer.step(gradients_of(model, **only), unused="skip")

    assert_same(model.arrays(), before)
    assert_same(io.state_dict(optimizer), state)


@pytest.mark.filterwarnings("error")
def test_large_gradients_are_finite(rng: np.random.Generator) -> None:
    model = small_model(rng, np.float32)
    arrays = {name: np.full(one.shape, 3e38, np.float32) for name, one in model.arrays().items()}
    optim.Sgd(model, check_finite=True).step(gradients_of(model, **arrays))


def test_a_compiled_step_refuses_them_at_the_call_that_has_them() -> None:
    weight, other = tt.ones((3,)), tt.ones((40_000,))
    optimizer = optim.Adam([weight, other], check_finite=True)

    def step(x: Any, y: Any) -> None:
        loss = (x.trace() * weight).sqrt().sum() + (y.trace() * other).sum()
        optimizer.step(loss.backward(wrt=optimizer))

    compiled = tt.compile(step)
    y: Any = tt.ones((40_000,))
    good = tt.from_numpy([1.0, 2.0, 3.0], (3,))
    compiled(good, y)
    compiled(good, y)
    before = weight.numpy(), other.numpy()
    with (
        np.errstate(all="ignore"),
        pytest.raises(tt.NumericalInstabilityError, match=r"gradient of 0 is not finite: 1 of 3"),
    ):
        compiled(tt.from_numpy([1.0, 0.0, 3.0], (3,)), y)
    np.testing.assert_array_equal(weight.numpy(), before[0])
    np.testing.assert_array_equal(other.numpy(), before[1])
    assert optimizer.steps == 2
    compiled(good, y)
    assert optimizer.steps == 3


def test_it_is_off_unless_it_is_asked_for() -> None:
    weight = tt.ones((1,))
    grads = tt.Gradients()
    grads.insert(weight, np.array([np.nan], np.float32))
    optim.Sgd([weight]).step(grads)
    assert np.isnan(weight.numpy()).all()
    wrong: Any = "stop"
    with pytest.raises(tt.ArgumentTypeError, match="check_finite must be True or False"):
        optim.Sgd([weight], check_finite=wrong)
