"""Plain values of other types or signs make calls of another kind, however equal they are."""

# Lambdas have no annotations.
# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import tapetensor as tt

# Of each of these lists any two are equal, or look so, and give results of different kinds.
_ALIKE: list[list[Any]] = [
    [2, 2.0, np.float32(2), np.int64(2), 2 + 0j],
    [1, True, 1.0, np.True_],
    [0.0, -0.0, 0, False],
    [slice(0, 2), slice(False, 2), slice(np.int64(0), 2)],
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
    if nest in _HASHED and isinstance(one, slice):
        pytest.skip("slices are not hashable")
    made = {**_NESTS, **_HASHED}[nest]
    compiled = tt.compile(lambda nested: repr(nested))
    compiled(made(one))

    assert compiled(made(other)) == repr(made(other))


@pytest.mark.parametrize("held", [{8, 0}, frozenset({8, 0})])
def test_a_set_in_another_order_is_another_kind_of_call(held: Any) -> None:
    compiled = tt.compile(lambda numbers: list(numbers))
    compiled(held)
    other = type(held)([0, 8])

    assert compiled(other) == list(other)


def test_keyword_arguments_in_another_order_are_another_kind_of_call() -> None:
    compiled = tt.compile(lambda **named: list(named))
    compiled(a=1, b=2)

    assert compiled(b=2, a=1) == ["b", "a"]


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
