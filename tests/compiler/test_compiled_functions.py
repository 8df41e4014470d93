"""Compiled functions as objects: looked up, copied, pickled, called in threads and in children."""

from __future__ import annotations

import copy
import functools
import inspect
import multiprocessing
import os
import pickle
import signal
import threading
from types import FrameType
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import nn


@tt.compile
def doubled(x: Any, *, by: float = 2.0) -> Any:
    """Multiply."""
    return x * by


def plain(x: Any) -> Any:
    return x * 2.0


compiled_by_another_name = tt.compile(plain)


class Scale:
    def __init__(self, factor: float) -> None:
        self.factor = factor

    @tt.compile
    def method(self, x: Any) -> Any:
        return x * self.factor

    @staticmethod
    @tt.compile
    def static(x: Any) -> Any:
        return x * 2.0

    @tt.compile
    @staticmethod
    def static_inside(x: Any) -> Any:
        return x * 2.0

    @classmethod
    @tt.compile
    def of_class(cls, x: Any) -> Any:
        return x * 2.0

    @tt.compile
    @classmethod
    def of_class_inside(cls, x: Any) -> Any:
        return x * 2.0

    @property
    @tt.compile
    def twice(self) -> Any:
        return tt.ones((2,)) * 2.0 * self.factor

    class Inner:  # noqa: D106  # it is there to be found
        @staticmethod
        @tt.compile
        def static(x: Any) -> Any:
            return x * 2.0


def _model() -> Any:
    return nn.Linear(2, 2, rng=np.random.default_rng(0))


@pytest.mark.parametrize(
    "function",
    [
        Scale(2.0).method,
        functools.partial(Scale.method, Scale(2.0)),
        Scale.static,
        Scale(2.0).static,
        Scale.static_inside,
        Scale(2.0).static_inside,
        Scale.of_class,
        Scale(2.0).of_class,
        Scale.of_class_inside,
        Scale(2.0).of_class_inside,
        Scale.Inner.static,
    ],
)
def test_methods_of_all_sorts_are_called_as_if_they_were_not_compiled(function: Any) -> None:
    for _ in range(2):
        assert function(tt.ones((2,))).numpy().tolist() == [2.0, 2.0]


def test_a_property_may_be_compiled() -> None:
    assert [Scale(factor).twice.numpy().tolist() for factor in (1.0, 3.0)] == [[2.0] * 2, [6.0] * 2]


@pytest.mark.parametrize(
    "function", [doubled, Scale.method, Scale.static, Scale.static_inside, Scale.Inner.static]
)
def test_a_compiled_function_is_pickled_and_copied_as_functions_are(function: Any) -> None:
    assert pickle.loads(pickle.dumps(function)) is function
    assert copy.copy(function) is function
    assert copy.deepcopy(function) is function


@pytest.mark.parametrize(
    "function",
    [
        compiled_by_another_name,
        Scale(2.0).method,
        tt.compile(Scale(2.0).method),
        Scale.of_class,
        tt.compile(functools.partial(plain)),
    ],
)
def test_what_has_no_name_of_its_own_is_compiled_again_in_a_pickle(function: Any) -> None:
    function(tt.ones((2,)))

    for again in (pickle.loads(pickle.dumps(function)), copy.deepcopy(function)):
        assert again(tt.ones((2,))).numpy().tolist() == [2.0, 2.0]


def test_a_compiled_module_is_pickled_and_copied_with_its_parameters() -> None:
    model = _model()
    compiled = tt.compile(model)
    x = tt.ones((1, 2))
    expected = compiled(x).numpy().tolist()
    copies: list[Any] = [pickle.loads(pickle.dumps(compiled)), copy.deepcopy(compiled)]

    model.weight.array = model.weight.array * 0.0

    assert [one(x).numpy().tolist() for one in copies] == [expected] * 2
    assert copy.copy(compiled)(x).numpy().tolist() == compiled(x).numpy().tolist() != expected


def test_a_compiled_function_tells_what_it_is() -> None:
    function: Any = doubled

    assert list(inspect.signature(function).parameters) == ["x", "by"]
    assert (function.__name__, function.__qualname__) == ("doubled", "doubled")
    assert (function.__doc__, function.__module__) == ("Multiply.", __name__)
    assert inspect.unwrap(function) is function.__wrapped__ is not function


