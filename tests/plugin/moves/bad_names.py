"""The many ways to name a tensor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import tapetensor as tt
from tapetensor import Gradients, Tensor
from tapetensor.typing import S, T
from tests.plugin.moves.cases import Plain, Scalar, Traced


class Holder:
    def __init__(self, x: Plain) -> None:
        self.traced = x.trace()

    def twice(self) -> None:
        self.traced.exp()
        self.traced.sin()  # E: sin: "self.traced" was moved by "exp" on line 20


def attribute(x: Plain) -> None:
    Holder(x).twice()


def attribute_of_a_variable(x: Plain) -> None:
    holder = Holder(x)
    holder.traced.exp()
    holder.traced.sin()  # E: sin: "holder.traced" was moved by "exp"


def item_of_a_tuple(x: Plain) -> None:
    pair = (x.trace(), x.trace())
    pair[0].exp()
    pair[1].exp()
    pair[0].sin()  # E: sin: "pair[0]" was moved by "exp" on line 36


def item_of_a_list(x: Plain) -> None:
    items = [x.trace(), x.trace()]
    items[0].exp()
    items[0].sin()  # E: sin: "items[0]" was moved by "exp"


def item_of_a_dictionary(x: Plain) -> None:
    items = {"a": x.trace()}
    items["a"].exp()
    items["a"].sin()  # E: sin: "items['a']" was moved by "exp"


def alias(x: Plain) -> None:
    traced = x.trace()
    other = traced
    other.exp()
    traced.sin()  # E: sin: "traced" was moved by "exp"


def alias_the_other_way(x: Plain) -> None:
    traced = x.trace()
    other = traced
    traced.exp()
    other.sin()  # E: sin: "other" was moved by "exp"


def alias_in_a_tuple(x: Plain) -> None:
    traced = x.trace()
    pair = (x, traced)
    traced.exp()
    pair[1].sin()  # E: sin: "pair[1]" was moved by "exp"


def alias_by_unpacking(x: Plain) -> None:
    traced = x.trace()
    first, second = traced, x
    second.sin()
    traced.exp()
    first.sin()  # E: sin: "first" was moved by "exp"


def alias_in_a_loop(x: Plain) -> None:
    for _ in range(2):
        traced = x.trace()
        other = traced
        traced.exp()
        other.sin()  # E: sin: "other" was moved by "exp"


def alias_given_twice(x: Plain) -> None:
    traced = x.trace()
    other = traced
    traced * other  # E: multiply: "other" is given twice


def unpacked(x: Plain) -> None:
    first, _ = x.trace(), x
    first.exp()
    first.sin()  # E: sin: "first" was moved by "exp"


def walrus(x: Plain) -> None:
    if (traced := x.trace()).owns_tape:
        traced.exp()
        traced.sin()  # E: sin: "traced" was moved by "exp"


def walrus_that_is_used_at_once(x: Plain) -> None:
    [((traced := x.trace()).exp(), traced.sin()) for _ in range(2)]  # E: "traced" was moved


def walrus_that_renames(x: Plain) -> None:
    traced = x.trace()
    (other := traced).exp()
    traced.sin()  # E: sin: "traced" was moved by "exp"
    print(other)


def two_names_at_once(x: Plain) -> None:
    first = second = x.trace()
    first.exp()
    second.sin()  # E: sin: "second" was moved by "exp"


class Pair(NamedTuple):
    traced: Traced
    number: int


@dataclass(frozen=True)
class Frozen:
    traced: Traced


def field_of_a_named_tuple(x: Plain) -> None:
    pair = Pair(x.trace(), 1)
    pair.traced.exp()
    pair.traced.sin()  # E: sin: "pair.traced" was moved by "exp"


def field_of_a_frozen_data_class(x: Plain) -> None:
    frozen = Frozen(x.trace())
    frozen.traced.exp()
    frozen.traced.sin()  # E: sin: "frozen.traced" was moved by "exp"


def in_a_decorator(x: Plain) -> None:
    traced = x.trace()

    def plainly(_: Traced) -> Callable[[Callable[[], None]], Callable[[], None]]:
        return lambda function: function

    @plainly(traced.exp())
    def nothing() -> None:
        pass

    nothing()
    traced.sin()  # E: sin: "traced" was moved by "exp"


def name_of_match(x: Plain) -> None:
    traced = x.trace()
    match traced:
        case other:
            other.exp()
            traced.sin()  # E: sin: "traced" was moved by "exp"


def for_target(x: Plain) -> None:
    for traced in [x.trace(), x.trace()]:
        traced.exp()
        traced.sin()  # E: sin: "traced" was moved by "exp"


def capture_of_match(x: Plain) -> None:
    match (x.trace(), 1):
        case (traced, number):
            traced.exp()
            print(number)
            traced.sin()  # E: sin: "traced" was moved by "exp"


def passed_in_a_lambda(x: Plain) -> None:
    traced = x.trace()
    traced.exp()
    _called(lambda: traced.sin())  # E: sin: "traced" was moved by "exp"


def within_a_lambda(x: Plain) -> None:
    _called(lambda: [t * t for t in [x.trace()]])  # E: multiply: "t" is given twice


def in_a_nested_function(x: Plain) -> None:
    traced = x.trace()
    traced.exp()

    def again() -> Traced:
        return traced.sin()  # E: sin: "traced" was moved by "exp"

    again()


def own_function(x: Plain) -> None:
    traced = x.trace()
    doubled(traced)
    traced.sin()  # E: sin: "traced" was moved by "doubled"


def own_function_given_twice(x: Plain) -> None:
    traced = x.trace()
    added(traced, traced)  # E: added: "traced" is given twice


def own_function_by_name(x: Plain) -> None:
    traced = x.trace()
    added(rhs=x.trace(), lhs=traced)
    traced.sin()  # E: sin: "traced" was moved by "added"


def own_function_with_gradients(x: Plain) -> None:
    loss = x.trace().sum()
    step(loss)
    step(loss)  # E: step: "loss" was moved by "step"


def own_function_that_hands_it_back(x: Plain) -> None:
    traced = x.trace()
    other = same(traced)
    other.exp()
    traced.sin()  # E: sin: "traced" was moved by "exp"


def own_function_that_hands_it_to_another(x: Plain) -> None:
    traced = x.trace()
    handed_on(traced)
    traced.sin()  # E: sin: "traced" was moved by "handed_on"


def own_method(x: Plain) -> None:
    layer = Doubler()
    traced = x.trace()
    layer.forward(traced)
    layer.forward(traced)  # E: forward: "traced" was moved by "forward"


def function_in_a_variable(x: Plain, f: Callable[[Traced], Traced] | None = None) -> None:
    g: Callable[[Traced], Traced] = f or doubled
    traced = x.trace()
    g(traced)
    traced.sin()  # E: sin: "traced" was moved by "g"


def generic(x: Plain) -> None:
    residual(x.trace())


def residual(x: Tensor[S, T]) -> Tensor[S, T]:
    return x + x.relu()  # E: add: "x" was moved by "relu"


def doubled(x: Tensor[S, T]) -> Tensor[S, T]:
    return x * 2.0


def same(x: Traced) -> Traced:
    return x


def handed_on(x: Traced) -> Traced:
    print(x)
    return doubled(x)


def added(lhs: Traced, rhs: Traced) -> Traced:
    return lhs + rhs


def step(loss: Scalar) -> Gradients:
    return loss.backward()


def _called(function: Callable[[], object]) -> None:
    function()


class Doubler:
    def forward(self, x: Tensor[S, T]) -> Tensor[S, T]:
        return tt.maximum(x, 0.0)


def chosen_by_an_expression(x: Plain, flag: bool = True) -> None:
    traced = x.trace()
    chosen = traced if flag else x.trace()
    chosen.exp()
    traced.sin()  # E: sin: "traced" may have been moved by "exp"


def one_that_keeps_its_name_beside_another(x: Plain) -> None:
    traced = x.trace()
    traced, second = traced, traced
    traced.exp()
    second.sin()  # E: sin: "second" was moved by "exp"


def one_that_is_assigned_to_itself(x: Plain) -> None:
    traced = x.trace()
    traced.exp()
    traced = traced
    traced.sin()  # E: sin: "traced" was moved by "exp"
