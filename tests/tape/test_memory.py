"""Four thousand training steps, no clear call: neither a store nor the process grows."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

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
    "one store filled by insertion": """
total = tt.Gradients()


def train(step):
    grads = loss_of(step).backward()
    for w in (hidden, out):
        total.insert(w, grads[w])
    if step % 4 == 3:
        for w in (hidden, out):
            w.array = w.array - np.float32(0.01) * total.remove(w).numpy()
        total.insert(hidden, np.zeros((16, 32), np.float32))
        total.insert(out, np.zeros((32, 1), np.float32))
    return total
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
