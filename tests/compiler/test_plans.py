"""Plans: what is computed once, together, in place or not at all, and how one explains itself."""

# Lambdas have no annotations.
# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import nn, optim
from tapetensor.compiler import plans
from tapetensor.compiler.emit import blocks
from tapetensor.errors import ArgumentValueError
from tapetensor.kernels.numerics import threads


def _titles(function: Any) -> list[str]:
    return [step.title for step in plans(function)[0].steps]


def _calls(function: Any, name: str) -> int:
    return sum(title == name for title in _titles(function))


def test_what_is_computed_twice_is_computed_once() -> None:
    run = tt.compile(lambda x: x.exp() * x.exp() + x.exp())
    run(tt.ones((3,)))

    assert _calls(run, "exp") == 1


def test_bounds_are_one_step() -> None:
    compiled = tt.compile(lambda x: x.clip(-1.0, 2.0))
    compiled(tt.ones((3,)))
    assert _titles(compiled) == ["allocate", "clip"]


def test_powers_are_those_that_numpy_computes_in_another_way() -> None:
    run = tt.compile(lambda x: (x**2.0, x**0.5, x**-1.0, x**1.0))
    x = np.array([0.25, 3.0])
    found = run(x)

    for one, expected in zip(found, (x**2.0, x**0.5, x**-1.0, x), strict=True):
        assert one.tolist() == expected.tolist()
    assert not _calls(run, "power")


def test_gradients_lie_in_the_memory_of_the_optimizer() -> None:
    rng, rows = np.random.default_rng(0), 128
    first, second = nn.Linear(800, 512, rng=rng), nn.Linear(512, 256, rng=rng)
    model = nn.Sequential(first, second)
    optimizer = optim.Sgd(model)

    def step(x: Any) -> None:
        hidden = first.forward(x.trace()).relu()
        optimizer.step(second.forward(hidden).square().sum().backward(wrt=model))

    compiled = tt.compile(step)
    compiled(tt.zeros((rows, 800)))

    # The hidden values and their cotangent, the output and its cotangent.
    assert plans(compiled)[0].arena_bytes < 4 * 2 * rows * (512 + 256) * 1.05


def test_gradients_that_nobody_reads_are_not_computed() -> None:
    weight = tt.ones((3, 3))

    def run(x: Any) -> Any:
        return (x.trace() @ weight).sum().backward()[weight]

    compiled = tt.compile(run)
    compiled(tt.ones((2, 3)))

    assert _calls(compiled, "matmul") == 1


def test_constants_are_folded() -> None:
    run = tt.compile(lambda x: np.ones_like(x) * 6.0 / 2.0 - x)
    x = np.arange(3.0)

    assert run(x).tolist() == [3.0, 2.0, 1.0]
    assert not any(title in ("multiply", "divide") for title in _titles(run))


def test_transposes_are_no_steps_of_their_own_where_the_memory_is_planned() -> None:
    run = tt.compile(lambda x: (x.exp().transpose() @ x).sum())
    x: Any = tt.from_numpy(np.ones((3, 2), np.float32))

    assert run(x).item() == pytest.approx(4 * 3 * np.e)
    assert _calls(run, "transpose") == 0


def test_a_chain_of_small_steps_works_in_one_buffer() -> None:
    run = tt.compile(lambda x: ((x + 1.0).exp() * 2.0).log().sin().sum())
    run(tt.ones((1000,)))

    assert plans(run)[0].arena_bytes <= 4032 + 64


def test_signs_are_not_written_over_what_they_are_of() -> None:
    compiled = tt.compile(lambda x: np.sign(x * 2.0) * 0.5)
    compiled(np.linspace(-1, 1, 1_000))
    # numpy would take twelve times as long for them.
    assert plans(compiled)[0].arena_bytes >= 2 * 8_000


def test_a_sum_over_large_arrays_keeps_no_array_of_that_size() -> None:
    x = tt.arange(1 << 22).astype(np.float32) / (1 << 22)

    def run(x: Any) -> Any:
        loss = (x.trace().square().exp() * 2.0 + 1.0).mean()
        value, tape = loss.split_tape()
        return value, value.put_tape(tape).backward(wrt=x)[x]

    compiled = tt.compile(run)
    value, gradient = compiled(x)
    expected, expected_gradient = run(x)

    np.testing.assert_allclose(value.numpy(), expected.numpy(), rtol=1e-6)
    np.testing.assert_allclose(gradient.numpy(), expected_gradient.numpy(), rtol=1e-6)
    # Each of up to four threads has scratch of its own.
    assert plans(compiled)[0].arena_bytes < x.numpy().nbytes / 3
    assert any(title.startswith("group of") for title in _titles(compiled))