def _in_child(function: Any, connection: Any) -> None:
    connection.send(function(tt.ones((2,))).numpy().tolist())


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
@pytest.mark.parametrize("method", multiprocessing.get_all_start_methods())
def test_a_child_process_runs_a_compiled_function(method: str) -> None:
    context: Any = multiprocessing.get_context(method)
    doubled(tt.ones((2,)))
    ours, theirs = context.Pipe()
    child = context.Process(target=_in_child, args=(doubled, theirs))
    child.start()

    assert ours.poll(60)
    assert ours.recv() == [2.0, 2.0]
    child.join()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_child_does_not_wait_for_a_thread_that_only_its_parent_has() -> None:
    x = tt.ones((300_000,))
    doubled(x)
    done = threading.Event()

    def replay() -> None:
        while not done.is_set():
            doubled(x)

    thread = threading.Thread(target=replay)
    thread.start()
    try:
        for _ in range(10):
            child = os.fork()
            if not child:
                try:
                    signal.alarm(10)
                    doubled(x)
                    os._exit(0)
                finally:
                    os._exit(1)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    finally:
        done.set()
        thread.join()


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="the system has no timers")
def test_a_handler_of_signals_may_call_what_it_has_interrupted() -> None:
    compiled: Any = tt.compile(lambda x: ((x * 2.0).exp() + x).tanh().sum())
    x, other = tt.full((20_000,), 0.1), tt.full((20_000,), 0.2)
    expected = [compiled(x).item(), compiled(other).item()]
    inner: list[float] = []

    def handler(number: int, frame: FrameType | None) -> None:
        inner.append(compiled(other).item())

    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
    try:
        found = {compiled(x).item() for _ in range(300)}
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)

    assert found == {expected[0]}
    assert set(inner) == {expected[1]}


def test_kinds_of_calls_are_traced_and_replayed_in_several_threads() -> None:
    compiled: Any = tt.compile(lambda x: ((x * 2.0).exp() + x).sum())
    inputs = [tt.full((rows,), 0.5) for rows in range(1, 13)]
    expected = [((x * 2.0).exp() + x).sum().item() for x in inputs]
    wrong: list[Any] = []

    def call(seed: int) -> None:
        order = np.random.default_rng(seed)
        try:
            wrong.extend(
                position
                for position in order.integers(len(inputs), size=200)
                if compiled(inputs[position]).item() != expected[position]
            )
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=call, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert not wrong


def test_a_backward_pass_may_begin_in_the_midst_of_another() -> None:
    compiled: Any = tt.compile(lambda x: ((x * 2.0).exp() + 1.0).tanh().sum())

    def gradient(value: float) -> Any:
        x = tt.full((20_000,), value)
        return compiled(x.trace()).backward().get(x).numpy().copy()

    values = [0.1, 0.2, 0.3, 0.4]
    expected = [gradient(value) for value in values]
    wrong: list[Any] = []

    def run(position: int) -> None:
        found = [gradient(values[position]) for _ in range(100)]
        wrong.extend(one for one in found if not np.array_equal(one, expected[position]))

    threads = [threading.Thread(target=run, args=(position,)) for position in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert not wrong


def test_attributes_of_a_compiled_module_are_those_of_the_module() -> None:
    model = _model()
    compiled: Any = tt.compile(model)
    x = tt.ones((1, 2))
    compiled(x)

    model.bias = tt.full((2,), 1.0)
    assert compiled.bias is model.bias
    compiled.weight = tt.full((2, 2), 3.0)
    assert model.weight is compiled.weight
    assert compiled(x).numpy().tolist() == [[7.0, 7.0]] == model(x).numpy().tolist()
    compiled.note = "kept"
    assert model.note == "kept"
    del compiled.note
    assert not hasattr(model, "note")


def test_what_is_compiled_already_stays_as_it_is() -> None:
    holder = Scale(2.0)
    again = tt.compile(holder.method)
    assert again(tt.ones((2,))).numpy().tolist() == [2.0, 2.0]

    holder.factor = 3.0

    assert again(tt.ones((2,))).numpy().tolist() == [3.0, 3.0]
    assert tt.compile(doubled) is doubled
