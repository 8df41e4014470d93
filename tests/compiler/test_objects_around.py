"""Objects that a compiled function finds around itself, each with what may change in it."""

from __future__ import annotations

import contextlib
import io
import logging
import math
import os
import pathlib
import string
import sys
import types
from collections import defaultdict, deque
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import nn, optim
from tapetensor.compiler import plans
from tapetensor.errors import TraceError


def test_a_training_step_guards_each_parameter_in_two_lines() -> None:
    model = nn.Linear(2, 2, rng=np.random.default_rng(0))
    optimizer = optim.Sgd(model, lr=0.1)

    def step(x: Any) -> Any:
        loss = model.forward(x.trace()).square().sum()
        value = loss.detach()
        optimizer.step(loss.backward(wrt=model))
        return value

    compiled = tt.compile(step)
    compiled(tt.ones((1, 2)))

    (plan,) = plans(compiled)
    assert plan.source.count("['weight']") == 1


def test_a_function_of_this_library_that_holds_a_model_sees_what_training_changed() -> None:
    model = nn.Linear(1, 1, rng=np.random.default_rng(0))

    def forward(x: Any) -> Any:
        return model.forward(x)

    # Its frames are passed over, as those of the steps that `fit` compiles.
    scope = {**globals(), "__name__": "tapetensor.made"}
    code = forward.__code__.replace(co_filename="made.py")
    made: Any = types.FunctionType(code, scope, "forward", None, forward.__closure__)
    made.__module__ = "tapetensor.made"
    compiled, x = tt.compile(made), tt.ones((1, 1))
    compiled(x)
    model.weight.array = model.weight.array * 2.0

    np.testing.assert_allclose(compiled(x).numpy(), model.forward(x).numpy())


def test_files_in_memory_and_metaclasses_are_read_at_every_call() -> None:
    file = io.StringIO("ab")

    class Meta(type):
        factor = 2.0

        @property
        def twice(cls) -> float:
            return cls.factor * 2.0

    class Scaled(metaclass=Meta):
        pass

    compiled: Any = tt.compile(lambda x: x * len(file.getvalue()) + Scaled.twice)
    x = np.ones(2)

    assert compiled(x).tolist() == [6.0, 6.0]
    file.seek(0, io.SEEK_END)
    file.write("cd")
    assert compiled(x).tolist() == [8.0, 8.0]
    Meta.factor = 5.0
    assert compiled(x).tolist() == [14.0, 14.0]
    with pytest.raises(TraceError, match="file"):
        tt.compile(lambda x: (file.write("e"), x * 2.0)[1])(x)
    assert file.getvalue() == "abcd"


def test_numbers_of_the_users_classes_are_numbers() -> None:
    class Factor(float):
        pass

    factor = Factor(2.0)

    def run(x: Any) -> Any:
        return x * factor, np.where(x > 0.0, x, factor), factor - x[0]

    x = np.ones(2, np.float32)
    compiled: Any = tt.compile(run)
    # Only Python's own floats take the dtype of the array beside them.
    assert [one.dtype for one in compiled(x)] == [one.dtype for one in run(x)] == [np.float64] * 3


def test_what_is_put_into_a_module_of_python_or_numpy_is_read_at_every_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compiled: Any = tt.compile(lambda x: np.tanh(x * len(string.digits)) * math.tau)
    x = np.ones(2)
    compiled(x)
    monkeypatch.setattr(string, "digits", "01")
    assert compiled(x).tolist() == (np.tanh(x * 2) * math.tau).tolist()
    monkeypatch.setattr(math, "tau", 1.0)
    assert compiled(x).tolist() == np.tanh(x * 2).tolist()
    monkeypatch.setattr(np, "tanh", lambda x: x + 1.0)
    assert compiled(x).tolist() == [3.0, 3.0]


