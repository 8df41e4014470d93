"""Long histories: no recursion, and no growth that is not linear; by counts, not by time."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import nn
from tapetensor.tape.history import gathered
from tapetensor.tensor.apply import apply


@pytest.fixture
def without_garbage_collection() -> Iterator[None]:
    """Let reference counts alone free everything, and faster."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("without_garbage_collection")
def test_a_long_chain_of_ops_runs_goes_back_and_is_freed_without_recursion() -> None:
    def kernel(x: Any) -> Any:
        return x, (pullback,)

    def pullback(g: Any) -> Any:
        return g

    leaf = tt.full((), 1.0)
    for goes_back in (True, False):
        y: Any = leaf.trace()
        for _ in range(200_000):
            y = apply(kernel, (y,))
        if goes_back:
            assert y.backward()[leaf].item() == 1.0
        del y


@pytest.mark.usefixtures("without_garbage_collection")
def test_a_chain_that_forks_and_meets_again_is_freed_without_recursion() -> None:
    y: Any = tt.full((), 1.0, np.float64).trace()
    for _ in range(50_000):
        y = y * 0.5 + y * 0.5
    assert y.backward(retain=True).global_norm() == 1.0
    del y


def steps_of(loss: Any) -> int:
    return len(gathered(loss.history)[0])


def memory_of(run: Callable[[], Any]) -> int:
    """Return how much more memory there is while what `run` returns is alive."""
    gc.collect()
    tracemalloc.start()
    try:
        result = run()
        gc.collect()
        size, _ = tracemalloc.get_traced_memory()
        del result
    finally:
        tracemalloc.stop()
    return size


def recurrence(length: int) -> Any:
    """Run a recurrence by hand over slices of plain data."""
    rng = np.random.default_rng(0)
    inner, outer = nn.Linear(2, 2, rng=rng), nn.Linear(2, 2, rng=rng)
    x = tt.from_numpy(rng.standard_normal((1, length, 2)).astype(np.float32))
    h: Any = tt.zeros((1, 2))
    for t in range(length):
        h = (inner.forward(x[:, t].trace()) + outer.forward(h)).tanh()
    return h.sum()


def handles(length: int) -> Any:
    y: Any = tt.from_numpy([1.0]).trace()
    for _ in range(length):
        y = y.with_empty_tape() * 0.5 + y * 0.5
    return y.sum()


def total(length: int) -> Any:
    x = tt.from_numpy([1.0])
    loss: Any = tt.zeros(())
    for step in range(length):
        loss = loss + (x.trace() * float(step)).sum()
    return loss


def several(length: int) -> Any:
    """Join values one after the other with a tape of its own each."""
    x = tt.from_numpy([1.0])
    joined: Any = x.trace(tt.Gradients())
    for _ in range(length):
        joined = joined * 0.5 + x.trace()
    return joined.sum()


@pytest.mark.parametrize("program", [recurrence, handles, total, several])
def test_a_loop_records_as_many_steps_as_it_runs_ops_and_memory_grows_with_them(
    program: Callable[[int], Any],
) -> None:
    counts = [steps_of(program(length)) for length in (100, 200, 400)]
    assert counts[2] - counts[1] == 2 * (counts[1] - counts[0])
    assert counts[2] <= 5 * 400 + 10

    program(10)
    sizes = [memory_of(partial(program, length)) for length in (200, 400, 800)]
    assert sizes[2] - sizes[1] < 2.5 * (sizes[1] - sizes[0])
    assert sizes[2] < 800 * 4_000
