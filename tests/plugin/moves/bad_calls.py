"""What is called under a class, by a builtin, by `operator` or by reading a property."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Literal as L
from typing import Protocol

from tapetensor import Tensor, nn, optim
from tests.plugin.moves.cases import Plain, Scalar, Traced


class Ops:
    def __init__(self, traced: Traced) -> None:
        self.traced = traced

    @staticmethod
    def static(traced: Traced) -> Traced:
        return traced.exp()

    @classmethod
    def of_class(cls, traced: Traced) -> Traced:
        return traced.exp()

    @classmethod
    def taken_by_another(cls, traced: Traced) -> Traced:
        cls.of_class(traced)
        return traced.sin()  # E: sin: "traced" was moved by "of_class"

    def method(self, traced: Traced) -> Traced:
        return traced.exp()

    @property
    def total(self) -> Scalar:
        return self.traced.sum()


def static_method(x: Plain) -> None:
    traced = x.trace()
    Ops.static(traced)
    traced.sin()  # E: sin: "traced" was moved by "static"


def class_method(x: Plain) -> None:
    traced = x.trace()
    Ops.of_class(traced)
    traced.sin()  # E: sin: "traced" was moved by "of_class"


def class_method_of_the_class_itself(x: Plain) -> None:
    Ops.taken_by_another(x.trace())


def method_of_a_class(x: Plain) -> None:
    traced = x.trace()
    Ops.method(Ops(x.trace()), traced)
    traced.sin()  # E: sin: "traced" was moved by "method"


def method_of_tensor(x: Plain) -> None:
    traced = x.trace()
    Tensor.exp(traced)
    traced.sin()  # E: sin: "traced" was moved by "exp"


def property_that_takes_what_it_reads(x: Plain) -> None:
    ops = Ops(x.trace())
    print(ops.total)
    ops.traced.sin()  # E: sin: "ops.traced" was moved by "total"


def functions_in_a_dict(x: Plain) -> None:
    table: dict[str, Callable[[Traced], Traced]] = {
        "exp": lambda one: one.exp(),
        "sin": lambda one: one.sin(),
    }
    traced = x.trace()
    table["exp"](traced)
    table["sin"](traced)  # E: table['sin']: "traced" was moved by "table['exp']"


def function_of_operator(x: Plain) -> None:
    traced = x.trace()
    operator.mul(traced, x)
    traced.sin()  # E: sin: "traced" was moved by "mul"


def summed(x: Plain) -> None:
    terms = [x.trace().sum(), x.trace().mean()]
    sum(terms[1:], terms[0])
    terms[0].exp()  # E: exp: "terms[0]" was moved by "sum"


def mapped(x: Plain) -> None:
    items = [x.trace(), x.trace()]
    list(map(Tensor.exp, items))
    items[0].sin()  # E: sin: "items[0]" was moved by "map"


def reduced(x: Plain) -> None:
    items = [x.trace(), x.trace()]
    functools.reduce(lambda one, other: one + other, items)
    items[1].sin()  # E: sin: "items[1]" was moved by "reduce"


def reduced_from_a_first_one(x: Plain) -> None:
    items = [x.trace(), x.trace()]
    first = x.trace()
    functools.reduce(lambda one, other: one + other.share(), items, first)
    first.sin()  # E: sin: "first" was moved by "reduce"


class Trainer:
    def __init__(self) -> None:
        self.layer: nn.Bias1d[L[3]] = nn.Bias1d(3)
        self.optimizer = optim.Sgd(self.layer, lr=0.1)

    def step(self, x: Plain) -> Scalar:
        self.prediction = self.layer.forward(x.trace())
        self.optimizer.step(self.prediction.sum().backward(wrt=self.layer))
        return self.prediction.mean()  # E: mean: "self.prediction" was moved by "sum"


def kept_over_a_step_of_the_optimizer(x: Plain) -> None:
    Trainer().step(x)


class Forwards(Protocol):
    def forward(self, traced: Traced) -> Traced: ...


def method_of_a_protocol(x: Plain) -> None:
    _given_a_protocol(nn.ReLU(), x.trace())


def _given_a_protocol(layer: Forwards, traced: Traced) -> None:
    layer.forward(traced)
    layer.forward(traced)  # E: forward: "traced" was moved by "forward"
