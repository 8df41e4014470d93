"""What compiled functions read from around themselves, and what they must not change there."""

# Lambdas have no annotations.
# mypy: disable-error-code="no-untyped-call,no-untyped-def"

from __future__ import annotations

import copy
import functools
import importlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import nn, optim
from tapetensor.compiler import plans
from tapetensor.errors import TraceError
from tests.compiler.test_calls import _vector

SCALE = 2.0
RNG = np.random.default_rng(0)
COUNT = 0
# Of the name of an attribute that functions here use.
trace = 0


class Holder:
    """An object of the user's."""

    kind = 1.0

    def __init__(self, value: Any) -> None:
        self.value = value

    def scaled(self, x: Any) -> Any:
        return x * SCALE


@dataclass(frozen=True, slots=True)
class Pair:
    lhs: Any
    rhs: Any


@pytest.mark.parametrize("captured", ["closure", "global", "list", "object", "partial", "method"])
def test_a_generator_draws_on_wherever_the_function_finds_it(
    captured: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(7)
    held = [rng]
    holder = Holder(rng)
    monkeypatch.setitem(globals(), "RNG", rng)

    def draw(rng: np.random.Generator, x: Any) -> Any:
        return x + tt.normal((3,), rng=rng, dtype=np.float64)

    class Noise(Holder):
        def add(self, x: Any) -> Any:
            return draw(self.value, x)

    functions: dict[str, Callable[..., Any]] = {
        "closure": lambda x: draw(rng, x),
        "global": lambda x: draw(RNG, x),
        "list": lambda x: draw(held[0], x),
        "object": lambda x: draw(holder.value, x),
        "partial": partial(draw, rng),
        "method": Noise(rng).add,
    }
    compiled = tt.compile(functions[captured])
    zeros = tt.zeros((3,), dtype=np.float64)

    found = [compiled(zeros).numpy().tolist() for _ in range(3)]

    again = np.random.default_rng(7)
    assert found == [again.standard_normal(3).tolist() for _ in range(3)]
    assert len(plans(compiled)) == 1


def test_a_global_of_the_name_of_an_attribute_makes_no_other_plan(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compiled = tt.compile(lambda x: x.trace().detach())
    for number in range(3):
        monkeypatch.setitem(globals(), "trace", number)
        compiled(_vector(1.0))

    assert len(plans(compiled)) == 1


def test_one_compiled_function_may_call_another() -> None:
    weight = _vector(3.0)
    inner = tt.compile(lambda x: x * weight)
    outer = tt.compile(lambda x: inner(x) + 1.0)
    assert outer(_vector(2.0)).item() == 7.0

    weight.array = np.array([5.0], np.float32)

    assert outer(_vector(2.0)).item() == 11.0
    assert inner(_vector(2.0)).item() == 10.0


def test_slotted_and_frozen_dataclasses_go_in_and_come_out() -> None:
    swapped = tt.compile(lambda pair: Pair(pair.rhs, pair.lhs * 2.0))

    for value in (1.0, 4.0):
        pair = swapped(Pair(_vector(value), _vector(9.0)))
        assert (pair.lhs.item(), pair.rhs.item()) == (9.0, 2 * value)
    assert len(plans(swapped)) == 1


def _refusals() -> dict[str, tuple[Callable[[Any], Any], Callable[[], object], str]]:
    """Return functions with side effects, what would show them, and how they are named."""
    numbers: list[float] = []
    table: dict[str, Any] = {}
    holder, total = Holder(0), 0
    array = np.zeros(1, np.float32)
    model = nn.Linear(1, 1, rng=np.random.default_rng(0))
    optimizer = optim.Sgd(model, lr=0.5)

    def appends(x: Any) -> Any:
        numbers.append(1.0)
        return x

    def enters(x: Any) -> Any:
        table["loss"] = x
        return x

    def counts(x: Any) -> Any:
        global COUNT
        COUNT += 1
        return x

    def adds(x: Any) -> Any:
        nonlocal total
        total += 1
        return x

    def sets(x: Any) -> Any:
        holder.value += 1
        return x

    def sets_class(x: Any) -> Any:
        Holder.kind = Holder.kind + 1.0
        return x

    def writes(x: Any) -> Any:
        array[0] = 1
        return x

    def sets_rate(x: Any) -> Any:
        optimizer.lr = 0.1
        return x

    return {
        "list": (appends, numbers.copy, "numbers[0]"),
        "dict": (enters, table.copy, "table['loss']"),
        "global": (counts, lambda: COUNT, "COUNT"),
        "nonlocal": (adds, lambda: total, "total"),
        "attribute": (sets, lambda: holder.value, "holder.value"),
        "class attribute": (sets_class, lambda: Holder.kind, "Holder.kind"),
        "array": (writes, array.tolist, "array"),
        "learning rate": (sets_rate, lambda: optimizer.lr, "optimizer.lr"),
    }


@pytest.mark.parametrize("name", list(_refusals()))
def test_a_side_effect_is_refused_by_name_and_line_and_undone(name: str) -> None:
    function, read, what = _refusals()[name]
    before = read()
    first = function.__code__.co_firstlineno
    last = max([line for *_, line in function.__code__.co_lines() if line])

    with pytest.raises(TraceError, match=re.escape(what)) as error:
        tt.compile(function)(_vector(1.0))

    assert read() == before
    found = re.match(re.escape(__file__) + r":(\d+): compile: ", str(error.value))
    assert found is not None
    assert first <= int(found[1]) <= last


def test_a_change_that_follows_a_call_is_told_with_the_line_of_the_caller() -> None:
    history: list[Any] = []

    def total(x: Any) -> Any:
        y = x * 2.0
        return y.sum().item()

    def run(x: Any) -> Any:
        history.append(total(x))
        return x

    with pytest.raises(TraceError, match="history") as error:
        tt.compile(run)(_vector(1.0))

    assert str(error.value).startswith(f"{__file__}:{run.__code__.co_firstlineno + 1}: ")


@pytest.mark.parametrize(
    ("run", "what"),
    [
        (
            lambda rng: rng.standard_normal(out=np.empty(2)),
            "rng.standard_normal writes into an array; use the array that it returns",
        ),
        (lambda rng: copy.deepcopy(rng).random(2), "a random generator is copied; copy it outside"),
        (lambda rng: copy.copy(rng).random(2), "a random generator is copied; copy it outside"),
    ],
)
def test_draws_that_a_replay_would_not_repeat_are_refused_with_the_line(
    run: Any, what: str
) -> None:
    with pytest.raises(TraceError, match=what) as error:
        tt.compile(run)(np.random.default_rng(0))
    assert str(error.value).startswith(__file__)


def test_a_model_may_be_the_default_of_an_argument() -> None:
    model = nn.Linear(2, 1, rng=np.random.default_rng(0))
    optimizer, x = optim.Sgd(model, lr=0.1), tt.ones((1, 2))

    def step(model: Any = model, *, optimizer: Any = optimizer) -> Any:
        loss = model.forward(x.trace()).square().sum()
        value = loss.detach()
        optimizer.step(loss.backward(wrt=model))
        return value

    compiled = tt.compile(step)

    first, *_, last = [compiled().item() for _ in range(20)]
    assert last < first / 100
    assert len(plans(compiled)) == 1


def test_the_number_of_steps_cannot_be_read_with_the_cure() -> None:
    model = nn.Linear(1, 1, rng=np.random.default_rng(0))
    optimizer = optim.Sgd(model, lr=0.5)
    schedule = optim.schedules.cosine(lr=0.1, steps=10)

    def step(x: Any) -> Any:
        optimizer.lr = schedule(optimizer.steps)
        return x

    with pytest.raises(TraceError, match=r"optimizer\.lr = schedule\(optimizer\.steps\)"):
        tt.compile(step)(_vector(1.0))
    assert optimizer.lr == 0.5


def test_functions_that_wait_or_yield_are_refused() -> None:
    async def wait(x: Any) -> Any:
        return x

    def give(x: Any) -> Any:
        yield x

    with pytest.raises(tt.ArgumentTypeError, match="wait is async"):
        tt.compile(wait)
    with pytest.raises(tt.ArgumentTypeError, match="give yields"):
        tt.compile(give)


def test_a_tensor_that_is_only_read_keeps_its_array() -> None:
    weight = _array_of_its_own()
    compiled: Any = tt.compile(lambda x: x * weight)
    x = _array_of_its_own()
    before = weight._array, x._array
    compiled(x)
    compiled(x)
    assert weight._array is before[0]
    assert x._array is before[1]


def _array_of_its_own() -> Any:
    return tt.ones((3,))


def test_a_function_of_a_module_that_is_being_imported_reads_as_any_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tt_script.py").write_text(
        "import tapetensor as tt\n"
        "SCALE, W = 2.0, tt.ones((3,))\n"
        "@tt.compile\n"
        "def run(x):\n"
        "    return x * W * SCALE\n"
        "first = run(W)\n"
        "SCALE = 5.0\n"
        "second = run(W)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    script: Any = importlib.import_module("tt_script")

    assert script.first.tolist() == [2.0, 2.0, 2.0]
    assert script.second.tolist() == [5.0, 5.0, 5.0]
    script.SCALE = 7.0
    assert script.run(script.W).tolist() == [7.0, 7.0, 7.0]


def test_what_a_cached_function_gives_again_is_read_at_every_call() -> None:
    class Held:
        scale = 2.0

    @functools.lru_cache
    def weight() -> Any:
        return tt.from_numpy([3.0], shape=(1,))

    @functools.cache
    def array() -> Any:
        return np.ones(1, np.float32)

    @functools.lru_cache
    def held() -> Any:
        return Held()

    function: Any = tt.compile(lambda x: x * weight().numpy() * array() * held().scale)
    x = np.ones(1, np.float32)
    weight(), array(), held()
    found = []
    for change in (
        lambda: None,
        lambda: array().fill(5.0),
        lambda: setattr(held(), "scale", 7.0),
        weight.cache_clear,
        array.cache_clear,
    ):
        change()
        found.append(function(x).item())
        weight(), array()

    assert found == [6.0, 30.0, 105.0, 105.0, 21.0]


def _scaled_kernel(x: Any) -> Any:
    return x * 1, (lambda g: g * x.dtype.type(SCALE),)


def _scaled(x: Any) -> Any:
    return x * SCALE


@pytest.mark.parametrize(
    "op",
    [
        lambda x: tt.custom_op(_scaled_kernel, x, shape=x.shape),
        lambda x: tt.checkpoint(_scaled, x),
    ],
)
def test_a_global_that_the_users_pullback_reads_makes_another_plan(
    op: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled: Any = tt.compile(lambda x: (op(x.trace()) * 3.0).sum().backward()[x])
    assert compiled(tt.ones((1,))).item() == 6.0

    monkeypatch.setitem(globals(), "SCALE", 7.0)

    assert compiled(tt.ones((1,))).item() == 21.0
