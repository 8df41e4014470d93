"""What is another one at every call is an input of one plan, where the plan can do without it."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import nn, optim
from tapetensor.compiler import plans
from tapetensor.errors import TraceError
from tests.compiler.law.harness import described

NUMBERS = [0.1, 0.25, 2.0, -1.5, 0.0, -0.0, 1e-40, 1e30, math.nan, math.inf]
X = np.linspace(-1.2, 1.9, 12, dtype=np.float32).reshape(4, 3)


def _check(function: Any, calls: list[tuple[Any, ...]], count: int) -> None:
    """Check that results are the function's own, and of how many plans."""
    compiled = tt.compile(function)
    for call in calls:
        with np.errstate(all="ignore"):
            assert described(compiled(*call)) == described(function(*call))
    assert len(plans(compiled)) == count


FORMULAS: list[Callable[[Any, Any], Any]] = [
    lambda x, b: x * b,
    lambda x, b: b - x / b,
    lambda x, b: (x > b) * b,
    lambda x, b: x.astype(np.float64) * b,
    lambda x, b: (x * 4).astype(np.int64) + b,
    lambda x, b: np.where(x > b, x, b),
    lambda x, b: (x.sum() * b, x[0, 0] * b, np.float32(3) * b),
    lambda x, b: [b, -b, abs(b), b * 2, b - 1, b**2],
    lambda x, b: np.full_like(x, b),
    lambda x, b: np.array([b, 1.0]),
    lambda x, b: np.maximum(b, x) + np.add(x, b, dtype=np.float64),
    lambda x, b: np.exp(b) * x,
    lambda x, b: isinstance(b, float),
    lambda x, b: [1 - 0.9**b, x * 1**b],
    lambda x, b: tt.full((2, 3), b).numpy(),
    lambda x, b: (tt.ones((2, 3)) * b).numpy(),
    lambda x, b: tt.full((2, 3), b, np.float64).numpy().T,
]


@pytest.mark.parametrize("formula", FORMULAS)
@pytest.mark.parametrize("kind", [float, np.float64, np.float32])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_float_that_is_another_at_every_call_gives_what_the_function_gives(
    formula: Any, kind: Any
) -> None:
    _check(formula, [(X, kind(one)) for one in NUMBERS], 2)


@pytest.mark.parametrize("kind", [float, np.float64, np.float32])
def test_an_exponent_that_is_another_at_every_call_gives_what_the_function_gives(kind: Any) -> None:
    compiled: Any = tt.compile(lambda x, b: (x**b, b))
    if kind is np.float64 and np.lib.NumpyVersion(np.__version__) < "2.3.0":
        # Its operator takes some exponents by functions of their own, and keeps the dtype there.
        with pytest.raises(tt.TraceError, match=r"write np\.power\(x, y\), or x \*\* float\(y\)"):
            compiled(X, kind(3.0))
        return
    for number in (3.0, 2.0, 1.0, 0.5, -1.0, 2.5):
        with np.errstate(all="ignore"):
            expected = X ** kind(number), kind(number)
            assert described(compiled(X, kind(number))) == described(expected)


DECIDING: list[Callable[[Any, Any], Any]] = [
    lambda x, b: x if b > 0.3 else -x,
    lambda x, b: x * math.exp(min(b, 1)),
    lambda x, b: (f"{b:.1f}", x * b),
    lambda x, b: {b: x}.popitem()[1] * b,
    lambda x, b: x * round(b, 1),
]


@pytest.mark.parametrize("formula", DECIDING)
def test_a_float_that_the_function_decides_by_stays_a_constant(formula: Any) -> None:
    numbers = [0.1, 0.25, 2.0, -1.5, 0.75]
    _check(formula, [(X, one) for one in numbers], len(numbers))


def test_what_varies_beside_a_float_that_decides_is_an_input_still() -> None:
    calls = [(X, True, 0.1)] + [(X, 0.2 * (i % 2), 0.1 * i) for i in range(1, 9)]

    _check(lambda x, b, c: x * c if b else x - c, calls, 5)


