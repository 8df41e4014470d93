"""A model that infers under any tape: it drops nothing, moves nothing, and shares its tensors."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple
from typing import Literal as L

import numpy as np
import pytest
from typing_extensions import override

import tapetensor as tt
from tapetensor import nn, optim
from tapetensor.errors import TraceError


class Net(nn.Module):
    """Layers of the library, dropout as an op, and a batch norm."""

    hidden: nn.Linear[L[3], L[4]]
    norm: nn.BatchNorm1d[L[4]]
    drop: nn.Dropout
    out: nn.Linear[L[4], L[2]]
    rng: np.random.Generator

    def forward(self, x: Any) -> Any:
        h = self.drop.forward(self.norm.forward(self.hidden.forward(x)).tanh())
        return self.out.forward(h.dropout(0.5, rng=self.rng))


@pytest.fixture
def model() -> Net:
    return tt.build(Net, rng=np.random.default_rng(0))


@pytest.fixture
def x() -> Any:
    return tt.from_numpy(np.random.default_rng(1).standard_normal((5, 3)).astype(np.float32))


def state(module: nn.Module) -> dict[str, list[Any]]:
    tensors = module.parameters() | module.buffers()
    return {name: one.numpy().tolist() for name, one in tensors.items()}


def test_it_gives_under_a_tape_what_the_model_infers_without_one(model: Net, x: Any) -> None:
    frozen, before = nn.inference(model), state(model)
    rng = copy.deepcopy(model.rng)

    for _ in range(2):
        np.testing.assert_array_equal(
            frozen.forward(x.trace()).detach().numpy(), model.forward(x).detach().numpy()
        )
    assert state(model) == before
    assert model.rng.bit_generator.state == rng.bit_generator.state
    assert type(frozen) is Net


def test_its_parameters_are_the_models_and_an_optimizer_of_the_model_trains_them(
    model: Net, x: Any
) -> None:
    frozen = nn.inference(model)
    assert {name: one.id for name, one in frozen.parameters().items()} == {
        name: one.id for name, one in model.parameters().items()
    }
    optimizer, statistics = optim.Adam(model, lr=0.1), model.norm.running_mean.numpy().copy()
    before = state(model)

    for _ in range(2):
        optimizer.step(frozen.forward(x.trace()).square().mean().backward(wrt=model))
    after = state(frozen)
    assert after == state(model)
    assert all(before[name] != after[name] for name in model.parameters())
    np.testing.assert_array_equal(model.norm.running_mean.numpy(), statistics)


def test_what_the_model_learns_and_observes_later_is_seen(model: Net, x: Any) -> None:
    frozen = nn.inference(model)
    optimizer = optim.Sgd(model, lr=0.1)
    optimizer.step(model.forward(x.trace()).square().mean().backward(wrt=model))

    assert state(frozen) == state(model)
    np.testing.assert_array_equal(
        frozen.forward(x.trace()).detach().numpy(), model.forward(x).detach().numpy()
    )


@dataclass(frozen=True, slots=True)
class Parts:
    drop: nn.Dropout
    scale: float = 1.0


class WithSlots:
    __slots__ = ("drop", "unset")

    def __init__(self, drop: nn.Dropout) -> None:
        self.drop = drop


class Named(NamedTuple):
    drop: nn.Dropout


class Plain:
    def __init__(self, drop: nn.Dropout) -> None:
        self.drop = drop


def _closure(drop: nn.Dropout) -> Callable[[Any], Any]:
    return lambda x: drop.forward(x)


def _default(drop: nn.Dropout) -> Callable[[Any], Any]:
    def run(x: Any, *, by: nn.Dropout = drop) -> Any:
        return by.forward(x)

    return run


def _called(function: Any, x: Any) -> Any:
    return function(x)


def _dropped_by(drop: nn.Dropout, x: Any) -> Any:
    return drop.forward(x)


HOLDERS: dict[str, tuple[Callable[[nn.Dropout], Any], Callable[[Any, Any], Any]]] = {
    "list": (lambda drop: [drop], lambda held, x: held[0].forward(x)),
    "tuple": (lambda drop: (1, drop), lambda held, x: held[1].forward(x)),
    "named tuple": (Named, lambda held, x: held.drop.forward(x)),
    "dict": (lambda drop: {"a": drop}, lambda held, x: held["a"].forward(x)),
    "dict of lists": (lambda drop: {"a": [drop]}, lambda held, x: held["a"][0].forward(x)),
    "frozen dataclass with slots": (Parts, lambda held, x: held.drop.forward(x)),
    "object with slots": (WithSlots, lambda held, x: held.drop.forward(x)),
    "object": (Plain, lambda held, x: held.drop.forward(x)),
    "method": (lambda drop: drop.forward, _called),
    "closure": (_closure, _called),
    "default": (_default, _called),
    "partial": (lambda drop: partial(_dropped_by, drop), _called),
    "compiled": (lambda drop: tt.compile(drop.forward), _called),
    "compiled closure": (lambda drop: tt.compile(_closure(drop)), _called),
    "sequential": (lambda drop: nn.Sequential(nn.Tanh(), drop), lambda h, x: h.forward(x)),
    "residual": (lambda drop: nn.ResidualAdd(drop), lambda held, x: held.forward(x)),
    "generator": (lambda drop: drop.rng, lambda held, x: x.dropout(0.5, rng=held)),
    "generators": (lambda drop: [drop.rng], lambda held, x: x.dropout(0.5, rng=held[0])),
}


class Holder(nn.Module):
    held: Any
    use: Any

    def forward(self, x: Any) -> Any:
        return self.use(self.held, x)


@pytest.mark.parametrize("name", HOLDERS)
def test_dropout_is_found_wherever_a_module_holds_it(name: str) -> None:
    hold, use = HOLDERS[name]
    drop, ones = nn.Dropout(0.5, rng=np.random.default_rng(0)), tt.ones((64,))
    model = Holder(held=hold(drop), use=use)
    frozen = nn.inference(model)
    expected = {"residual": 2.0, "sequential": np.tanh(np.float32(1.0))}.get(name, 1.0)

    for _ in range(2):
        np.testing.assert_allclose(
            frozen.forward(ones.trace()).detach().numpy(), np.full(64, expected), rtol=1e-6
        )
    trained = model.forward(ones.trace()).detach().numpy()
    assert len(np.unique(trained)) == 2


def _holding_itself(drop: nn.Dropout) -> Any:
    plain: Any = Plain(drop)
    plain.children = [{"parent": plain}]
    return plain


def test_what_holds_itself_holds_its_copy() -> None:
    drop = nn.Dropout(0.5, rng=np.random.default_rng(0))
    held = nn.inference(Holder(held=_holding_itself(drop), use=None)).held

    assert held.drop is not drop
    assert held.children[0]["parent"] is held


class Counting(nn.Module):
    """A module of a user's own that does something in training."""

    total: tt.Tensor1D[L[1]] = nn.buffer(nn.init.zeros)

    def forward(self, x: Any) -> Any:
        if nn.is_training(self, x):
            self.total = self.total + 1.0
        return x


