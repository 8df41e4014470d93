"""Attention by tiles is attention over whole scores, without an array of their size."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor.kernels.attention import scaled_dot_product_attention as kernel
from tapetensor.kernels.numerics import attention_tiles, threads
from tapetensor.machine import openblas
from tapetensor.testing import check_grad

TOLERANCE: dict[Any, float] = {np.float32: 2e-5, np.float64: 1e-12}
# Of heads, queries and keys, each no multiple of the sizes below.
SCORES = (2, 3, 8, 7)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a few queries and keys be many, in tiles of three queries, two heads at a time."""
    monkeypatch.setattr(attention_tiles, "_FEWEST", 1)
    monkeypatch.setattr(attention_tiles, "_ROWS", 3)
    monkeypatch.setattr(attention_tiles, "_ELEMENTS", 2 * 3 * SCORES[-1])


def _operands(rng: np.random.Generator, dtype: Any, scores: tuple[int, ...] = SCORES) -> list[Any]:
    *leading, queries, keys = scores
    shapes = (queries, 5), (keys, 5), (keys, 4)
    return [np.asarray(rng.standard_normal((*leading, *shape)), dtype) for shape in shapes]


def _gradients(monkeypatch: pytest.MonkeyPatch, fewest: int, operands: Any, *others: Any) -> Any:
    """Return the output, and the cotangents of all operands for some cotangent of it."""
    monkeypatch.setattr(attention_tiles, "_FEWEST", fewest)
    output, pullbacks = kernel(*operands, *others)
    g = np.asarray(np.random.default_rng(5).standard_normal(output.shape), output.dtype)
    return [output, *[pullback(g) for pullback in pullbacks if pullback is not None]]


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("bias", [None, (8, 7), (2, 3, 8, 7), (3, 1, 1), (1, 7), (2, 1, 8, 1)])
@pytest.mark.parametrize("mask", [None, (8, 7), (2, 3, 8, 7), (2, 1, 1, 7)])
def test_tiles_give_what_whole_scores_give(
    monkeypatch: pytest.MonkeyPatch,
    rng: np.random.Generator,
    dtype: Any,
    causal: bool,
    bias: tuple[int, ...] | None,
    mask: tuple[int, ...] | None,
) -> None:
    operands = _operands(rng, dtype)
    if bias is not None:
        operands.append(rng.standard_normal(bias).astype(dtype))
    seen = None if mask is None else rng.random(mask) < 0.6

    found, wanted = [
        _gradients(monkeypatch, fewest, operands, seen, causal, 0.7) for fewest in (1, 100)
    ]

    for one, other in zip(found, wanted, strict=True):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        np.testing.assert_allclose(one, other, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("scores", [(8, 7), (7, 8), (3, 5, 9), (1, 1), (4, 3, 3)], ids=str)
def test_any_number_of_leading_axes_goes_by_tiles(
    monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator, scores: tuple[int, ...]
) -> None:
    operands = _operands(rng, np.float64, scores)
    found, wanted = [
        _gradients(monkeypatch, fewest, operands, None, True, 1.0) for fewest in (1, 100)
    ]
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


@pytest.mark.usefixtures("small")
def test_operands_may_lie_in_any_order(
    monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    operands = _operands(rng, np.float64)
    turned = [np.asfortranarray(one) for one in operands]
    repeated = [np.broadcast_to(one[..., :1], one.shape) for one in operands]
    for given in (turned, repeated):
        found, wanted = [
            _gradients(monkeypatch, fewest, given, None, False, 1.0) for fewest in (1, 100)
        ]
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


@pytest.mark.usefixtures("small")
def test_gradients_by_tiles_are_those_of_finite_differences(rng: np.random.Generator) -> None:
    tensors = [tt.from_numpy(one) for one in _operands(rng, np.float64)]
    bias = tt.from_numpy(rng.standard_normal((3, 8, 7)))
    check_grad(
        lambda q, k, v, b: tt.scaled_dot_product_attention(q, k, v, bias=b, causal=True),
        *tensors,
        bias,
        rng=rng,
    )


@pytest.mark.usefixtures("small")
def test_one_gradient_alone_is_that_among_all(rng: np.random.Generator) -> None:
    operands = [tt.from_numpy(one) for one in _operands(rng, np.float64)]

    def attended() -> Any:
        traced: list[Any] = [one.trace() for one in operands]
        return tt.scaled_dot_product_attention(*traced, causal=True).square().sum()

    every = attended().backward()
    for one in operands:
        np.testing.assert_array_equal(attended().backward(wrt=one)[one].numpy(), every[one].numpy())


def test_derivatives_of_derivatives_are_those_of_whole_scores(
    monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    query, key, value = [tt.from_numpy(one) for one in _operands(rng, np.float64)]

    def curved(fewest: int) -> Any:
        monkeypatch.setattr(attention_tiles, "_FEWEST", fewest)

        def loss(q: Any) -> Any:
            return tt.scaled_dot_product_attention(q, key, value, causal=True).square().sum()

        return tt.grad(lambda q: tt.grad(loss, q).square().sum(), query).numpy()

    np.testing.assert_allclose(curved(1), curved(100), rtol=1e-10, atol=1e-12)


@pytest.mark.usefixtures("small")
def test_a_compiled_step_goes_by_tiles_too(
    monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    def step(query: Any, key: Any, value: Any, mask: Any) -> Any:
        traced: list[Any] = [one.trace() for one in (query, key, value)]
        output = tt.scaled_dot_product_attention(*traced, mask=mask, causal=True)
        grads = output.square().sum().backward()
        return grads[query], grads[key], grads[value]

    def given() -> list[Any]:
        tensors = [tt.from_numpy(one) for one in _operands(rng, np.float64)]
        return [*tensors, tt.from_numpy(rng.random((1, 3, 1, 7)) < 0.6)]

    compiled: Any = tt.compile(step)
    for operands in (given(), given()):
        for one, other in zip(compiled(*operands), step(*operands), strict=True):
            np.testing.assert_array_equal(one.numpy(), other.numpy())

    def refuse(*_: object) -> None:
        raise AssertionError("a tile")

    monkeypatch.setattr(attention_tiles, "_scores", refuse)
    with pytest.raises(AssertionError, match="a tile"):
        compiled(*given())


def test_no_array_has_the_size_of_all_scores() -> None:
    length = 1024
    rng = np.random.default_rng(0)
    query, key, value = [tt.normal((length, 8), rng=rng) for _ in range(3)]
    bound = length * length * 4
    tracemalloc.start()
    try:
        output = tt.scaled_dot_product_attention(query.trace(), key.trace(), value.trace())
        output.square().sum().backward()
        assert tracemalloc.get_traced_memory()[1] < bound
    finally:
        tracemalloc.stop()


@pytest.mark.usefixtures("small")
def test_tiles_on_several_threads_give_what_one_gives(
    monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    operands = _operands(rng, np.float32)
    runs: list[int] = []
    run_together = threads.run_together

    def counted(*calls: Any) -> None:
        runs.append(len(calls))
        run_together(*calls)

    monkeypatch.setattr(threads, "run_together", counted)
    monkeypatch.setattr(threads, "_cores", lambda: 3)
    found = []
    for count in (1, 3):
        monkeypatch.setattr(openblas, "threads", lambda count=count: count)
        found.append(_gradients(monkeypatch, 1, operands, None, True, 1.0))
    assert runs == [3, 3]
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)
