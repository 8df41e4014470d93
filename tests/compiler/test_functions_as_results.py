"""Functions and classes that a compiled function returns: not those that it makes."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor.errors import TraceError


def _made_with(x: Any) -> dict[str, Callable[..., Any]]:
    y = x * 2.0
    number = y.sum().item()
    tensor = tt.from_numpy(y)
    held, total = {"y": [y]}, 0.0

    def default(value: Any = y) -> Any:
        return value

    def keep(value: float, seen: list[float] = []) -> list[float]:  # noqa: B006 (what is refused)
        return [*seen, value]

    def add(value: float) -> float:
        nonlocal total
        total += value
        return total

    class Holder:
        value = y

    class Empty:
        pass

    return {
        "a closure": lambda: y,
        "an argument": lambda: x,
        "a default": default,
        "a number": lambda: number,
        "a container": lambda: held,
        "another function": lambda: default,
        "a tensor": lambda: tensor,
        "a class": Holder,
        "a class that holds nothing": Empty,
        "nothing": lambda: 1.0,
        "a plain default": keep,
        "a variable": add,
        "a method of a list": [x].append,
    }


@pytest.mark.parametrize("how", list(_made_with(np.ones(3))))
def test_what_is_made_inside_is_no_result(how: str) -> None:
    compiled: Any = tt.compile(lambda x: (x * 2.0, _made_with(x)[how]))
    with pytest.raises(TraceError, match=r"\.py:\d+.* is made inside, .*; make it outside"):
        compiled(np.ones(3))


def _scaled(value: float) -> float:
    return 3.0 * value


def test_a_function_and_a_class_that_were_there_are_results() -> None:
    offset = 1.0

    def moved(value: float) -> float:
        return value + offset

    class Holder:
        value = 1.0

    made = [moved, _scaled, Holder, Any, np.linalg.norm, np.float32, len, contextlib.suppress]
    holder, table = Holder(), {"moved": moved}
    compiled: Any = tt.compile(lambda x: (x + 1.0, made, type(holder), table["moved"]))
    for _ in range(2):
        _, found, cls, function = compiled(np.ones(3))
        assert found is made
        assert cls is Holder
        assert function is moved
    there: Any = tt.compile(lambda x: [moved, _scaled, Holder, np.float32, len])
    assert there(np.ones(3)) == there(np.ones(3))