class Careless(Counting):
    @override
    def forward(self, x: Any) -> Any:
        if x.owns_tape:
            self.total = self.total + 1.0
        return x


def test_a_module_of_ones_own_asks_whether_it_trains() -> None:
    counting = Counting(total=tt.zeros((1,)))
    nn.inference(counting).forward(tt.ones((2,)).trace())
    assert counting.total.item() == 0.0
    counting.forward(tt.ones((2,)).trace())
    assert counting.total.item() == 1.0


def test_one_that_moves_a_tensor_without_asking_is_refused() -> None:
    careless = Careless(total=tt.zeros((1,)))

    with pytest.raises(tt.BuildError, match=r"Careless.total: .*keeps its tensors.*is_training"):
        nn.inference(careless).forward(tt.ones((2,)).trace())
    assert careless.total.item() == 0.0


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, nn.inference, lambda m: pickle.loads(pickle.dumps(m))]
)
def test_a_copy_of_it_infers_too(copied: Any, model: Net, x: Any) -> None:
    twin = copied(nn.inference(model))

    np.testing.assert_array_equal(
        twin.forward(x.trace()).detach().numpy(), model.forward(x).detach().numpy()
    )


def test_it_infers_in_a_plan_and_in_a_checkpoint(model: Net, x: Any) -> None:
    frozen = nn.inference(model)
    expected = tt.grad(lambda v: frozen.forward(v).square().sum(), x).numpy()

    @tt.compile
    def planned(v: Any) -> Any:
        return frozen.forward(v.trace()).square().sum().backward()

    for _ in range(2):
        np.testing.assert_allclose(planned(x)[x].numpy(), expected, rtol=1e-5)
    loss = tt.checkpoint(frozen.forward, x.trace()).square().sum()
    np.testing.assert_allclose(loss.backward()[x].numpy(), expected, rtol=1e-5)


def test_what_draws_in_one_that_is_made_in_a_plan_is_refused_by_line() -> None:
    holder = Holder(held=np.random.default_rng(0), use=None)
    draw: Any = tt.compile(lambda v: v * nn.inference(holder).held.normal())

    with pytest.raises(TraceError, match=r"rng.normal of a model .* make that outside"):
        draw(tt.ones((3,)))


@pytest.mark.parametrize("bad", [5, None, nn.Linear, lambda x: x])
def test_what_is_no_module_is_refused(bad: Any) -> None:
    with pytest.raises(tt.ArgumentTypeError, match="inference: the argument must be a module"):
        nn.inference(bad)
