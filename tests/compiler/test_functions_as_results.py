"""Functions and classes that a compiled function returns: not those that hold what it computes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor.errors import TraceError


def _made_with(x: Any) -> dict[str, Callable[[], Any]]:
    y = x * 2.0
    number = y.sum().item()
    tensor = tt.from_numpy(y)
    held = {"y": [y]}

    def default(value: Any = y) -> Any:
        return value

    class Holder:
        value = y

    return {
        "a closure": lambda: y,
        "an argument": lambda: x,
        "a default": default,
        "a number": lambda: number,
        "a container": lambda: held,
        "another function": lambda: default,
        "a tensor": lambda: tensor,
        "a class": Holder,
    }


@pytest.mark.parametrize("how", list(_made_with(np.ones(3))))
def test_what_holds_what_was_computed_is_no_result(how: str) -> None:
    compiled: Any = tt.compile(lambda x: _made_with(x)[how])
    with pytest.raises(TraceError, match=r"\.py:\d+.* holds what this call computes; return"):
        compiled(np.ones(3))


def test_a_function_that_holds_nothing_computed_is_a_result() -> None:
    scale = 3.0

    def scaled(value: float) -> float:
        return scale * value

    compiled: Any = tt.compile(lambda x: (x + 1.0, scaled))
    for _ in range(2):
        assert compiled(np.ones(3))[1](2.0) == 6.0
