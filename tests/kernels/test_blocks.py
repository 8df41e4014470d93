"""What goes by blocks, by tiles and on threads gives what it gives as a whole."""

from __future__ import annotations

import subprocess
import sys
import threading
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor.kernels import arithmetic, elementwise
from tapetensor.kernels.attention import scaled_dot_product_attention as kernel
from tapetensor.kernels.normalization import batch_norm, layer_norm
from tapetensor.kernels.numerics import attention_tiles as tiles
from tapetensor.kernels.numerics import normalized, threads
from tapetensor.kernels.numerics.threads import BLOCK, LARGE, in_blocks
from tapetensor.machine import openblas

# Neither a multiple of a block, with one element left, nor of a number of threads.
SIZE = LARGE + BLOCK + 1
# So short that every kernel takes its plain form.
PIECE = 4000
UNARY = [
    elementwise.exp,
    elementwise.gelu_tanh,
    elementwise.relu,
    elementwise.sigmoid,
    elementwise.silu,
    elementwise.square,
    elementwise.tanh,
    arithmetic.negative,
]
BINARY = [arithmetic.add, arithmetic.multiply]
TOLERANCE: dict[Any, float] = {np.float32: 2e-6, np.float64: 1e-14}


def in_pieces(kernel: Callable[..., Any], g: Any, *operands: Any) -> list[Any]:
    """Return output and cotangents, worked out piece by piece."""
    results = []
    for start in range(0, SIZE, PIECE):
        part = slice(start, start + PIECE)
        y, pullbacks = kernel(*[one[part] for one in operands])
        results.append([y, *[pullback(g[part]) for pullback in pullbacks]])
    return [np.concatenate(parts) for parts in zip(*results, strict=True)]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kernel", [*UNARY, *BINARY], ids=lambda kernel: kernel.__name__)
def test_a_large_array_gives_what_its_pieces_give(
    kernel: Callable[..., Any],
    dtype: Any,
    rng: np.random.Generator,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    count = 2 if kernel in BINARY else 1
    operands = [rng.normal(0, 2, SIZE).astype(dtype) for _ in range(count)]
    g = rng.normal(0, 1, SIZE).astype(dtype)
    before = [one.copy() for one in (g, *operands)]

    wanted = in_pieces(kernel, g, *operands)
    for count in (1, 3):
        monkeypatch.setattr(threads, "count", lambda count=count: count)
        y, pullbacks = kernel(*operands)
        found = [y, *[pullback(g) for pullback in pullbacks]]

        for one, expected in zip(found, wanted, strict=True):
            assert one.dtype == dtype
            np.testing.assert_allclose(one, expected, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])
    for one, untouched in zip((g, *operands), before, strict=True):
        np.testing.assert_array_equal(one, untouched)


@pytest.mark.parametrize("place", [0, SIZE - 1])
def test_the_error_state_of_the_caller_holds_in_every_thread(
    place: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threads, "count", lambda: 2)
    x = np.zeros(SIZE, np.float32)
    x[place] = 1000

    with np.errstate(over="raise"), pytest.raises(FloatingPointError, match="overflow"):
        in_blocks(np.exp, x)
    with np.errstate(over="ignore"):
        assert in_blocks(np.exp, x)[place] == np.inf


def test_all_parts_have_ended_when_one_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "_pools", [])
    monkeypatch.setattr(threads, "count", lambda: 3)
    ended, gate = [], threading.Event()

    def late() -> None:
        gate.wait(0.05)
        ended.append(True)

    with pytest.raises(ZeroDivisionError):
        threads.run_together((len, ()), (divmod, 1, 0), (late,))
    assert ended


def test_a_child_process_has_threads_of_its_own() -> None:
    program = f"""
import os
import numpy as np
from tapetensor.kernels.numerics import threads
threads.count = lambda: 2
x = np.zeros({SIZE})
threads.in_blocks(np.exp, x)
child = os.fork()
if not child:
    os._exit(int(threads.in_blocks(np.exp, x).sum() != {SIZE}))
print(os.waitpid(child, 0)[1])
"""
    if not hasattr(sys, "getwindowsversion"):
        command = [sys.executable, "-W", "ignore", "-c", program]
        output = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
        assert output.stdout.strip() == "0"


