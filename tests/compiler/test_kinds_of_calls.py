"""Which calls are of one kind: what is made anew for a call is told by what it is made of."""

# Lambdas have no annotations.
# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import functools
import gc
import itertools
import types
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import nn
from tapetensor.compiler import plans

_MODEL = nn.Linear(2, 2, rng=np.random.default_rng(0))


@dataclass
class Record:
    factor: Any


class Plain:
    def __init__(self, factor: Any) -> None:
        self.factor = factor

    def times(self, x: Any) -> Any:
        return x * self.factor


class Slotted:
    __slots__ = ("factor",)

    def __init__(self, factor: Any) -> None:
        self.factor = factor


_PLAIN = Plain(2.0)


def _scaled(factor: Any, x: Any) -> Any:
    return x * factor


def _by(factor: Any) -> Callable[[Any], Any]:
    return lambda x: x * factor


def _by_default(factor: Any) -> Callable[[Any], Any]:
    def scaled(x: Any, by: Any = factor) -> Any:
        return x * by

    return scaled


def _x() -> Any:
    return tt.ones((1, 2))


_FUNCTIONS: list[Any] = [
    pytest.param(lambda: _MODEL.forward, id="method of a module"),
    pytest.param(lambda: _PLAIN.times, id="method of an object"),
]
_OBJECTS: list[Any] = [
    pytest.param(Record, id="dataclass"),
    pytest.param(Plain, id="object"),
    pytest.param(Slotted, id="object with slots"),
    pytest.param(lambda factor: types.SimpleNamespace(factor=factor), id="namespace"),
]


@pytest.mark.parametrize("make", _FUNCTIONS)
def test_a_function_that_is_made_anew_for_each_call_is_of_one_kind(make: Any) -> None:
    compiled: Any = tt.compile(lambda function, x: function(x))
    for _ in range(3):
        assert compiled(make(), _x()).numpy().tolist() == make()(_x()).numpy().tolist()

    assert len(plans(compiled)) == 1


@pytest.mark.parametrize("make", _OBJECTS)
def test_an_object_that_is_made_anew_for_each_call_is_of_one_kind(make: Any) -> None:
    compiled: Any = tt.compile(lambda holder, x: x * holder.factor)
    for value in (2.0, 3.0, 4.0):
        x = compiled(make(tt.full((2,), value)), _x())
        assert x.numpy().tolist() == [[value, value]]

    assert len(plans(compiled)) == 1


@pytest.mark.parametrize(
    "make",
    [
        _by,
        _by_default,
        lambda factor: lambda x, *, by=factor: x * by,
        lambda factor: functools.partial(_scaled, factor),
        lambda factor: functools.partial(lambda x, by: x * by, by=factor),
    ],
)
def test_functions_that_hold_ever_other_floats_share_a_plan(make: Any) -> None:
    compiled: Any = tt.compile(lambda function, x: function(x))

    for factor in (2.0, 3.0, 4.0, 5.0, 6.0):
        function = make(factor)
        assert compiled(function, _x()).numpy().tolist() == [[factor, factor]]
        assert function(_x()).numpy().tolist() == [[factor, factor]]
    assert len(plans(compiled)) == 2


def test_a_plan_keeps_no_object_alive_whose_method_was_called() -> None:
    class Scale(Plain):
        @tt.compile
        def apply(self, x: Any) -> Any:
            return x * self.factor

    holder = Scale(tt.full((2,), 2.0))
    holder.apply(_x())
    alive = [weakref.ref(holder), weakref.ref(holder.factor)]

    del holder
    gc.collect()

    assert [one() for one in alive] == [None, None]


def test_a_scalar_of_numpys_is_of_another_kind_than_an_array_without_axes() -> None:
    def same(number: Any) -> Any:
        return number

    compiled = tt.compile(same)
    for number in (np.array(1), np.int64(1), np.array(1)):
        assert type(compiled(number)) is type(number)


def test_a_call_with_arguments_is_of_another_kind_than_one_without() -> None:
    @tt.compile
    def told(*positional: float, **named: float) -> tuple[int, list[str]]:
        return len(positional), sorted(named)

    for _ in range(2):
        assert told() == (0, [])
        assert told(1.0) == (1, [])
        assert told(scale=2.0) == (0, ["scale"])


# Of each of these lists any two are equal, or look so, and give results of different kinds.
_ALIKE: list[list[Any]] = [
    [2, 2.0, np.float32(2), np.int64(2), 2 + 0j],
    [1, True, 1.0, np.True_],
    [0.0, -0.0, 0, False],
    [complex(0.0, 0.0), complex(0.0, -0.0)],
]
_PAIRS = [pair for alike in _ALIKE for pair in itertools.combinations(alike, 2)]
_NESTS: dict[str, Any] = {
    "argument": lambda value: value,
    "list": lambda value: [value],
    "long list": lambda value: [*range(20), value],
    "dict": lambda value: {"a": value},
    "long dict": lambda value: {**dict.fromkeys("abcdefghijklmnopqrst"), "z": value},
}
_HASHED: dict[str, Any] = {
    "key": lambda value: {value: 1},
    "key among many": lambda value: {**dict.fromkeys("abcdefghijklmnopqrst"), value: 1},
    "set": lambda value: {value},
    "tuple as a key": lambda value: {(value,): 1},
    "frozenset as a key": lambda value: {frozenset([value]): 1},
}


@pytest.mark.parametrize("nest", [*_NESTS, *_HASHED])
@pytest.mark.parametrize(("one", "other"), _PAIRS, ids=repr)
def test_equal_values_of_another_type_or_sign_are_told_apart(
    one: Any, other: Any, nest: str
) -> None:
    made = {**_NESTS, **_HASHED}[nest]
    compiled = tt.compile(lambda nested: repr(nested))
    compiled(made(one))

    assert compiled(made(other)) == repr(made(other))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x * [1.0, 2.0],
        lambda x: [[1], [2]] - x,
        lambda x: np.maximum(x, (1.0, 2.0)),
        lambda x: x == [0.0, 1.0],
        lambda x: np.where(x > 1, x, [5.0, 6.0]),
        lambda x: x @ [1.0, 2.0],
        lambda x: x * [1.0, 2.0, 3.0],
        lambda x: x * "a",
        lambda x: x + None,
    ],
)
def test_lists_are_operands_of_arrays_and_the_rest_fails_as_numpy_does(function: Any) -> None:
    x = np.arange(4, dtype=np.float32).reshape(2, 2)

    def outcome(call: Any) -> Any:
        try:
            return call(x).tolist(), str(call(x).dtype)
        except (TypeError, ValueError) as error:
            return type(error)

    assert outcome(tt.compile(function)) == outcome(function)
