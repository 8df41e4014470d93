"""Parameters after a step of an optimizer: what is stored, given back, or leaves as a copy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import nn, optim
from tapetensor.compiler import plans

OPTIMIZERS: dict[str, Callable[[Any], Any]] = {
    "sgd": lambda model: optim.Sgd(model, lr=0.1),
    "momentum": lambda model: optim.Sgd(model, lr=0.1, momentum=0.9),
    "adam": lambda model: optim.Adam(model, lr=0.1),
}


class World:
    def __init__(self, make: Callable[[Any], Any]) -> None:
        self.model = nn.Linear(4, 4, rng=np.random.default_rng(0))
        self.other = nn.Linear(4, 4, rng=np.random.default_rng(1))
        self.optimizers = make(self.model), make(self.other)
        self.best: Any = None

    def train(self, which: int, x: Any) -> None:
        model = (self.model, self.other)[which]
        loss = model.forward(x.trace()).square().mean()
        self.optimizers[which].step(loss.backward(wrt=model))


def _weights(world: World) -> list[Any]:
    return [world.model.weight, world.other.weight]


def _copied(copy: Callable[[Any], Any]) -> Callable[[World, Any], None]:
    def step(world: World, x: Any) -> None:
        world.train(0, x)
        mine, theirs = _weights(world)
        theirs.array = copy(mine.array)

    return step


def _given_back(world: World, x: Any) -> None:
    before = world.model.weight.array
    world.train(0, x)
    world.model.weight.array = before


def _swapped(world: World, x: Any) -> None:
    world.train(0, x)
    world.train(1, x)
    mine, theirs = _weights(world)
    mine.array, theirs.array = theirs.array, mine.array


def _given_the_others(world: World, x: Any) -> None:
    world.train(0, x)
    world.train(1, x)
    mine, theirs = _weights(world)
    mine.array = theirs.array.copy()


def _stepped_twice(world: World, x: Any) -> None:
    world.train(0, x)
    mine, theirs = _weights(world)
    theirs.array = mine.array.copy()
    world.train(0, x)


STEPS: dict[str, Callable[[World, Any], None]] = {
    "the same array": _copied(lambda array: array),
    "a copy": _copied(lambda array: array.copy()),
    "a product with 1": _copied(lambda array: array * 1),
    "twice turned": _copied(lambda array: array.T.copy().T),
    "a half": _copied(lambda array: array * 0.5),
    "given back": _given_back,
    "swapped": _swapped,
    "given the other's": _given_the_others,
    "stepped twice": _stepped_twice,
}


def _batches(count: int) -> list[Any]:
    rng = np.random.default_rng(2)
    return [tt.from_numpy(rng.standard_normal((3, 4), np.float32)) for _ in range(count)]


@pytest.mark.parametrize("make", OPTIMIZERS.values(), ids=OPTIMIZERS)
@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
def test_what_is_stored_after_a_step_is_stored(step: Any, make: Any) -> None:
    plain, world = World(make), World(make)
    compiled = tt.compile(step)
    for x in _batches(4):
        step(plain, x)
        compiled(world, x)
        for one, other in zip(_weights(world), _weights(plain), strict=True):
            np.testing.assert_array_equal(one.numpy(), other.numpy())


COPIES: dict[str, Callable[[Any], Any]] = {
    "copy": lambda weight: weight.array.copy(),
    "of numpy": lambda weight: np.array(weight.numpy()),
    "astype": lambda weight: weight.numpy().astype(np.float32),
    "times 1": lambda weight: weight.numpy() * 1,
    "in a dict": lambda weight: {"weight": weight.numpy().copy()}["weight"],
}


@pytest.mark.parametrize("make", OPTIMIZERS.values(), ids=OPTIMIZERS)
@pytest.mark.parametrize("copy", COPIES.values(), ids=COPIES)
def test_a_copy_that_leaves_after_a_step_is_the_callers(copy: Any, make: Any) -> None:
    world = World(make)

    @tt.compile
    def step(world: World, x: Any) -> Any:
        world.train(0, x)
        return copy(world.model.weight)

    for x in _batches(3):
        found = step(world, x)
        weight = world.model.weight.numpy()
        np.testing.assert_array_equal(found, weight)
        before = weight.copy()
        found[...] = 100.0
        np.testing.assert_array_equal(world.model.weight.numpy(), before)


@pytest.mark.parametrize("make", OPTIMIZERS.values(), ids=OPTIMIZERS.keys())
def test_the_gradient_of_an_only_parameter_is_read_where_it_lies(make: Any) -> None:
    rows = tt.from_numpy(np.array([0, 2, 2]), (3,))

    def step(model: Any, optimizer: Any) -> None:
        loss = model.forward(rows.trace()).square().sum()
        optimizer.step(loss.backward(wrt=model))

    compiled = tt.compile(step)
    trained = []
    for run in (compiled, step):
        model = nn.Embedding(4, 3, rng=np.random.default_rng(0))
        optimizer = make(model)
        for _ in range(3):
            run(model, optimizer)
        trained.append(model.weight.numpy().tolist())
    assert trained[0] == trained[1]
    # It is not copied into the optimizer's buffer before, which would be another one.
    (plan,) = plans(compiled)
    assert [one.title for one in plan.steps].count("update") == 1


def test_a_tensor_that_is_made_of_a_scalar_sees_no_writes_into_the_array_around_it() -> None:
    def made(x: Any) -> Any:
        y = x * 2.0
        scalars = x[0, 0], y[1, 1], x[1].copy()[0], x.T.reshape(-1)[1]
        tensors = [tt.from_numpy(one) for one in scalars]
        return x, y, tensors, tt.from_array(x[0, 1]), tt.from_numpy(x[1, 0]) * 1.0

    for call in (made, tt.compile(made)):
        x, y, tensors, *others = call(np.arange(4.0).reshape(2, 2))
        x[:] = y[:] = 9.0
        assert [one.item() for one in (*tensors, *others)] == [0.0, 6.0, 2.0, 2.0, 1.0, 2.0]


def test_a_slice_that_ends_at_a_number_of_the_program_is_refused_as_a_result() -> None:
    @tt.compile
    def run(x: Any) -> Any:
        return slice(None, 2), slice(None, x.sum().item())

    with pytest.raises(tt.TraceError, match="a result is a slice"):
        run(np.ones(2))