OF_SUMS: dict[Any, float] = {np.float32: 2e-5, np.float64: 1e-12}
# Of heads, queries and keys, each no multiple of the sizes below.
SCORES = (2, 3, 8, 7)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a few queries and keys be many, in tiles of three queries, two heads at a time."""
    monkeypatch.setattr(tiles, "_FEWEST", 1)
    monkeypatch.setattr(tiles, "_ROWS", 3)
    monkeypatch.setattr(tiles, "_ELEMENTS", 2 * 3 * SCORES[-1])


def _operands(rng: np.random.Generator, dtype: Any, scores: tuple[int, ...] = SCORES) -> list[Any]:
    *leading, queries, keys = scores
    shapes = (queries, 5), (keys, 5), (keys, 4)
    return [np.asarray(rng.standard_normal((*leading, *shape)), dtype) for shape in shapes]


def _gradients(monkeypatch: pytest.MonkeyPatch, fewest: int, operands: Any, *others: Any) -> Any:
    """Return the output, and the cotangents of all operands for some cotangent of it."""
    monkeypatch.setattr(tiles, "_FEWEST", fewest)
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
        np.testing.assert_allclose(one, other, rtol=OF_SUMS[dtype], atol=OF_SUMS[dtype])


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


def test_derivatives_of_derivatives_are_those_of_whole_scores(
    monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    query, key, value = [tt.from_numpy(one) for one in _operands(rng, np.float64)]

    def curved(fewest: int) -> Any:
        monkeypatch.setattr(tiles, "_FEWEST", fewest)

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

    monkeypatch.setattr(tiles, "_scores", refuse)
    with pytest.raises(AssertionError, match="a tile"):
        compiled(*given())


# An op, the shapes of its operands, and what its peak stays below: scores, which are not there all
# at once, and seven images, of which the columns have nine.
_PEAKS: list[tuple[Any, list[tuple[int, ...]], int]] = [
    (tt.scaled_dot_product_attention, [(1024, 8)] * 3, 1024 * 1024 * 4),
    (tt.conv2d, [(32, 16, 32, 32), (16, 16, 3, 3)], 7 * 32 * 16 * 32 * 32 * 4),
]


@pytest.mark.parametrize(("op", "shapes", "bound"), _PEAKS)
def test_no_array_has_the_size_of_all_scores_or_columns(op: Any, shapes: Any, bound: int) -> None:
    rng = np.random.default_rng(0)
    operands: list[Any] = [tt.normal(shape, rng=rng).trace() for shape in shapes]
    tracemalloc.start()
    try:
        op(*operands).square().sum().backward()
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


def _check_blocks(monkeypatch: pytest.MonkeyPatch, kernel: Any, x: Any, *args: Any) -> None:
    """Check that a kernel gives the same in blocks and not, and each cotangent by itself."""
    # A few rows, or channels, to a block, and a rest.
    monkeypatch.setattr(normalized, "_BLOCK_OF_ROWS", 60)
    monkeypatch.setattr(normalized, "_BLOCK_OF_CHANNELS", 60)
    before, dtype = x.copy(), x.dtype.type
    joint: Any = None
    outcomes = []
    for large in (1 << 40, 0):
        monkeypatch.setattr(normalized, "_LARGE", large)
        told: list[Any] = []
        observer = [lambda *both, told=told: told.extend(both)] * (kernel is batch_norm)
        y, joint = kernel(x, *args, *observer)
        g = np.random.default_rng(3).standard_normal(y.shape).astype(y.dtype)
        outcomes.append([y, *[pullback(g) for pullback in joint], *told])

    np.testing.assert_array_equal(x, before)
    wanted, found = outcomes
    assert found[0].strides == wanted[0].strides
    for one, other in zip(found, wanted, strict=True):
        tolerance = OF_SUMS[dtype]
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=10 * tolerance, strict=True)
    g = np.broadcast_to(dtype(1.5), x.shape)
    every = [pullback(g) for pullback in joint]
    for place, wanted_alone in enumerate(every):
        alone = joint.narrow(tuple([one == place for one in range(3)]))
        np.testing.assert_array_equal(alone[place](g), wanted_alone)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(29, 7), (2, 11, 40), (3, 200)], ids=str)
def test_rows_in_blocks_are_rows(
    monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator, shape: tuple[int, ...], dtype: Any
) -> None:
    x = (3 + rng.standard_normal(shape)).astype(dtype)
    weight, bias = rng.standard_normal((2, shape[-1])).astype(dtype)

    _check_blocks(monkeypatch, layer_norm, x, weight, bias, 1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(4, 7, 5), (4, 7, 5, 3), (1, 3, 20, 10)], ids=str)
@pytest.mark.parametrize("order", [(0, 1, 2, 3), (1, 2, 3, 0), (0, 2, 3, 1)], ids=str)
def test_channels_in_blocks_are_channels(
    monkeypatch: pytest.MonkeyPatch,
    rng: np.random.Generator,
    shape: tuple[int, ...],
    order: tuple[int, ...],
    dtype: Any,
) -> None:
    order = tuple([one for one in order if one < len(shape)])
    lying = [shape[one] for one in order]
    # The axes of `x` are those of its shape, and lie in that order.
    turned = (3 + rng.standard_normal(lying)).astype(dtype)
    x = turned.transpose(np.argsort(order))
    weight, bias = rng.standard_normal((2, shape[1])).astype(dtype)

    _check_blocks(monkeypatch, batch_norm, x, weight, bias, 1e-5)
