"""Runs in WebAssembly, started by tests/wasm/host.py: what is promised of a browser holds.

    python guest.py CHECKOUT FOLDER

CHECKOUT is read only, FOLDER can be written to.
"""

from __future__ import annotations

import importlib
import runpy
import sys
import time
import types
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import tapetensor as tt
from tapetensor import io, losses, nn, optim, training
from tapetensor.data import batches
from tapetensor.kernels.numerics.threads import run_together
from tapetensor.machine.doctor import examination
from tapetensor.testing import check_grad

CHECKOUT, FOLDER = map(Path, sys.argv[1:])


class _Bar:
    """What the example uses of a bar."""

    def __init__(self, steps: Iterable[int], **_: Any) -> None:
        self._steps = steps

    def __iter__(self) -> Iterator[int]:
        return iter(self._steps)

    def set_postfix_str(self, _: str) -> None:
        """Show nothing."""


def smoke() -> str:
    """Run what is run of an installed wheel."""
    runpy.run_path(str(CHECKOUT / "tests" / "smoke" / "smoke.py"), run_name="__main__")
    return "a model learns, and fit trains it"


def digits() -> str:
    """Train on the digits of scikit-learn, without a bar and a picture."""
    bar: Any = types.ModuleType("tqdm")
    bar.tqdm = _Bar
    sys.modules.setdefault("tqdm", bar)
    sys.path.insert(0, str(CHECKOUT / "examples"))
    _, _, (_, share) = importlib.import_module("digits").train(2, 0, compiled=True)
    assert share > 0.9, share
    return f"{share:.1%} of the digits after two epochs"


def ops() -> str:
    """Compare an op of each row of the table with numpy, and its gradient with differences."""
    sys.path.insert(0, str(CHECKOUT))
    from tests.ops.rows import is_float_array
    from tests.ops.samples import CASES

    first = {case.op.name: case for case in reversed(CASES)}
    rng = np.random.default_rng(0)
    for name, case in first.items():
        sample = case.sample
        operands = [
            tt.from_numpy(one.astype(np.float64) if is_float_array(one) else one)
            if isinstance(one, np.ndarray)
            else one
            for one in sample.operands
        ]
        found = case.op.call(*operands, **sample.options)
        expected = case.op.reference(*sample.operands, **sample.options)
        if isinstance(found, tt.Tensor):
            np.testing.assert_allclose(found.numpy(), expected, rtol=1e-9, atol=1e-12, err_msg=name)
        if case.op.is_differentiable and sample.float_positions == (0,):
            call, rest, options = case.op.call, operands[1:], sample.options
            check_grad(lambda x: call(x, *rest, **options), operands[0], rng=rng)  # noqa: B023
    return f"{len(first)} ops"


def files() -> str:
    """Save a model and load it, and go on with a training from its checkpoint."""
    rng = np.random.default_rng(0)
    model, other = (nn.Linear(3, 2, rng=rng) for _ in range(2))
    io.save(FOLDER / "model.npz", model)
    io.load(FOLDER / "model.npz", other)
    np.testing.assert_array_equal(model.weight.numpy(), other.weight.numpy())
    data = batches(tt.normal((64, 3), rng=rng), size=16, rng=rng)

    def loss_of(model: Any, x: Any) -> Any:
        return losses.mse(model.forward(x.trace()), x[:, :2])

    optimizer = optim.Adam(model)
    checkpoint, log = FOLDER / "run.npz", training.CsvLog(FOLDER / "log.csv")
    training.fit(model, optimizer, loss_of, data, epochs=2, checkpoint=checkpoint, log=[log])
    history = training.fit(
        model, optimizer, loss_of, data, epochs=3, checkpoint=checkpoint, resume=True
    )
    assert history["epoch"] == [1, 2, 3]
    return "a model, a checkpoint and a log"


def _trained(compiled: bool) -> tuple[list[float], float]:
    rng = np.random.default_rng(0)
    model = nn.Sequential(nn.Linear(16, 64, rng=rng), nn.ReLU(), nn.Linear(64, 2, rng=rng))
    optimizer = optim.Adam(model, lr=0.01)
    x: Any = tt.normal((64, 16), rng=rng)
    y: Any = tt.normal((64, 2), rng=rng)

    def step(x: Any, y: Any) -> Any:
        loss = losses.mse(model.forward(x.trace()), y)
        value = loss.detach()
        optimizer.step(loss.backward(wrt=model))
        return value

    run: Callable[..., Any] = tt.compile(step) if compiled else step
    curve = [run(x, y).item() for _ in range(10)]
    start = time.perf_counter()
    curve += [run(x, y).item() for _ in range(50)]
    return curve, (time.perf_counter() - start) / 50


def compiled() -> str:
    """Train by a compiled step, with the losses of the eager one."""
    (eager, eager_time), (replayed, replay_time) = _trained(False), _trained(True)
    np.testing.assert_allclose(eager, replayed, rtol=1e-4)
    return f"{1e3 * eager_time:.2f} ms a step, compiled {1e3 * replay_time:.2f} ms"


def alone() -> str:
    """Do without threads and processes: one after the other, and what the doctor can say."""
    done: list[int] = []
    run_together((done.append, 1), (done.append, 2))
    assert done == [1, 2]
    assert "GFLOP/s" in examination(seconds=0.05)
    large = tt.ones((1500, 1500))
    assert (large.trace() * 2.0).exp().sum().backward()[large].shape == (1500, 1500)
    try:
        tt.distributed.world()
    except tt.MissingDependencyError as error:
        return f"no threads and processes: {error}"
    raise AssertionError("there are ranks in WebAssembly")


if __name__ == "__main__":
    print(f"Python {sys.version.split()[0]} on {sys.platform}, numpy {np.__version__}")
    for part in (smoke, digits, ops, files, compiled, alone):
        start = time.perf_counter()
        print(f"{part.__name__:10}{part()} ({time.perf_counter() - start:.1f} s)", flush=True)