@pytest.mark.parametrize(
    "read",
    [
        lambda: len(os.environ.get("TT_A", "")),
        lambda: len([one for one in os.environ if one == "TT_A"]),
        lambda: len(os.environ),
        lambda: len(os.environ.copy().get("TT_A", "")),
        lambda: len(os.environb.get(b"TT_A", b"")),
        lambda: len(os.path.expandvars("$TT_A")),
        lambda: len(str(pathlib.Path("~").expanduser())),
    ],
)
def test_the_environment_is_read_at_every_call_by_whatever_reads_it(
    read: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled: Any = tt.compile(lambda x: x * read())
    x = np.ones(2)
    for name, text in (("TT_B", "b"), ("TT_A", "abcdefg"), ("HOME", "/a"), ("TT_A", "a")):
        monkeypatch.setenv(name, text)
        assert compiled(x).tolist() == (x * read()).tolist()
    assert len(plans(compiled)) > 1


def test_what_the_environment_is_given_inside_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TT_A", raising=False)

    def run(x: Any) -> Any:
        os.environ["TT_A"] = "a"
        return x

    with pytest.raises(TraceError, match=r"test_objects_around.py:\d+: .*os.environ.* is changed"):
        tt.compile(run)(np.ones(2))
    assert "TT_A" not in os.environ


def test_what_tells_of_a_call_may_look_at_the_clock() -> None:
    def run(x: Any) -> Any:
        logging.getLogger("tt_test").warning("it runs")
        sys.stdout.write("it runs")
        print("it runs", file=sys.stderr)
        return x * 2.0

    with contextlib.redirect_stdout(io.StringIO()) as told:
        assert tt.compile(run)(np.ones(1)).tolist() == [2.0]
    assert told.getvalue() == "it runs"


def test_arrays_that_a_view_of_a_dict_shows_are_read_at_every_call() -> None:
    table = {"w": np.ones(3)}
    compiled: Any = tt.compile(lambda x, shown: x * shown["w"])
    x, shown = np.ones(3), types.MappingProxyType(table)
    compiled(x, shown)
    table["w"][:] = 5.0
    np.testing.assert_array_equal(compiled(x, shown), np.full(3, 5.0))
    table["w"] = np.full(3, 7.0)
    np.testing.assert_array_equal(compiled(x, shown), np.full(3, 7.0))


class WithSlot:
    """An object that has a slot in place of a dict."""

    __slots__ = ("state",)

    def __init__(self, state: Any) -> None:
        self.state = state


def test_another_tensor_in_a_slot_is_refused() -> None:
    held = WithSlot(tt.ones((3,)))
    before = held.state

    def run(x: Any) -> Any:
        held.state = x * held.state
        return x

    with pytest.raises(TraceError, match=r"test_objects_around.py:\d+: .*held.state is changed"):
        tt.compile(run)(tt.ones((3,)))
    assert held.state is before


def test_arrays_of_python_objects_around_are_refused() -> None:
    held = np.array([1.0, None], dtype=object)
    with pytest.raises(TraceError, match="held is an array of Python objects; make it a list"):
        tt.compile(lambda x: x * held[0])(tt.ones((3,)))


def test_a_deque_of_any_length_is_the_same_at_the_next_call() -> None:
    memory: Any = deque([1.0], maxlen=1000)
    made: Any = defaultdict(lambda: 2.0)
    compiled: Any = tt.compile(lambda x: x * memory[0] * memory.maxlen * (made["a"] if made else 1))

    assert compiled(np.ones(1)).tolist() == [1000.0]
    memory = deque([1.0], maxlen=1001)
    assert compiled(np.ones(1)).tolist() == [1001.0]


def test_a_module_of_a_package_may_give_way_to_another_object() -> None:
    xp: Any = np

    def doubled(x: Any) -> Any:
        return xp.add(x, x)

    compiled = tt.compile(doubled)
    assert compiled(np.ones(2)).tolist() == [2.0, 2.0]
    xp = types.SimpleNamespace(add=np.subtract)
    assert compiled(np.ones(2)).tolist() == [0.0, 0.0]


def test_the_dict_of_an_object_leaves_as_itself() -> None:
    one = types.SimpleNamespace(weight=np.ones(2))
    compiled: Any = tt.compile(lambda x: (vars(one), one.weight * x))
    for _ in range(2):
        found, product = compiled(np.ones(2))
        assert found is vars(one)
        assert found["weight"] is one.weight
        assert product.tolist() == [1.0, 1.0]


def test_a_kind_is_asked_for_as_of_what_comes_in() -> None:
    def run(x: Any, rng: Any) -> Any:
        made = type(rng), rng.__class__, getattr(x, "array", None), getattr(x[0], "part", 7)
        return *made, getattr(x, "sum", print)()

    rng = np.random.default_rng(0)
    compiled, plain = (one(np.ones(2), rng) for one in (tt.compile(run), run))
    assert compiled == plain
