"""Compiled functions, and models while they are traced, in more than one thread."""

# Lambdas have no annotations.
# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import copy
import re
import threading
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import io, nn, optim
from tapetensor.arrays.stand_ins import run_check
from tapetensor.errors import TraceError


class Signal:
    """An event that a compiled function may tell of: whether it is set it cannot ask."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()

    def set(self) -> None:
        self._lock.release()

    def wait(self) -> None:
        self._lock.acquire(timeout=10)


def test_two_threads_may_call_one_function() -> None:
    run = tt.compile(lambda x: ((x * 2.0).exp() + x).sum())
    inputs = [tt.full((2000,), value) for value in (0.1, 0.2)]
    expected = [run(x).item() for x in inputs]
    wrong: list[float] = []

    def call(position: int) -> None:
        for _ in range(300):
            value = run(inputs[position]).item()
            if value != expected[position]:
                wrong.append(value)

    threads = [threading.Thread(target=call, args=(position % 2,)) for position in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert not wrong


@pytest.mark.parametrize(
    "use",
    [
        lambda model, optimizer, grads: model.forward(tt.ones((3, 4))),
        lambda model, optimizer, grads: optimizer.step(grads),
        lambda model, optimizer, grads: setattr(optimizer, "lr", 0.5),
        lambda model, optimizer, grads: print(optimizer.lr, optimizer.steps),
        lambda model, optimizer, grads: model.weight.numpy(),
        lambda model, optimizer, grads: copy.deepcopy(model),
        lambda model, optimizer, grads: io.load_state_dict(
            model, {"weight": np.zeros((2, 4), np.float32), "bias": np.zeros(2, np.float32)}
        ),
    ],
)
def test_another_thread_cannot_use_a_model_while_it_is_traced(use: Any) -> None:
    began, tried, errors = Signal(), Signal(), []
    model = nn.Linear(4, 2, rng=np.random.default_rng(0))
    optimizer = optim.Sgd(model, lr=0.1)
    grads = model.forward(tt.ones((3, 4)).trace()).sum().backward(wrt=model)
    twin = copy.deepcopy(model)
    optim.Sgd(twin, lr=0.1).step(grads_of(twin))

    def step(model: Any, optimizer: Any) -> None:
        began.set()
        tried.wait()
        optimizer.step(grads_of(model))

    def intrude() -> None:
        began.wait()
        try:
            use(model, optimizer, grads)
        except BaseException as error:
            errors.append(error)
        tried.set()

    thread = threading.Thread(target=intrude)
    thread.start()
    tt.compile(step)(model, optimizer)
    thread.join()

    (error,) = errors
    assert isinstance(error, TraceError)
    assert re.match(
        re.escape(__file__) + r":\d+: compile: what is used here is being traced in another "
        r"thread, .* make that call before other threads begin",
        str(error),
    )
    np.testing.assert_array_equal(model.weight.numpy(), twin.weight.numpy())


def test_a_step_is_refused_that_would_end_while_another_thread_traces_with_its_model() -> None:
    waits, in_step, in_trace, ended = threading.Event(), Signal(), Signal(), Signal()
    model = nn.Linear(4, 2, rng=np.random.default_rng(0))
    optimizer = optim.Sgd(model, lr=0.1)
    errors = []

    def wait(array: Any) -> None:
        if waits.is_set():
            in_step.set()
            in_trace.wait()

    def step(model: Any, optimizer: Any) -> None:
        grads = grads_of(model)
        run_check(wait, grads[model.bias].array)
        optimizer.step(grads)

    compiled = tt.compile(step)
    compiled(model, optimizer)
    before = model.weight.numpy().copy()
    waits.set()

    def train() -> None:
        try:
            compiled(model, optimizer)
        except TraceError as error:
            errors.append(str(error))
        ended.set()

    thread = threading.Thread(target=train)

    def forward(model: Any) -> Any:
        in_trace.set()
        ended.wait()
        return model.forward(tt.ones((3, 4)))

    thread.start()
    in_step.wait()
    tt.compile(forward)(model)

    (error,) = errors
    assert re.match(re.escape(__file__) + r":\d+: .* is being traced in another thread", error)
    assert optimizer.steps == 1
    np.testing.assert_array_equal(model.weight.numpy(), before)


def grads_of(model: Any) -> tt.Gradients:
    """Return the gradients of the sum of what a model gives."""
    ones: Any = tt.ones((3, 4))
    grads: tt.Gradients = model.forward(ones.trace()).sum().backward(wrt=model)
    return grads
