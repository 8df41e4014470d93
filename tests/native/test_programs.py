"""Programs through both executors, side by side, and which groups run as machine code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import compiler
from tapetensor.native import cache

SHAPES = [(7, 5), (33, 16), (6, 3, 8), (4, 3, 2, 5), (50,), (600, 40), (40, 1)]

# Each takes two values of one shape, a row and a column.
OPS: list[Callable[..., Any]] = [
    lambda x, y, row, column: x + y,
    lambda x, y, row, column: x * y,
    lambda x, y, row, column: x - row,
    lambda x, y, row, column: x * column,
    lambda x, y, row, column: x.tanh(),
    lambda x, y, row, column: (-x.abs()).exp(),
    lambda x, y, row, column: x.sigmoid(),
    lambda x, y, row, column: x.relu(),
    lambda x, y, row, column: (x * x + 1).log(),
    lambda x, y, row, column: x - x.max(axis=-1, keepdims=True),
    lambda x, y, row, column: x - x.mean(axis=-1, keepdims=True),
    lambda x, y, row, column: x.softmax(axis=-1),
    lambda x, y, row, column: x.square().sum(axis=0, keepdims=True) + x * 0.5,
    lambda x, y, row, column: tt.where(x > y, x, y),
    lambda x, y, row, column: tt.maximum(x, y),
    lambda x, y, row, column: x.clip(-1.0, 2.0),
    lambda x, y, row, column: x / (y.abs() + 0.7),
    lambda x, y, row, column: x.gelu(),
    lambda x, y, row, column: x.softplus(),
]
TOTALS: list[Callable[..., Any]] = [
    lambda x: x.sum(),
    lambda x: x.sum(axis=0),
    lambda x: x.max(axis=0),
    lambda x: x.min(),
]


def _program(seed: int) -> Callable[..., Any]:
    rng = np.random.default_rng(seed)
    steps = [rng.integers(1000, size=4).tolist() for _ in range(rng.integers(2, 14))]

    def run(*inputs: Any) -> Any:
        *values, row, column = inputs
        results = []
        for op, lhs, rhs, kept in steps:
            x, y = values[lhs % len(values)], values[rhs % len(values)]
            if op % 5 == 0:
                results.append(TOTALS[op % len(TOTALS)](x))
                continue
            values.append(OPS[op % len(OPS)](x, y, row, column))
            if kept % 5 == 0:
                results.append(values[-1])
        return (*results, values[-1])

    return run


def _inputs(seed: int, kind: Any, *, has_special: bool) -> list[Any]:
    rng = np.random.default_rng(seed)
    shape = SHAPES[seed % len(SHAPES)]
    values = rng.standard_normal((3, *shape)).astype(kind)
    if has_special:
        for special in (np.nan, np.inf, -np.inf, 0.0):
            values[rng.random(values.shape) < 0.03] = special
    row = rng.standard_normal(shape[-1:]).astype(kind)
    column = rng.standard_normal((*shape[:-1], 1)).astype(kind)
    return [tt.from_numpy(one) for one in (*values, row, column)]


def _native_steps(function: Any) -> list[str]:
    (plan,) = compiler.plans(function)
    return [step.title for step in plan.steps if step.title.startswith("native group")]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("seed", range(14))
def test_a_random_program_gives_what_numpy_gives(seed: int) -> None:
    kind = np.float64 if seed % 3 == 0 else np.float32
    inputs = _inputs(seed, kind, has_special=seed % 2 == 1)
    planned, native = tt.compile(_program(seed)), tt.compile(_program(seed), backend="numba")
    tolerance = 1e-5 if kind is np.float32 else 1e-12

    for _ in range(2):
        for expected, found in zip(planned(*inputs), native(*inputs), strict=True):
            wanted = expected.numpy()
            size = np.abs(wanted[np.isfinite(wanted)]).max(initial=1.0)
            np.testing.assert_allclose(found.numpy(), wanted, rtol=tolerance, atol=tolerance * size)


def test_another_batch_size_runs_the_code_that_is_there() -> None:
    def run(x: Any, row: Any) -> Any:
        return ((x + row).tanh() * 0.3).softmax(axis=-1)

    row = tt.from_numpy(np.ones(20, np.float32))
    native = tt.compile(run, backend="numba")
    native(tt.from_numpy(np.ones((30, 20), np.float32)), row)
    known = len(cache.loaded())

    found = native(tt.from_numpy(np.ones((50, 20), np.float32)), row)

    assert found.shape == (50, 20)
    assert len(cache.loaded()) == known


def test_a_plan_says_what_runs_natively() -> None:
    def run(x: Any) -> Any:
        return (x * 2 + 1).exp()

    native = tt.compile(run, backend="numba")
    native(tt.from_numpy(np.ones((8, 4), np.float32)))
    (plan,) = compiler.plans(native)

    assert "native group of 3: multiply, add, exp" in plan.explain()
    assert "native group of 3" in plan.tree()


def test_basic_operations_are_rounded_as_numpy_rounds_them() -> None:
    def run(x: Any, y: Any) -> Any:
        z = x
        for _ in range(20):
            z = (z * y + x) / (x * x + 1.5) - y
        return z.abs().sqrt()

    x = tt.from_numpy(np.random.default_rng(0).standard_normal((40, 30)).astype(np.float32))
    y = tt.from_numpy(np.random.default_rng(1).standard_normal((40, 30)).astype(np.float32))

    found = tt.compile(run, backend="numba")(x, y)

    np.testing.assert_array_equal(found.numpy(), run(x, y).numpy())


@pytest.mark.parametrize("kind", [np.int8, np.int32, np.int64, np.uint8])
def test_integers_wrap_around_as_numpys_do(kind: Any) -> None:
    def run(x: Any) -> Any:
        squares = x * x
        return abs(squares), squares >= 0, np.maximum(x + 1, x), (x - 3 < x) & (x * 4 > x)

    limits = np.iinfo(kind)
    rng = np.random.default_rng(0)
    x = rng.integers(limits.min, limits.max, (40, 30), kind, endpoint=True)
    x[0, :2] = limits.min, limits.max
    native = tt.compile(run, backend="numba")

    for found, expected in zip(native(x), run(x), strict=True):
        np.testing.assert_array_equal(found, expected)
    assert _native_steps(native)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_product_is_not_infinite_on_its_way_where_numpys_is_none() -> None:
    def run(x: Any) -> Any:
        return (x * 1e30).prod(axis=0), (x + x).prod()

    x = np.full((4000, 5), 1e5)
    x[0] = 0.0

    for found, expected in zip(tt.compile(run, backend="numba")(x), run(x), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_inputs_may_lie_in_memory_in_any_way() -> None:
    def run(x: Any, y: Any) -> Any:
        return (x * y + 1.5).tanh()

    x = np.random.default_rng(0).standard_normal((12, 8)).astype(np.float32)
    still = x.copy()
    still.flags.writeable = False
    native = tt.compile(run, backend="numba")

    for y in (x, np.asfortranarray(x), x[::-1], np.repeat(x, 2, axis=1)[:, ::2], still):
        found = native(tt.from_numpy(x), tt.from_numpy(y)).numpy()

        np.testing.assert_allclose(found, np.tanh(x * y + 1.5), rtol=1e-6)


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