@pytest.mark.parametrize("shape", [(700, 401), (65537, 3), (3, 70000), (5, 300, 211)])
def test_blocks_of_rows_give_what_the_whole_gives(shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    x, weight, bias = rng.standard_normal(shape), rng.standard_normal(shape[-1]), np.array(0.5)

    def run(x: Any, weight: Any, bias: Any) -> Any:
        centred = x - np.add.reduce(x, axis=-1, keepdims=True) / x.shape[-1]
        weighted = np.exp(centred * weight + bias) / 3.0
        softmax = weighted / np.add.reduce(weighted, axis=-1, keepdims=True)
        per_column = np.add.reduce(softmax * centred, axis=0)
        total = np.add.reduce(softmax, axis=None)
        return softmax.T, per_column * 2.0, total + 1.0, np.where(centred > 0, softmax, weighted)

    expected = run(x, weight, bias)
    compiled = tt.compile(run)

    for _ in range(2):
        for found, wanted in zip(compiled(x, weight, bias), expected, strict=True):
            # Sums that nearly cancel are right to the last digit of what was summed.
            np.testing.assert_allclose(found, wanted, rtol=1e-11, atol=1e-17)


@pytest.mark.parametrize("cores", [1, 2])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int16, np.bool_])
@pytest.mark.parametrize(
    "ufunc",
    [np.add, np.multiply, np.maximum, np.minimum, np.logical_and, np.logical_or],
)
def test_totals_of_all_rows_are_folded_into_the_group_that_computes_the_rows(
    ufunc: np.ufunc, dtype: Any, cores: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "BLOCK", 20)
    monkeypatch.setattr(blocks, "_SMALLEST", 1)
    monkeypatch.setattr(blocks, "_SMALLEST_FOR_THREADS", 1)
    monkeypatch.setattr(threads, "count", lambda: cores)
    bound = 40.0 if dtype is np.int16 else 1.3
    x = np.random.default_rng(0).uniform(-bound, bound, (33, 4))
    x[:, 1], x[:, 2] = 1.0, -1.0
    if dtype in (np.float32, np.float64):
        x[20, 3], x[0, 2] = np.nan, -np.inf
    x = x.astype(dtype)

    def run(x: Any) -> Any:
        y = np.maximum(x, np.minimum(x, x))
        by_column = ufunc.reduce(y, axis=0)
        return by_column, ufunc.reduce(y, axis=(0, 1), keepdims=True), ufunc.reduce(y[:, :3], 1)

    compiled = tt.compile(run)
    for rows in (x, x[::-1]):
        for found, expected in zip(compiled(rows), run(rows), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-6, strict=True)
    groups = "".join([title for title in _titles(compiled) if title.startswith("group of")])
    assert groups.count(f"{ufunc.__name__}.reduce") >= 2


