"""Training with native groups follows training on numpy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from benchmarks.contenders.tapetensor import COMPUTES
from benchmarks.problems import WORKLOADS
from tapetensor import compiler, losses, nn, optim
from tapetensor.kernels.numerics import optimizers as plain
from tapetensor.native import kernels as native

OPTIMIZERS: list[Callable[[nn.Module], optim.Optimizer]] = [
    lambda model: optim.Sgd(model, lr=0.05),
    lambda model: optim.Sgd(model, lr=0.05, momentum=0.9, weight_decay=1e-3),
    lambda model: optim.Sgd(model, lr=0.05, momentum=0.9, nesterov=True),
    lambda model: optim.Adam(model, lr=0.01),
    lambda model: optim.AdamW(model, lr=0.01, weight_decay=0.1),
    lambda model: optim.RMSprop(model, lr=0.01, momentum=0.5, centered=True),
    lambda model: optim.RMSprop(model, lr=0.01, weight_decay=0.1),
    lambda model: optim.Adagrad(model, lr=0.05),
]


@pytest.mark.parametrize("workload", ["W1", "W2", "W3", "W4", "W6", "W7", "W8"])
def test_a_hundred_steps_of_a_workload_agree(workload: str) -> None:
    def step(backend: Any) -> Callable[[], Any]:
        problem = WORKLOADS[workload].problem(True)
        return tt.compile(COMPUTES[workload](problem), backend=backend)

    planned, fused = step("numpy"), step("numba")
    for _ in range(100):
        for expected, found in zip(planned(), fused(), strict=True):
            wanted = expected.numpy()
            size = 1e-5 * np.abs(wanted).max()
            np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-5, atol=size)


@pytest.mark.parametrize("make", OPTIMIZERS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_an_optimizer_takes_the_steps_that_it_takes_on_numpy(
    make: Callable[[nn.Module], optim.Optimizer], dtype: Any
) -> None:
    rng = np.random.default_rng(1)
    x = tt.from_numpy(rng.standard_normal((16, 6)).astype(dtype))
    y = tt.from_numpy(rng.standard_normal((16, 4)).astype(dtype))

    def trained(backend: Any) -> tuple[list[Any], Any]:
        model: Any = nn.Linear(6, 4, dtype=dtype, rng=np.random.default_rng(0))
        optimizer = make(model)

        def step(x: Any, y: Any) -> Any:
            loss = losses.mse(model.forward(x.trace()), y)
            value, tape = loss.split_tape()
            optimizer.step(value.put_tape(tape).backward(wrt=model))
            return value

        run = tt.compile(step, backend=backend)
        for _ in range(100):
            run(x, y)
        return [one.numpy() for one in model.parameters().values()], run

    expected, _ = trained("numpy")
    found, run = trained("numba")

    assert "native update" in compiler.plans(run)[0].explain()
    tolerance = 1e-5 if dtype is np.float32 else 1e-12
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)


def test_every_formula_of_an_optimizer_but_amsgrad_has_its_loop() -> None:
    formulas = {
        function
        for name, function in vars(plain).items()
        if "scratch" in getattr(function, "__annotations__", ()) and not name.startswith("_")
    }

    assert formulas - native._STEPS.keys() == {plain.amsgrad}


def test_amsgrad_runs_as_on_numpy() -> None:
    def trained(backend: Any) -> Any:
        weight = tt.from_numpy(np.linspace(-1, 1, 9000, dtype=np.float32), (9000,))
        optimizer = optim.Adam([weight], amsgrad=True)

        def step() -> None:
            optimizer.step((weight.trace() * weight).sum().backward(wrt=[weight]))

        run = tt.compile(step, backend=backend)
        for _ in range(5):
            run()
        return weight.numpy()

    np.testing.assert_array_equal(trained("numba"), trained("numpy"))
