"""Which groups run as machine code, and which numpy runs faster."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import compiler


def _explained(run: Callable[[Any], Any], kind: type) -> str:
    compiled = tt.compile(run, backend="numba")
    compiled(tt.from_numpy(np.linspace(0.1, 0.9, 60, dtype=kind).reshape(12, 5), (12, 5)))
    (plan,) = compiler.plans(compiled)
    return plan.explain()


@pytest.mark.parametrize("function", [np.exp, np.log, np.log1p, np.tanh])
def test_numpys_vector_instructions_for_float64_are_used(function: Any) -> None:
    def run(x: Any) -> Any:
        return tt.from_numpy(function(x.numpy() * 2 + 1), x.shape)

    assert "native" in _explained(run, np.float32)
    assert "native" not in _explained(run, np.float64)


def test_many_steps_gain_more_than_a_function_of_float64_loses() -> None:
    def run(x: Any) -> Any:
        y = x.exp()
        for _ in range(20):
            y = y * x + 0.5
        return y

    assert "native group of 41" in _explained(run, np.float64)


@pytest.mark.parametrize(("count", "is_native"), [(15, True), (16, False)])
def test_a_loop_that_llvm_would_not_vectorize_is_none(count: int, is_native: bool) -> None:
    # It writes to so many arrays that may overlap: 16 * 17 / 2 comparisons are more than 128.
    def run(x: Any) -> Any:
        return [x * 2.0 + float(one) for one in range(2, 2 + count)]

    assert ("native" in _explained(run, np.float32)) is is_native


def test_each_loop_over_a_row_counts_by_itself() -> None:
    def run(x: Any) -> Any:
        found = []
        for one in range(10):
            y = x * float(one + 2) + 1.0
            x = y - y.max(axis=1, keepdims=True)
            found.append(x)
        return found

    assert "native" in _explained(run, np.float32)
