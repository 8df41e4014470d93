"""Attributes, objects, methods and functions that are values."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Generic, NamedTuple
from typing import Literal as L

import numpy as np
from typing_extensions import override

import tapetensor as tt
from tapetensor import Tensor, losses, nn
from tapetensor.typing import T
from tests.plugin.moves.cases import Elsewhere, Plain, Scalar, Traced


class Holder:
    def __init__(self, traced: Traced) -> None:
        self.traced = traced

    def other_name(self) -> None:
        traced = self.traced
        traced.exp()
        self.traced.sin()  # E: sin: "self.traced" was moved by "exp"

    def other_name_the_other_way(self) -> None:
        traced = self.traced
        self.traced.exp()
        traced.sin()  # E: sin: "traced" was moved by "exp"

    def two_names(self) -> None:
        first = self.traced
        second = self.traced
        first * second  # E: multiply: "second" is given twice

    @property
    def same(self) -> Traced:
        return self.traced

    def step(self) -> None:
        self.traced.sum().backward()

    def __call__(self, x: Traced) -> Traced:
        return x.exp()

    def __matmul__(self, x: Traced) -> Traced:
        return x.exp()


def attribute(x: Plain) -> None:
    Holder(x.trace()).other_name()


def attribute_the_other_way(x: Plain) -> None:
    Holder(x.trace()).other_name_the_other_way()


def attribute_under_two_names(x: Plain) -> None:
    Holder(x.trace()).two_names()


def given_to_an_object(x: Plain) -> None:
    traced = x.trace()
    holder = Holder(traced)
    traced.exp()
    holder.traced.sin()  # E: sin: "holder.traced" was moved by "exp"


def given_to_an_object_by_name(x: Plain) -> None:
    traced = x.trace()
    holder = Holder(traced=traced)
    holder.traced.exp()
    traced.sin()  # E: sin: "traced" was moved by "exp"


def property_read_twice(x: Plain) -> None:
    holder = Holder(x.trace())
    holder.same.exp()
    holder.same.sin()  # E: sin: "holder.same" was moved by "exp"


def property_beside_the_attribute(x: Plain) -> None:
    holder = Holder(x.trace())
    holder.traced.exp()
    holder.same.sin()  # E: sin: "holder.same" was moved by "exp"


def method_that_takes_an_attribute(x: Plain) -> None:
    holder = Holder(x.trace())
    holder.step()
    holder.traced.sin()  # E: sin: "holder.traced" was moved by "step"


def method_that_takes_an_attribute_twice(x: Plain) -> None:
    holder = Holder(x.trace())
    holder.step()
    holder.step()  # E: step: "holder.traced" was moved by "step"


def object_that_is_called(x: Plain) -> None:
    holder = Holder(x.trace())
    traced = x.trace()
    holder(traced)
    traced.sin()  # E: sin: "traced" was moved by "holder"


def operator_of_an_object(x: Plain) -> None:
    holder = Holder(x.trace())
    traced = x.trace()
    holder @ traced
    traced.sin()  # E: sin: "traced" was moved by "matmul"


class Pair(NamedTuple):
    first: Traced
    second: Traced


@dataclass
class Batch(Generic[T]):
    traced: Tensor[tuple[int], T]
    number: int = 0


def named_tuple(x: Plain) -> None:
    traced = x.trace()
    pair = Pair(traced, x.trace())
    pair.first.exp()
    traced.sin()  # E: sin: "traced" was moved by "exp"


def named_tuple_by_index(x: Plain) -> None:
    pair = Pair(x.trace(), x.trace())
    pair.first.exp()
    pair[0].sin()  # E: sin: "pair[0]" was moved by "exp"


def named_tuple_that_is_unpacked(x: Plain) -> None:
    pair = Pair(x.trace(), second=x.trace())
    first, second = pair
    second.exp()
    pair.second.sin()  # E: sin: "pair.second" was moved by "exp"
    print(first)


def named_tuple_that_is_matched(x: Plain) -> None:
    pair = Pair(x.trace(), x.trace())
    match pair:
        case Pair(first=one, second=_):
            one.exp()
    pair.first.sin()  # E: sin: "pair.first" may have been moved by "exp"


def data_class(x: Plain) -> None:
    traced = x.trace()
    batch = Holds(traced)
    traced.exp()
    batch.traced.sin()  # E: sin: "batch.traced" was moved by "exp"


@dataclass
class Holds:
    traced: Traced
    number: int = 0


def bound_method(x: Plain) -> None:
    traced = x.trace()
    step = traced.exp
    step()
    traced.sin()  # E: sin: "traced" was moved by "exp"


def bound_method_twice(x: Plain) -> None:
    step = x.trace().sum().backward
    loss = x.trace().sum()
    again = loss.backward
    again()
    again()  # E: backward: "loss" was moved by "backward"
    print(step)


def partial_function(x: Plain) -> None:
    traced = x.trace()
    scale = partial(scaled, factor=2.0)
    scale(traced)
    traced.sin()  # E: sin: "traced" was moved by "scale"


def partial_with_the_tensor(x: Plain) -> None:
    traced = x.trace()
    scale = partial(scaled, traced)
    scale(2.0)
    scale(3.0)  # E: scale: "traced" was moved by "scale"


def partial_with_the_tensor_beside_its_name(x: Plain) -> None:
    traced = x.trace()
    scale = partial(scaled, traced)
    scale(factor=2.0)
    traced.sin()  # E: sin: "traced" was moved by "scale"


def dict_of_functions(x: Plain) -> None:
    functions: dict[str, Callable[[Traced], Traced]] = {"a": scaled, "b": halved}
    traced = x.trace()
    functions["a"](traced)
    traced.sin()  # E: sin: "traced" was moved by "functions['a']"


def dict_of_functions_by_name(x: Plain) -> None:
    functions = {"a": halved, "b": halved}
    traced = x.trace()
    for name in ("a", "b"):
        functions[name](traced)  # E: "traced" may have been moved by "functions[name]"


def list_of_functions(x: Plain) -> None:
    traced = x.trace()
    for function in (halved, halved):
        function(traced)  # E: "traced" may have been moved by "function"


def default_argument(x: Plain) -> None:
    traced = x.trace()

    def later(again: Traced = traced) -> Traced:
        return again.exp()

    later()
    traced.sin()  # E: sin: "traced" was moved by "later"


def default_argument_twice(x: Plain) -> None:
    def later(again: Traced = x.trace()) -> Traced:  # noqa: B008
        return again.exp()

    later()
    later()  # E: later: "again" was moved by "later"


class Base:
    def forward(self, x: Traced) -> Traced:
        return x.exp()


class Derived(Base):
    @override
    def forward(self, x: Traced) -> Traced:
        hidden = super().forward(x)
        return hidden + x  # E: add: "x" was moved by "forward"


class Twice(Base):
    @override
    def forward(self, x: Traced) -> Traced:
        x.sin()
        return super().forward(x)  # E: forward: "x" was moved by "sin"


def method_of_the_base_class(x: Plain) -> None:
    Derived().forward(x.trace())


def method_of_the_base_class_after(x: Plain) -> None:
    Twice().forward(x.trace())


def logged(x: Plain) -> None:
    loss = x.trace().sum()
    log(loss)
    loss.backward()  # E: backward: "loss" was moved by "log"


def trained(x: Plain) -> None:
    loss = x.trace().sum()
    loss.backward()
    print(train(loss))  # E: train: "loss" was moved by "backward"


def trained_by_way_of_another(x: Plain) -> None:
    loss = x.trace().sum()
    reported(loss)
    loss.exp()  # E: exp: "loss" was moved by "reported"


def taken_from_an_object(x: Plain) -> None:
    pair = Pair(x.trace(), x.trace())
    both(pair)
    pair.first.sin()  # E: sin: "pair.first" was moved by "both"


def taken_from_a_list(x: Plain) -> None:
    items = [x.trace(), x.trace()]
    total(items)
    items[0].sin()  # E: sin: "items[0]" was moved by "total"


def log(loss: Scalar) -> float:
    return loss.exp().item()


def train(loss: Scalar) -> int:
    return len(loss.backward())


def reported(loss: Scalar) -> None:
    value = log(loss)
    print(value)


def both(pair: Pair) -> float:
    return (pair.first * pair.second).sum().item()


def total(items: list[Traced]) -> float:
    return sum(item.sum().item() for item in items)


def scaled(x: Traced, factor: float = 1.0) -> Traced:
    return x * factor


def halved(x: Traced) -> Traced:
    return x * 0.5


def _parted(traced: Traced) -> Traced:
    first, second = traced.share(2)
    return first * second.exp()


def parted_in_a_function(x: Plain) -> None:
    traced = x.trace()
    _parted(traced)
    traced.sin()  # E: sin: "traced" was moved by "_parted"


class _Logger:
    def log(self, traced: Traced) -> None:
        traced.sum().backward()

    def read(self, traced: Traced) -> None:
        traced.sum().backward()


class _LogsMore(_Logger):
    @override
    def log(self, traced: Traced) -> None:
        print(traced.shape)
        traced.exp()

    @override
    def read(self, traced: Traced) -> None:
        print(traced.shape)

    def twice(self, traced: Traced) -> None:
        super().read(traced)
        traced.sin()  # E: sin: "traced" was moved by "read"


def overridden_by_what_takes_too(x: Plain) -> None:
    logger: _Logger = _LogsMore()
    traced = x.trace()
    logger.log(traced)
    traced.sin()  # E: sin: "traced" was moved by "log"


def taken_by_super(x: Plain) -> None:
    _LogsMore().twice(x.trace())


class Average:
    def __init__(self, value: Traced) -> None:
        self.value = value

    def blended(self, other: Traced) -> Average:
        return Average(self.value * 0.9 + other * 0.1)


@dataclass
class Output:
    traced: Traced


class Walk:
    def __init__(self) -> None:
        self.steps: list[Traced] = []

    def __iter__(self) -> Iterator[Traced]:
        return iter(self.steps)

    def total(self, weights: list[float]) -> Traced:
        many = [one * by for one, by in zip(self.steps, weights, strict=False)]
        return -tt.stack(many).sum(axis=0)


def kept_in_an_object_that_nobody_else_has(x: Plain) -> None:
    average = Average(x.trace())
    random.random()
    average.blended(x.trace())
    random.random()
    average.blended(x.trace())  # E: blended: "average.value" was moved by "blended"


def kept_in_a_data_class_that_nobody_else_has(x: Plain) -> None:
    output = Output(x.trace())
    output.traced.exp()
    random.random()
    output.traced.sin()  # E: sin: "output.traced" was moved by "exp"


def met_in_loops_over_an_object(x: Plain) -> None:
    walk = Walk()
    walk.steps.append(x.trace())
    for one in walk:
        one.exp()
    for one in walk:
        one.sin()  # E: sin: "one" was moved by "exp"


def weighed_twice_by_an_object(x: Plain) -> None:
    walk = Walk()
    walk.steps.append(x.trace())
    walk.total([1.0])
    walk.total([1.0])  # E: total: "walk.steps[0]" was moved by "total"


def by_a_partial_of_the_library(x: Plain) -> None:
    smooth = partial(losses.cross_entropy, label_smoothing=0.1)
    traced = x.trace()
    label = tt.zeros((), np.int64)
    losses.cross_entropy(traced, label)
    smooth(traced, label)  # E: smooth: "traced" was moved by "cross_entropy"


class Learner:
    def __init__(self, layer: nn.Linear[L[3], L[3]], traced: Traced) -> None:
        self.layer = layer
        self.traced = traced
        self.loss: Scalar | None = None

    def outputs(self) -> Traced:
        return self.layer.forward(self.traced)

    def run(self) -> None:
        for _ in range(2):
            self.outputs()  # E: outputs: "self.traced" may have been moved by "outputs"

    def learn(self) -> None:
        if self.loss is not None:
            self.loss.backward()


def given_to_a_layer_in_each_pass(x: Plain) -> None:
    Learner(nn.Linear(3, 3, rng=np.random.default_rng(0)), x.trace()).run()


def moved_unless_it_is_none(x: Plain) -> None:
    learner = Learner(nn.Linear(3, 3, rng=np.random.default_rng(0)), x.trace())
    learner.loss = x.trace().sum()
    learner.learn()
    learner.learn()  # E: learn: "learner.loss" was moved by "learn"


def by_methods_of_another_file(x: Plain) -> None:
    other = Elsewhere(x.trace())
    other.take()
    other.take()  # E: take: "other.traced" was moved by "take"
    other.take_all()
    other.several[0].exp()  # E: exp: "other.several[0]" was moved by "take_all"


class Calling:
    def __init__(self, function: Callable[[Traced], Traced]) -> None:
        self.function = function


def by_a_function_in_an_attribute(x: Plain) -> None:
    calling = Calling(Tensor.exp)
    traced = x.trace()
    calling.function(traced)
    traced.exp()  # E: exp: "traced" was moved by "function"