@pytest.mark.parametrize("number", [1, 2, True, None, 0.5, np.float32(0.5), "0.5"])
def test_another_type_is_another_kind(number: Any) -> None:
    calls = [(X, 0.1), (X, 0.2), (X, number), (X, 0.3)]

    _check(lambda x, b: (x * 1.0, b), calls, 2 if type(number) is float else 3)


@dataclass
class Config:
    rate: float
    name: str = "a"


@dataclass(frozen=True)
class Frozen:
    rate: float


class Slots:
    __slots__ = ("rate",)

    def __init__(self, rate: float) -> None:
        self.rate = rate


class Trainer:
    rate = 0.5

    def __init__(self) -> None:
        self.beta = 0.1
        self.mean = np.zeros(3, np.float32)
        self.config: Any = Config(0.1)
        self.schedule = [0.1, 0.2]
        self.options = {"rate": 0.1}
        self.pair = (0.1, "b")


PLACES: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Any, float], None]]] = {
    "an attribute": (lambda t, x: x * t.beta, lambda t, b: setattr(t, "beta", b)),
    "an array": (
        lambda t, x: x - t.mean,
        lambda t, b: setattr(t, "mean", np.full(3, b, np.float32)),
    ),
    "what an array holds": (lambda t, x: x - t.mean, lambda t, b: t.mean.fill(b)),
    "a dataclass": (lambda t, x: x * t.config.rate, lambda t, b: setattr(t, "config", Config(b))),
    "a frozen one": (lambda t, x: x * t.config.rate, lambda t, b: setattr(t, "config", Frozen(b))),
    "a list": (lambda t, x: x * t.schedule[1], lambda t, b: t.schedule.__setitem__(1, b)),
    "a dict": (lambda t, x: x * t.options["rate"], lambda t, b: t.options.update(rate=b)),
    "a tuple": (lambda t, x: x * t.pair[0], lambda t, b: setattr(t, "pair", (b, "b"))),
    "slots": (lambda t, x: x * t.config.rate, lambda t, b: setattr(t, "config", Slots(b))),
    "a namespace": (
        lambda t, x: x * t.config.rate,
        lambda t, b: setattr(t, "config", SimpleNamespace(rate=b)),
    ),
}


def _plans_for(step: Any, change: Any) -> int:
    """Check that a change is seen at every call; return how many plans there are then."""
    trainer = Trainer()
    compiled: Any = tt.compile(lambda x: step(trainer, x))
    for number in (0.1, 0.3, 2.0, -1.5, 0.7, 0.2):
        change(trainer, number)
        assert described(compiled(X)) == described(step(trainer, X))
    return len(plans(compiled))


@pytest.mark.parametrize(("step", "change"), PLACES.values(), ids=PLACES)
def test_what_varies_around_a_function_is_an_input(step: Any, change: Any) -> None:
    assert _plans_for(step, change) <= 3


def test_variables_around_a_function_vary_together() -> None:
    rate, config, mean = 0.1, Config(0.1), np.zeros(3, np.float32)

    def step(x: Any) -> Any:
        return x * rate + config.rate * mean

    compiled = tt.compile(step)
    for number in (0.1, 0.3, 2.0, -1.5, 0.7, 0.2, 0.9):
        rate, config, mean = number, Config(number + 1), np.full(3, number, np.float32)
        assert described(compiled(X)) == described(step(X))

    assert len(plans(compiled)) == 4


class Agent:
    def __init__(self) -> None:
        self.online = nn.Linear(3, 2, rng=np.random.default_rng(0))
        self.target = copy.deepcopy(self.online)
        self.optimizer = optim.Adam(self.online)
        self.weight = 0.9

    def learn(self, x: Any) -> float:
        wanted = self.target.forward(x) * self.weight - 1.0
        loss = (self.online.forward(x.trace()) - wanted).square().mean()
        value: float = loss.item()
        self.optimizer.step(loss.backward(wrt=self.online))
        return value


