"""Attributes of objects are walked when a function reads them; the others make no kind."""

from __future__ import annotations

import collections
import copy
import dataclasses
import functools
import itertools
import sysconfig
import types
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import nn, optim
from tapetensor.compiler import plans
from tapetensor.errors import TraceError


class Trainer:
    count: Any = 100

    def __init__(self) -> None:
        self.model = nn.Linear(2, 2, rng=np.random.default_rng(0))
        self.optimizer = optim.Sgd(self.model, lr=0.1)
        self.count = 0
        self.history: list[float] = []
        self.notes: dict[str, Any] = {"best": 1.0, "last": [1.0]}
        self.scale = 1.0
        self.told: list[Any] = [{"loss": 1.0}]
        self.memory: Any = collections.deque([(np.ones(2), 1)], maxlen=1000)
        self.seen = np.zeros(3)
        self.loss: Any = None
        self.best = copy.deepcopy(self.model)
        self.sizes = collections.Counter([1])
        self.clock = itertools.count()

    def plain_step(self, x: Any) -> Any:
        loss = (self.model.forward(x.trace()) * self.scale).mean()
        self.optimizer.step(loss.backward(wrt=self.model))
        return loss

    step = tt.compile(plain_step)


def test_a_trainer_that_counts_has_one_plan_and_trains_as_one_that_is_not_compiled() -> None:
    planned, plain = Trainer(), Trainer()
    for turn in range(5):
        losses = [one(tt.ones((3, 2))).item() for one in (planned.step, plain.plain_step)]
        for trainer in (planned, plain):
            trainer.count += 1
            trainer.history.append(losses[-1])
            trainer.notes["best"] = trainer.notes["last"][0] = float(turn)
            trainer.told.append({"loss": losses[-1]})
            trainer.memory.append((np.zeros(turn + 1), turn))
            trainer.seen[turn % 3] += 1
            trainer.loss = [tt.ones((turn + 1,)), np.zeros(turn + 1)][turn % 2]
            trainer.best = copy.deepcopy(trainer.model)
            trainer.sizes[turn] += 1
            next(trainer.clock)
        assert losses[0] == losses[1]
    assert len(plans(Trainer.step)) == 1

    planned.scale = plain.scale = 2.0
    assert planned.step(tt.ones((3, 2))).item() == plain.plain_step(tt.ones((3, 2))).item()
    assert "__getattribute__" not in vars(Trainer)


@dataclasses.dataclass
class Counter:
    count: Any = 1.0
    other: Any = 2.0
    items: list[float] = dataclasses.field(default_factory=lambda: [1.0])


class Plain:
    """Nothing but `Counter` names its attribute."""

    def __init__(self) -> None:
        vars(self)["count"] = 1.0


def _by_pattern(one: Any) -> Any:
    match one:
        case Counter(count=count):
            return count


_TEMPLATE = "{.count}"
# Each of them tells a change of the count, or of what stands in its place.
_READS: list[Callable[[Any], Any]] = [
    lambda one: one.count,
    lambda one: getattr(one, "cou" + "nt"),
    lambda one: dataclasses.asdict(one)["count"],
    lambda one: dataclasses.astuple(one)[0],
    lambda one: dataclasses.replace(one, other=1.0) == Counter(1.0, 1.0),
    lambda one: copy.deepcopy(one) == Counter(),
    lambda one: one == Counter(),
    lambda one: len(repr(one)),
    lambda one: float(f"{one.count:.1f}"),
    lambda one: float(_TEMPLATE.format(one)),
    _by_pattern,
]


@pytest.mark.parametrize("read", _READS, ids=range(len(_READS)))
def test_a_read_is_seen_whoever_reads(read: Callable[[Any], Any]) -> None:
    one = Counter()
    compiled: Any = tt.compile(lambda x: x * float(read(one)))
    for value in (1.0, 22.5):
        one.count = value
        assert compiled(np.ones(2)).tolist() == [float(read(one))] * 2

    assert "__getattribute__" not in vars(Counter)


def test_what_is_not_read_is_neither_kept_nor_refused() -> None:
    class Holder:
        def __init__(self) -> None:
            self.rate = 2.0
            self.objects = np.array([object()])
            self.masked = np.ma.array([1.0, 2.0])

    one = Holder()
    held = weakref.ref(one.masked)
    compiled: Any = tt.compile(lambda x: x * one.rate)
    assert compiled(np.ones(1)).tolist() == [2.0]
    del one.masked, one.objects
    assert held() is None
    assert compiled(np.ones(1)).tolist() == [2.0]


