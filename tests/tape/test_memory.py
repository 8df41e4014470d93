"""Long histories and long runs: no recursion, and no growth, by counts of steps and bytes."""

from __future__ import annotations

import gc
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import nn
from tapetensor.tape.history import gathered
from tapetensor.tensor.apply import apply

STATM = Path("/proc/self/statm")

# Fresh inputs in every step, so that a store or a registry that keeps what it has seen shows. The
# bound, 375 kB in 3,000 steps, is less than one forgotten tensor of any size per step.
PRELUDE = """
import numpy as np
import tapetensor as tt

rng = np.random.default_rng(0)
hidden = tt.normal((16, 32), rng=rng, std=0.2)
out = tt.normal((32, 1), rng=rng, std=0.2)
batches = [rng.standard_normal((64, 16)).astype(np.float32) for _ in range(8)]


def loss_of(step, grads=None):
    x = tt.from_numpy(batches[step % 8], (64, 16))
    y = x.sum(axis=-1, keepdims=True)
    error = (x.trace(grads) @ hidden).tanh() @ out - y
    return error.square().mean()


def resident_kilobytes():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * 4
"""

STEPS = {
    "rebinding the parameters": """
def train(step):
    grads = loss_of(step).backward(wrt=[hidden, out])
    for w in (hidden, out):
        w.array = w.array - np.float32(0.01) * grads[w].numpy()
    return grads
""",
    "carried gradients with declared leafs": """
carried = tt.Gradients()
carried.retain_leafs([hidden, out])


def train(step):
    global carried
    carried = loss_of(step, carried).backward()
    if step % 4 == 3:
        carried.clip_by_global_norm(1.0)
        for w in (hidden, out):
            w.array = w.array - np.float32(0.01) * carried[w].numpy()
        carried.zero()
    return carried
""",
}

LOOP = """
first_loss = loss_of(0).item()
sizes = {len(train(step)) for step in range(1000)}
warm = resident_kilobytes()
sizes |= {len(train(step)) for step in range(1000, 4000)}
grown = resident_kilobytes() - warm
last_loss = loss_of(0).item()
assert len(sizes) == 1, f"the store grew from {min(sizes)} to {max(sizes)}"
assert last_loss < 0.5 * first_loss, f"the loss went from {first_loss} to {last_loss}"
assert grown < 375, f"the process grew by {grown} kB"
"""


@pytest.mark.skipif(not STATM.exists(), reason="resident memory is read from /proc")
@pytest.mark.parametrize("way", STEPS)
def test_four_thousand_training_steps_grow_neither_the_store_nor_the_process(way: str) -> None:
    run = subprocess.run(
        [sys.executable, "-c", PRELUDE + STEPS[way] + LOOP],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert run.returncode == 0, run.stderr


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