def test_a_model_that_is_replaced_by_a_copy_shares_a_plan_with_those_after_it() -> None:
    agents = Agent(), Agent()
    compiled = tt.compile(agents[0].learn)
    for step in range(30):
        batch: Any = tt.from_numpy(X * np.float32(step + 1), shape=(4, 3))
        assert compiled(batch) == agents[1].learn(batch)
        for agent in agents:
            agent.weight = 0.9 / (step + 1)
            if step % 3 == 2:
                agent.target = copy.deepcopy(agent.online)

    for one, other in zip(
        agents[0].online.parameters().values(),
        agents[1].online.parameters().values(),
        strict=True,
    ):
        np.testing.assert_array_equal(one.numpy(), other.numpy())
    assert len(plans(compiled)) <= 3


def test_a_function_that_is_refused_says_what_it_would_without_what_varies() -> None:
    def step(x: Any, rate: float, mask: Any) -> Any:
        return x[mask > 0].sum() if mask is not None else x * rate

    compiled: Any = tt.compile(step)
    for rate in (0.1, 0.2):
        compiled(X, rate, None)

    with pytest.raises(TraceError, match="depends on the values"):
        compiled(X, 0.3, X)

    for rate in (0.7, 0.8):
        assert described(compiled(X[:3], rate, None)) == described(step(X[:3], rate, None))
    assert len(plans(compiled)) == 3


def test_an_error_of_the_functions_own_leaves_what_varies_an_input() -> None:
    def step(x: Any, rate: float) -> Any:
        if x.shape[0] == 2:
            raise ValueError("two rows")
        return x * rate

    compiled: Any = tt.compile(step)
    for rate in (0.1, 0.2):
        compiled(X, rate)
    with pytest.raises(ValueError, match="two rows"):
        compiled(X[:2], 0.3)

    for rate in (0.7, 0.8):
        assert described(compiled(X[:3], rate)) == described(step(X[:3], rate))
    assert len(plans(compiled)) == 3


class Carried(nn.Module):
    """Layers, and a state that somebody sets."""

    layers: list[nn.Linear[Any, Any]]
    state: tt.Tensor1D[Any] = nn.buffer(nn.init.zeros)

    def forward(self, x: Any) -> Any:
        for layer in self.layers:
            x = layer.forward(x).tanh()
        return x - self.state


class Training:
    """A step of training, and what is set between its calls."""

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        layers = [nn.Linear(3, 3, rng=rng) for _ in range(20)]
        self.model: Any = Carried(layers=layers, state=tt.zeros((3,)))
        self.optimizer: Any = None

    def step(self, x: Any) -> Any:
        loss = self.model.forward(x.trace()).square().mean()
        value = loss.detach()
        grads = loss.backward(wrt=self.model)
        slope = grads[self.model.layers[0].weight]
        if self.optimizer is not None:
            self.optimizer.step(grads)
        return value.numpy(), slope.numpy()

    def set_state(self) -> None:
        self.model.state = tt.full((3,), float(self.model.state.sum().item()) + 0.1)

    def set_computed_state(self) -> None:
        self.model.state = self.model.state * 0.9 + 0.1

    def set_parameters(self) -> None:
        for layer in self.model.layers:
            layer.weight = (layer.weight * 0.9).detach()
            layer.bias = (layer.bias + 0.1).detach()

    def train_and_set_state(self) -> None:
        if self.optimizer is None:
            self.optimizer = optim.Adam(self.model)
        self.set_computed_state()


@pytest.mark.parametrize(
    "change",
    [
        Training.set_state,
        Training.set_computed_state,
        Training.set_parameters,
        Training.train_and_set_state,
    ],
)
def test_tensors_that_are_set_between_calls_are_inputs(change: Any) -> None:
    one, other = Training(), Training()
    compiled: Any = tt.compile(one.step)

    for number in range(8):
        x: Any = tt.from_numpy(X + np.float32(number))
        assert described(compiled(x)) == described(other.step(x))
        change(one), change(other)

    for name, parameter in one.model.parameters().items():
        np.testing.assert_array_equal(parameter.numpy(), other.model.parameters()[name].numpy())
    assert len(plans(compiled)) <= 4
