"""Large arrays, which go block by block and in threads, give what small ones give."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tapetensor.kernels import arithmetic, elementwise
from tapetensor.kernels.numerics import threads as workers
from tapetensor.kernels.numerics.threads import BLOCK, LARGE, in_blocks

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
    for threads in (1, 3):
        monkeypatch.setattr(workers, "count", lambda threads=threads: threads)
        y, pullbacks = kernel(*operands)
        found = [y, *[pullback(g) for pullback in pullbacks]]

        for one, expected in zip(found, wanted, strict=True):
            assert one.dtype == dtype
            np.testing.assert_allclose(one, expected, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])
    for one, untouched in zip((g, *operands), before, strict=True):
        np.testing.assert_array_equal(one, untouched)


@pytest.mark.parametrize("kernel", UNARY, ids=lambda kernel: kernel.__name__)
def test_the_cotangent_of_a_sum_which_repeats_a_number_passes(
    kernel: Callable[..., Any], rng: np.random.Generator
) -> None:
    x = rng.normal(0, 2, (SIZE // 3, 3))
    g = np.broadcast_to(np.float64(0.5), x.shape)
    _, (pullback,) = kernel(x)

    np.testing.assert_allclose(pullback(g), pullback(g.copy()), rtol=1e-15)


def test_the_logistic_function_of_a_large_array_has_its_limits() -> None:
    x = np.zeros(SIZE, np.float32)
    x[:4] = [-np.inf, -1e5, 1e5, np.inf]
    y, (pullback,) = elementwise.sigmoid(x)
    assert pullback is not None

    assert y[:5].tolist() == [0, 0, 1, 1, 0.5]
    assert pullback(np.ones_like(x))[:5].tolist() == [0, 0, 0, 0, 0.25]


def test_relu_of_a_long_array_lets_nan_through_and_nothing_at_zero() -> None:
    x = np.zeros(LARGE, np.float32)
    x[:4] = [-1, 0, 2, np.nan]
    y, (pullback,) = elementwise.relu(x)
    assert pullback is not None

    np.testing.assert_array_equal(y[:4], np.array([0, 0, 2, np.nan], np.float32))
    assert pullback(np.ones_like(x))[:4].tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize("place", [0, SIZE - 1])
def test_the_error_state_of_the_caller_holds_in_every_thread(
    place: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "count", lambda: 2)
    x = np.zeros(SIZE, np.float32)
    x[place] = 1000

    with np.errstate(over="raise"), pytest.raises(FloatingPointError, match="overflow"):
        in_blocks(np.exp, x)
    with np.errstate(over="ignore"):
        assert in_blocks(np.exp, x)[place] == np.inf


def test_all_parts_have_ended_when_one_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "_pools", [])
    monkeypatch.setattr(workers, "count", lambda: 3)
    ended, gate = [], threading.Event()

    def late() -> None:
        gate.wait(0.05)
        ended.append(True)

    with pytest.raises(ZeroDivisionError):
        workers.run_together((len, ()), (divmod, 1, 0), (late,))
    assert ended


def test_an_array_that_is_not_contiguous_goes_through_as_it_is(rng: np.random.Generator) -> None:
    x = rng.normal(0, 1, (SIZE, 2))[:, 0]

    np.testing.assert_array_equal(in_blocks(np.tanh, x), np.tanh(x))


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