@pytest.mark.parametrize(
    "shape", [(1 << 19,), (512, 1024), (300000,), (64, 128, 64), (999, 801), (300001,)]
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_totals_of_large_arrays_are_numpys_to_rounding_and_have_the_same_bits_on_any_cores(
    shape: tuple[int, ...], dtype: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(x: Any) -> Any:
        y = np.tanh(x) + x
        norm = np.sqrt(np.add.reduce(y * y, axis=None))
        return y.mean(), y.sum(axis=0), np.var(y), y / norm, y.sum(dtype=np.float64), (x * x).sum()

    compiled = [tt.compile(run) for _ in range(2)]
    x = np.random.default_rng(0).standard_normal(shape).astype(dtype)
    rounding = {np.float16: 1e-2, np.float32: 1e-5, np.float64: 1e-12}[dtype]
    for array in (x, x[::-1], x.T):
        results = []
        for cores, one in enumerate(compiled, 1):
            monkeypatch.setattr(threads, "count", lambda cores=cores: cores)
            with np.errstate(over="ignore"):
                results.append(one(array))
        with np.errstate(over="ignore"):
            expected = run(array)
        for found, again, wanted in zip(*results, expected, strict=True):
            assert (found.dtype, found.tobytes()) == (wanted.dtype, again.tobytes())
            # Sums that nearly cancel are right to the last digits of what was summed.
            np.testing.assert_allclose(found, wanted, rtol=rounding, atol=rounding * 1e3)
    groups = "".join([title for title in _titles(compiled[0]) if title.startswith("group of")])
    assert "add.reduce" in groups


def test_a_plan_explains_its_steps() -> None:
    run = tt.compile(lambda x: (x @ x).exp().sum())
    run(tt.from_numpy(np.ones((4, 4), np.float32)))

    text = plans(run)[0].explain()

    assert re.match(r"\d+ steps, [\d,]+ bytes of planned memory, planned in [\d.]+ ms", text)
    assert re.search(r"%\d+ +\(4, 4\) +float32 +64 +planned +exp", text)


def test_a_plan_explains_whose_memory_a_result_lies_in() -> None:
    layer = nn.Linear(6, 4, rng=np.random.default_rng(0))
    optimizer = optim.Sgd(layer)

    def step(x: Any) -> Any:
        loss = layer.forward(x.trace()).square().sum()
        value = loss.detach()
        optimizer.step(loss.backward(wrt=layer))
        return value

    compiled = tt.compile(step)
    compiled(tt.ones((5, 6)))

    steps = plans(compiled)[0].steps
    memory = {(one.title, one.node.shape): one.memory for one in steps}
    assert memory["matmul", (5, 4)] == "planned"
    assert memory["matmul", (4, 6)] == memory["update", ()] == "optimizer"
    assert memory["transpose", (6, 4)] == "view"
    assert {one.memory for one in steps if one.title == "allocate"} == {"fresh"}


def test_a_plan_tells_the_time_of_its_steps() -> None:
    run = tt.compile(lambda x: (x @ x).exp().sum())
    x = tt.ones((4, 4))
    run(x)

    text = plans(run)[0].profile(x, repeats=2)

    assert re.search(r"us +[\d.]+% +%\d+ +\(4, 4\) +exp", text)
    with pytest.raises(ArgumentValueError, match="calls of another kind"):
        plans(run)[0].profile(tt.ones((5, 5)))


def test_a_function_that_returns_a_view_does_not_see_later_steps() -> None:
    def run(x: Any) -> Any:
        diagonal = np.diagonal(x * 2.0)
        lower, upper = np.split(x * 3.0, 2)
        return np.exp(x + 1.0).sum() * 0.0 + diagonal, np.exp(x * 5.0) * 0.0 + lower[0] + upper[0]

    x = np.arange(4.0).reshape(2, 2)
    for found, wanted in zip(tt.compile(run)(x), run(x), strict=True):
        np.testing.assert_allclose(found, wanted)


def test_the_memory_of_a_value_that_nobody_reads_any_more_is_used_again() -> None:
    def chain(x: Any) -> Any:
        for _ in range(20):
            x = x @ x
        return x.sum()

    compiled: Any = tt.compile(chain)
    compiled(tt.zeros((16, 16)))
    # No product may be written over what it reads, so there are two of them at a time.
    assert plans(compiled)[0].arena_bytes <= 2 * 16 * 16 * 4 + 64


def test_what_cannot_raise_and_nobody_reads_is_not_run() -> None:
    def run(x: Any) -> Any:
        np.concatenate([x, x])
        return x + 1.0

    compiled: Any = tt.compile(run)
    compiled(np.ones(3))
    assert "concatenate" not in plans(compiled)[0].explain()


def test_a_parameter_that_was_replaced_is_no_parameter_of_the_optimizer() -> None:
    model = nn.Linear(2, 1, rng=np.random.default_rng(0))
    optimizer = optim.Sgd(model, lr=0.1)

    def step(x: Any) -> None:
        optimizer.step(model.forward(x.trace()).sum().backward(wrt=model))

    compiled = tt.compile(step)
    compiled(tt.ones((3, 2)))
    model.weight = tt.ones((1, 2))
    before = model.weight.numpy().copy(), model.bias.numpy().copy()
    for function in (step, compiled):
        with pytest.raises(tt.TapeTensorError):
            function(tt.ones((3, 2)))
    np.testing.assert_array_equal(model.weight.numpy(), before[0])
    np.testing.assert_array_equal(model.bias.numpy(), before[1])


def test_an_index_that_is_known_is_not_read_unless_somebody_reads_the_result() -> None:
    def run(x: Any, i: Any) -> Any:
        x[[0, 2]]
        x[i]
        return x + 1.0

    compiled: Any = tt.compile(run)
    compiled(np.ones(3), np.array([0, 1]))
    assert plans(compiled)[0].explain().count("read_index") == 1