def test_what_code_of_a_package_sets_is_no_unread_attribute() -> None:
    package = types.ModuleType("package")
    source = "def reset(one): one.count = 1"
    exec(compile(source, f"{sysconfig.get_path('purelib')}/package.py", "exec"), vars(package))
    one: Any = Plain()

    def reset(x: Any) -> Any:
        package.reset(one)
        return x

    compiled: Any = tt.compile(reset)
    vars(one)["count"] = 1
    compiled(np.ones(2))
    vars(one)["count"] = 2
    with pytest.raises(TraceError, match=r"one\.count is changed"):
        compiled(np.ones(2))


def test_a_property_that_fails_leaves_the_class_as_it_was() -> None:
    class Own:
        def __init__(self) -> None:
            self.count = 1

        @functools.cached_property
        def rate(self) -> float:
            raise ValueError("no rate")

    one = Own()
    with pytest.raises(ValueError, match="no rate"):
        tt.compile(lambda x: x * one.rate)(np.ones(2))
    assert "__getattribute__" not in vars(Own)


def test_a_capture_within_a_capture_leaves_the_class_as_it_was() -> None:
    one = Counter()
    inner: Any = tt.compile(lambda x: x * one.other)
    outer: Any = tt.compile(lambda x: inner(x) * one.other)
    for count in (1.0, 2.0):
        one.count = count
        assert outer(np.ones(2)).tolist() == [4.0, 4.0]

    assert len(plans(outer)) == 1
    assert "__getattribute__" not in vars(Counter)


def test_a_module_may_count_beside_its_compiled_pass() -> None:
    class Counting(nn.Module):
        layer: nn.Linear[Any, Any]

        def __init__(self) -> None:
            self.layer = nn.Linear(2, 2, rng=np.random.default_rng(0))
            self.calls = 0
            self.sizes: list[int] = []

        def forward(self, x: Any) -> Any:
            return self.layer.forward(x)

    model = Counting()
    compiled = tt.compile(model.forward)
    for call in range(3):
        model.calls += 1
        model.sizes.append(call)
        x = tt.ones((3, 2))
        assert compiled(x).numpy().tolist() == model.forward(x).numpy().tolist()
    assert len(plans(compiled)) == 1


class _Deleting:
    def __init__(self) -> None:
        self.count: Any = 1.0
        self.rate = 2.0


def test_what_is_deleted_is_put_back_and_refused() -> None:
    one = _Deleting()

    def drop(x: Any) -> Any:
        del one.count
        return x * one.rate

    with pytest.raises(TraceError, match=r"one\.count is changed"):
        tt.compile(drop)(np.ones(1))
    assert one.count == 1.0
    assert not {"__delattr__", "__setattr__", "__getattribute__"} & vars(_Deleting).keys()


def test_parameters_that_only_an_optimizer_in_an_attribute_has_are_trained() -> None:
    def step(one: Any, x: Any) -> Any:
        optimizer = one.optimizer
        (weight,) = optimizer.parameters().values()
        loss = (x.trace() * weight.retaped(tt.OwnedTape)).sum()
        value = loss.detach()
        optimizer.step(loss.backward(wrt=optimizer))
        return value

    found = []
    for run in (step, tt.compile(step)):
        one: Any = Plain()
        one.optimizer = optim.Sgd([tt.ones((2,))], lr=0.5)
        found.append([run(one, tt.ones((2,))).item() for _ in range(3)])
    assert found == [[2.0, 1.0, 0.0]] * 2


@dataclasses.dataclass(frozen=True)
class _Frozen:
    rate: Any
    count: int = 0


@dataclasses.dataclass(slots=True)
class _Slotted:
    rate: Any
    count: Any = 0


@pytest.mark.parametrize("kind", [_Frozen, _Slotted])
def test_a_state_that_is_made_anew_and_counts_has_one_plan(kind: Any) -> None:
    state = kind(tt.ones((2,)))
    compiled: Any = tt.compile(lambda state, x: x * state.rate)
    for _ in range(4):
        state = dataclasses.replace(state, rate=state.rate * 2.0, count=state.count + 1)
        assert compiled(state, tt.ones((2,))).tolist() == state.rate.tolist()
    assert len(plans(compiled)) == 1
