"""Operands that are repeated along some axes, and values that are written over others."""

from __future__ import annotations

import types
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import compiler
from tapetensor.native import cache, executor

SHAPE = (3, 2, 5, 7)


def _normal(seed: int, shape: tuple[int, ...]) -> Any:
    values = np.random.default_rng(seed).standard_normal(shape)
    return tt.from_numpy(values.astype(np.float32))


def _agree(run: Any, *inputs: Any, count: int = 1) -> None:
    """Check that both executors agree, and that one ran so many native groups at least."""
    native = tt.compile(run, backend="numba")
    for expected, found in zip(tt.compile(run)(*inputs), native(*inputs), strict=True):
        np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-5, atol=1e-5)
    titles = [step.title for step in compiler.plans(native)[0].steps]
    assert sum(title.startswith("native group") for title in titles) >= count, titles


@pytest.mark.parametrize(
    "shape",
    [
        (),
        (7,),
        (1,),
        (5, 7),
        (5, 1),
        (2, 5, 7),
        (2, 1, 1),
        (3, 1, 1, 7),
        (3, 2, 1, 1),
        (3, 1, 1, 1),
    ],
)
def test_an_operand_may_be_repeated_along_any_axes(shape: tuple[int, ...]) -> None:
    def run(x: Any, other: Any) -> Any:
        shifted = x * other + other
        exponentials = (shifted - shifted.max(axis=-1, keepdims=True)).exp()
        return shifted * 2, exponentials / exponentials.sum(axis=-1, keepdims=True)

    # Numpy runs what is repeated along axes on both sides of its own.
    _agree(run, _normal(0, SHAPE), _normal(1, shape), count=int(shape != (2, 1, 1)))


@pytest.mark.parametrize("axis", [0, -1, (0, 1), (0, 1, 2), (1, 2, 3), (0, 1, 2, 3)])
@pytest.mark.parametrize("name", ["sum", "max", "min", "mean"])
def test_a_group_may_end_in_totals_over_any_axes(name: str, axis: Any) -> None:
    def run(x: Any) -> Any:
        y = (x * 1.5 + 1).tanh()
        return getattr(y, name)(axis=axis), y * y

    _agree(run, _normal(0, SHAPE), count=0)


def test_what_is_written_over_is_read_before() -> None:
    def run(x: Any, w: Any) -> Any:
        h = x @ w
        total = h.square().sum(axis=-1, keepdims=True)
        scaled = h / (total + 1)
        # It may lie where h does, of which the quotient needs all of a row, and the sum of it.
        return (h + 1) @ w, scaled @ w, h.max(axis=-1)

    _agree(run, _normal(0, (40, 16)), _normal(1, (16, 16)))


def test_rows_of_several_lengths_may_be_in_one_group() -> None:
    def run(x: Any, y: Any) -> Any:
        return (x * 2 + 1).tanh(), (y * 3).exp() + 1, (x * x).sum(axis=-1)

    _agree(run, _normal(0, (20, 8)), _normal(1, (20, 3)))


@pytest.mark.parametrize(
    ("cut", "count"),
    [
        ((slice(None), slice(None, None, 2), slice(1, None, 2)), 1),
        ((slice(1, None), slice(None), slice(None, 3)), 1),
        # These stay numpy's: elements of a row lie apart, and rows lie backwards.
        ((slice(None), slice(None), slice(None), slice(None, None, 2)), 0),
        ((slice(None, None, -1), slice(None), slice(None, 3)), 0),
    ],
)
def test_rows_that_lie_apart_are_read_where_they_lie(cut: tuple[slice, ...], count: int) -> None:
    def run(x: Any, w: Any, row: Any) -> Any:
        part = (x @ w)[cut]
        shifted = (part * row[cut[3:]] + part.square()).tanh()
        return shifted @ shifted.permute_dims((0, 1, 3, 2)), shifted.sum(axis=0)

    inputs = _normal(0, (4, 6, 6, 8)), _normal(1, (8, 8)), _normal(2, (8,))
    _agree(run, *inputs, count=count)


def test_of_rows_that_lie_apart_a_number_each_may_be_all_that_is_left() -> None:
    def run(x: Any, w: Any) -> Any:
        h = x @ w
        return (h[:, 1:] * h[:, :-1]).sum(axis=-1)[..., None] @ w[:1], h.sum()

    _agree(run, _normal(0, (4, 6, 8)), _normal(1, (8, 8)))


@pytest.fixture
def loops(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The loops that have been loaded."""
    found: list[Any] = []

    def load(source: str, types: tuple[Any, ...]) -> Any:
        found.append(cache.load(source, types))
        return found[-1]

    monkeypatch.setattr(executor, "cache", types.SimpleNamespace(load=load))
    return found


def _check_c_order(loops: list[Any]) -> None:
    """Check that each is compiled once: LLVM vectorizes none over what may lie in any way."""
    signatures = [loop.signatures for loop in loops]
    assert signatures
    assert [len(one) for one in signatures] == [1] * len(loops)
    assert {one.layout for (only,) in signatures for one in only if hasattr(one, "layout")} == {"C"}


@pytest.mark.parametrize("is_kept", [False, True])
def test_a_loop_sees_parts_of_rows_in_c_order_and_is_compiled_once(
    is_kept: bool, loops: list[Any]
) -> None:
    def run(x: Any, w: Any, row: Any) -> Any:
        h = x @ w
        gates = ((h[:, :4] + row).tanh() * h[:, 4:]).exp()
        # What leaves the plan lies in memory of its own, which is known only when it runs.
        return (gates @ w[:4], h) if is_kept else (gates @ w[:4],)

    _agree(run, _normal(0, (6, 8)), _normal(1, (8, 8)), _normal(2, (4,)))

    _check_c_order(loops)


def test_the_cotangent_of_a_mean_is_one_number_of_a_loop(loops: list[Any]) -> None:
    def run(x: Any) -> Any:
        return x.trace().tanh().square().mean().backward()[x]

    _agree(run, _normal(0, (6, 8)))

    _check_c_order(loops)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_pooling_and_its_gradient_are_numpys() -> None:
    def run(x: Any, w: Any) -> Any:
        y = tt.max_pool2d((x.trace() @ w).relu(), 2)
        return y.detach(), y.square().sum().backward(wrt=x)[x]

    images = _normal(0, (5, 3, 6, 8)).numpy().copy()
    for place, special in enumerate([0.0, np.nan, np.inf, -np.inf]):
        images[place, :, 2:4] = special
    inputs = tt.from_numpy(images), _normal(1, (8, 8))

    native = tt.compile(run, backend="numba")

    for expected, found in zip(run(*inputs), native(*inputs), strict=True):
        np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-5, atol=1e-6)
    assert "maximum, maximum" in compiler.plans(native)[0].explain()


def test_a_reduction_alone_does_not_keep_what_comes_behind_from_a_group() -> None:
    def run(x: Any, other: Any, w: Any) -> Any:
        h = x @ w
        return h.max(axis=-1), (other * 2 + 1).exp() @ w, h

    _agree(run, _normal(0, (5, 6)), _normal(1, (9, 6)), _normal(2, (6, 8)))
